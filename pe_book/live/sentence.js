// What the figures of a sentence share: the sums of a head, and the things of an order that a hand
// carries. A page may load it once for each of them.
peLive.sentence = (() => {
  const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  function softmax(scores) {
    const most = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - most));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  }
  /** The weights with which each query looks at each key. */
  const attention = (queries, keys) =>
    queries.map((query) => softmax(keys.map((key) => dot(query, key) / Math.sqrt(key.length))));

  /** A handle for the things of an order, which is a text of digits: one is exchanged with that which
      it is dragged over, an arrow exchanges it with its neighbour, and a digit with what stands at
      that place. `placeAt` gives the place under a point, or one that there is not, and `placeOf` the
      place that a digit names. */
  function carry(order, placeAt, placeOf = (_, digit) => digit) {
    function moved(before, which, to) {
      const all = [...before];
      const place = all.indexOf(String(which));
      if (to in all) [all[place], all[to]] = [all[to], all[place]];
      return { [order]: all.join("") };
    }
    return {
      control: order,
      carries: true,
      move: (_, point, wide, which, { before }) => moved(before[order], which, placeAt(point, wide)),
      key(state, key, which) {
        const all = [...state[order]];
        const place = all.indexOf(String(which));
        const keys = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: all.length - 1 };
        const to = key in all ? placeOf(state, key) : keys[key];
        return to === undefined ? null : moved(all, which, to);
      },
    };
  }

  return { attention, carry };
})();
