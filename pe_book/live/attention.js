// Three words and the weights between them in one head that is given no positions: a thread from
// each word that looks to each that it looks at, as thick as the weight. The weights are computed
// anew from the rows in their new order (data/attention.js); none is carried along.
peLive.define("attention", (data) => {
  const { fixed, g, line, path, r1, rect, tag, tableOf, text } = peDraw;
  const { attention, carry } = peLive.sentence;
  const { words } = data;
  const [rows, w_q, w_k] = [data.rows, data.w_q, data.w_k].map(tableOf);
  const PLACES = words.map((_, place) => place);
  const HOME = PLACES.join("");
  const ORDER = "(?!.*(.).*\\1)[0-2]{3}"; // three digits, none of them twice

  // ---- The head -------------------------------------------------------------------------------

  const times = (row, matrix) =>
    Array.from(matrix[0], (_, column) => row.reduce((sum, value, k) => sum + value * matrix[k][column], 0));
  /** The attention weights: a row for each place that looks, a column for each that is looked at. */
  function weightsOf(order) {
    const given = [...order].map((which) => rows[which]);
    return attention(...[w_q, w_k].map((matrix) => given.map((row) => times(row, matrix))));
  }
  const numbers = ({ order }) => ({ weights: weightsOf(order) });

  // ---- The picture ----------------------------------------------------------------------------

  const SIZES = {
    true: { width: 640, height: 272, left: 200, step: 180, looks: 30, looked: 204, weight: 246, names: [["looks", 30], ["is looked at", 204], ["weight", 246]] },
    false: { width: 360, height: 286, left: 66, step: 114, looks: 46, looked: 202, weight: 238, names: [["looks", 14], ["is looked at, with this weight", 270]] },
  }; // prettier-ignore
  const HALF = 20; // of the height of a word

  function draw({ order, who }, wide, { lives, from = { order }, share = 1, hand } = {}) {
    const size = SIZES[wide];
    const weights = weightsOf(order);
    const weight = (one, other) => weights[order.indexOf(one)][order.indexOf(other)];
    /** Where a word stands: under the hand, on its way, or at its place. */
    function at(which) {
      const isHeld = hand?.part === which;
      if (isHeld && !hand.let) return hand.place.x;
      const [start, end] = [from.order, order].map((all) => size.left + all.indexOf(which) * size.step);
      const begin = isHeld ? hand.place.x : start;
      return begin + share * (end - begin);
    }
    function thread(one, other) {
      const [a, b, top, foot] = [at(one), at(other), size.looks + HALF, size.looked - HALF];
      const middle = (top + foot) / 2;
      const curve = `M${r1(a)} ${top}C${r1(a)} ${middle} ${r1(b)} ${middle} ${r1(b)} ${foot}`;
      const width = { style: `stroke-width: ${r1(1 + 14 * weight(one, other))}px` };
      return path(curve, one === who ? "is-step" : "is-grey faint", width);
    }
    const keys = (which) => ({
      tabindex: 0,
      role: "slider",
      "aria-label": `word ${words[which]}`,
      "aria-valuemin": 1,
      "aria-valuemax": words.length,
      "aria-valuenow": order.indexOf(which) + 1,
      "aria-valuetext": `place ${order.indexOf(which) + 1}`,
    });
    function word(row, which) {
      const [x, y, half] = [at(which), size[row], size.step / 2 - 4];
      const area = rect(x - half, y - HALF, 2 * half, 2 * HALF, "area", { rx: 6 });
      const isWho = row === "looks" && which === who;
      const under = isWho ? line(x - 26, y + 19, x + 26, y + 19, "is-step") : "";
      const can = lives && row === "looks" ? keys(which) : {}; // one of its two words is enough
      const shown = text(x, y, words[which], "mid is-word word");
      return tag("g", { class: "grip", "data-handle": `${row} ${which}`, ...can }, area + under + shown);
    }
    const threads = (ones) => g("threads", ...ones.flatMap((one) => PLACES.map((other) => thread(one, other))));
    const ofWho = (which) => text(at(which), size.weight, fixed(weight(who, which)), "mid strong is-step");
    const parts = [
      ...size.names.map(([name, y]) => text(0, y, name, "muted")),
      threads(PLACES.filter((one) => one !== who)),
      threads([who]),
      ...["looks", "looked"].flatMap((row) => PLACES.map((which) => word(row, which))),
      g("weights", ...PLACES.map(ofWho)),
    ];
    return { width: size.width, height: size.height, parts };
  }

  // ---- The sentence below ---------------------------------------------------------------------

  const sentence = (order) => [...order].map((which) => words[which]).join(" ");
  function says({ order, who }) {
    const [there, here] = [HOME, order].map((all) => {
      const weights = weightsOf(all);
      return PLACES.map((which) => weights[all.indexOf(who)][all.indexOf(which)]);
    });
    const gives = PLACES.filter((which) => which !== who).map((which) => `“${words[which]}” ${fixed(here[which])}`);
    const told = `“${words[who]}” gives ${gives.join(" and ")} of its attention`;
    if (order === HOME) return `${told}.`;
    const isSame = PLACES.every((which) => Math.abs(here[which] - there[which]) < 1e-12);
    return `In “${sentence(order)}”, ${told}, ${isSame ? "as" : "not as"} in “${sentence(HOME)}”.`;
  }

  // ---- What can be moved ----------------------------------------------------------------------

  const placeAt = ({ x, y }, wide) => {
    const { left, step, height } = SIZES[wide];
    return y > -20 && y < height + 20 ? Math.round((x - left) / step) : -1;
  };
  const carried = {
    ...carry("order", placeAt),
    taps: (_, point, wide, which) => ({ who: which }),
  };
  return {
    title: "Three words, and how much each looks at each in a head without positions",
    controls: {
      order: { label: "order", pattern: ORDER, value: HOME },
      who: { label: "who looks", choices: PLACES.map((which) => [which, words[which]]), value: 0 },
    },
    presets: ["210", "102", "021"].map((order) => [sentence(order), { order }]),
    handles: { looks: carried, looked: carried },
    numbers,
    draw,
    says,
  };
});
