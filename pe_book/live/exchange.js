// “The dog bit the man.” as MiniLM reads it, a tag with its number under each word, and above the
// words where the third head of the first layer looks. All of it is computed here, from what the
// head makes of each word and of each number (data/exchange.js): word plus number, LayerNorm, query
// times key, softmax.
peLive.define("exchange", (data) => {
  const { circle, fixed, g, path, r1, rect, tableOf, text } = peDraw;
  const { attention, carry } = peLive.sentence;
  const { tokens, b_q, b_k } = data;
  const [token_q, token_k, position_q, position_k, deviations] = [
    data.token_q, data.token_k, data.position_q, data.position_k, data.deviations,
  ].map(tableOf); // prettier-ignore
  const COUNT = tokens.length;
  const PLACES = Array.from({ length: COUNT }, (_, place) => place);
  const HOME = PLACES.join("");
  const ORDER = "(?!.*(.).*\\1)[0-7]{8}"; // eight digits, none of them twice
  const SAME = tokens.indexOf("dog"); // the word that stands everywhere, where all are the same
  const MEAN = COUNT; // the row of positions that is the mean of the whole table

  // ---- The head -------------------------------------------------------------------------------

  /** A query or a key of the sum of a word and a number, which the LayerNorm divides by σ. */
  const vector = (ofWord, ofNumber, bias, deviation) =>
    bias.map((start, k) => start + (ofWord[k] + ofNumber[k]) / deviation);
  function queryAndKey(word, position) {
    const deviation = deviations[word][position];
    return [
      vector(token_q[word], position_q[position], b_q, deviation),
      vector(token_k[word], position_k[position], b_k, deviation),
    ];
  }
  const wordAt = ({ words: order, given }, place) => (given === "same" ? SAME : Number(order[place]));
  const numberAt = ({ tags }, place) => Number(tags[place]);
  /** The attention weights: a row for each place that looks, a column for each that is looked at. */
  function weightsOf(state) {
    const made = PLACES.map((place) =>
      queryAndKey(wordAt(state, place), state.given === "none" ? MEAN : numberAt(state, place))
    );
    return attention(...[0, 1].map((which) => made.map((pair) => pair[which])));
  }
  const looksOf = (weights) => weights.map((row) => row.indexOf(Math.max(...row)));
  const numbers = (state) => {
    const weights = weightsOf(state);
    return { weights, looks: looksOf(weights) };
  };

  // ---- The picture ----------------------------------------------------------------------------

  const SIZES = {
    true: { width: 640, height: 264, left: 48, step: 77.7, foot: 146, word: 168, tag: 214, r: 17, low: 38, high: 13 },
    false: { width: 360, height: 212, left: 22.5, step: 45, foot: 118, word: 136, tag: 178, r: 15, low: 26, high: 11.5 },
  }; // prettier-ignore
  const FAINT = 0.03; // a weight that is not drawn

  /** The arc from the word that looks to the one that it looks at, as thick as its weight. */
  function arc(size, from, to, weight) {
    if (weight < FAINT) return "";
    const { foot } = size;
    const [x, end] = [from, to].map((place) => size.left + place * size.step);
    const way = Math.sign(end - x);
    const [a, b] = way ? [x + way * 11, end] : [x - 20, x - 7]; // itself: a loop beside
    const rise = way ? size.low + size.high * Math.abs(to - from) : 0.6 * size.low;
    const head = 1.5 + 4 * weight;
    const top = r1(foot - 1.33 * rise);
    const curve = `M${r1(a)} ${foot}C${r1(a)} ${top} ${r1(b)} ${top} ${r1(b)} ${r1(foot - head)}`;
    const tip = `M${r1(b - head)} ${r1(foot - 1.8 * head)}h${r1(2 * head)}L${r1(b)} ${foot}Z`;
    const width = { style: `stroke-width: ${r1(0.4 + 3.2 * weight)}px` };
    return path(curve, "is-step arc", width) + path(tip, "is-step head");
  }

  function draw(state, wide, { lives, from = state, share = 1, hand } = {}) {
    const size = SIZES[wide];
    const [before, after] = [from, state].map(weightsOf);
    const weight = (query, key) => before[query][key] + share * (after[query][key] - before[query][key]);
    /** Where a word or a tag stands: under the hand, on its way, or at its place. */
    function spot(name, which, y) {
      const order = name === "tag" ? "tags" : "words";
      const [start, end] = [from[order], state[order]].map((all) => all.indexOf(which));
      const home = [size.left + end * size.step, y];
      const begin = [size.left + start * size.step, y];
      const isHeld = hand?.name === name && hand.part === which;
      if (isHeld && !hand.let) return [hand.place.x, hand.place.y];
      const [x, h] = isHeld ? [hand.place.x, hand.place.y] : begin;
      return [x + share * (home[0] - x), h + share * (home[1] - h)];
    }
    const keys = (name, which) => {
      const order = name === "tag" ? state.tags : state.words;
      const place = order.indexOf(which);
      return lives
        ? {
            tabindex: 0,
            role: "slider",
            "aria-label": name === "tag" ? `number ${which}` : `word ${tokens[which]}`,
            "aria-valuemin": 0,
            "aria-valuemax": COUNT - 1,
            "aria-valuenow": place,
            "aria-valuetext": name === "tag" ? `under ${said(state, place)}` : `on number ${state.tags[place]}`,
          }
        : {};
    };
    const grip = (name, which, inner) =>
      peDraw.tag("g", { class: "grip", "data-handle": `${name} ${which}`, ...keys(name, which) }, inner);
    const [half, low] = [size.step / 2 - 0.5, (size.tag - size.word) / 2];
    const word = (which) => {
      const [x, y] = spot("word", which, size.word);
      const shown = state.given === "same" ? tokens[SAME] : tokens[which];
      const look = shown.startsWith("[") ? "is-grey word special" : "is-word word";
      const area = rect(x - half, y - low, 2 * half, 2 * low, "area", { rx: 6 });
      return grip("word", which, area + text(x, y, shown, `mid ${look}`));
    };
    const tag = (which) => {
      const [x, y] = spot("tag", which, size.tag);
      const look = state.given === "none" ? "gone" : state.tags.indexOf(which) === which ? "" : "moved";
      const number = text(x, y, String(which), "mid strong");
      const area = rect(x - half, y - low, 2 * half, 2 * low + 6, "area", { rx: 6 });
      return grip("tag", which, area + g(`is-position tag ${look}`, circle(x, y, size.r, "disc"), number));
    };
    // Between two numbers that have changed places, a line below.
    const swapped = PLACES.filter((place) => {
      const other = numberAt(state, place);
      return place < other && numberAt(state, other) === place;
    }).map((place) => {
      const [a, b] = [place, numberAt(state, place)].map((one) => Math.round(size.left + one * size.step));
      const [y, deep] = [size.tag + size.r + 5, 10 + 3 * (numberAt(state, place) - place)];
      return path(`M${a} ${y}C${a + 8} ${y + deep} ${b - 8} ${y + deep} ${b} ${y}`, "is-position dashed thin");
    });
    const parts = [
      g("arcs", ...PLACES.flatMap((query) => PLACES.map((key) => arc(size, query, key, weight(query, key))))),
      g("swapped", ...(state.given === "none" ? [] : swapped)), // in groups: the others keep their nodes
      ...PLACES.map(word),
      ...PLACES.map(tag),
    ]; // prettier-ignore
    return { width: size.width, height: size.height, parts };
  }

  // ---- The sentence below ---------------------------------------------------------------------

  /** A word as the sentence names it; where it stands there twice, with its number. */
  function said(state, place) {
    const name = tokens[wordAt(state, place)];
    const isTwice = PLACES.filter((one) => tokens[wordAt(state, one)] === name).length > 1;
    return `“${name}”${isTwice ? ` (${numberAt(state, place)})` : ""}`;
  }
  function says(state) {
    const { weights, looks } = numbers(state);
    if (state.given === "none") {
      const most = Math.max(...PLACES.slice(1).map((place) => weights[place][place - 1]));
      return `Without numbers (for each the mean of all rows), no word gives the one before it more than ${fixed(Math.ceil(100 * most) / 100)}.`;
    }
    const follows = PLACES.filter((place) => numberAt(state, place) > 0);
    const back = (place) => state.tags.indexOf(String(numberAt(state, place) - 1));
    const lost = follows.filter((place) => looks[place] !== back(place));
    if (lost.length)
      return `${COUNT - 1 - lost.length} of ${COUNT - 1} look at the number before their own. ${said(state, lost[0])} looks at ${said(state, looks[lost[0]])}.`;
    const least = Math.min(...follows.map((place) => weights[place][back(place)]));
    const share = `with ${fixed(Math.floor(100 * least) / 100)} or more`;
    const moved = PLACES.filter((place) => place > 0 && place < COUNT - 1 && looks[place] !== place - 1);
    const one = moved.at(-1);
    const rule = `each looks at the number before its own, ${share}`;
    if (moved.length) return `${said(state, one)} looks at ${said(state, looks[one])}: ${rule}.`;
    if (state.tags !== HOME) return `Only the ends have changed: ${rule}.`;
    if (state.given === "same") return `Every word is “${tokens[SAME]}”, and nothing changes: each looks at the one before, ${share}.`;
    if (state.words !== HOME) return `Words have moved, and no arc has: each looks at the one before, ${share}.`;
    return `Each word looks at the word before it, ${share} of its attention.`;
  } // prettier-ignore

  // ---- What can be moved ----------------------------------------------------------------------

  const placeAt = ({ x, y }, wide) => {
    const { left, step, height } = SIZES[wide];
    return y > 20 && y < height + 20 ? Math.round((x - left) / step) : -1;
  };
  const there = "01534267"; // 2 and 5 exchanged
  const state = (tags, order, given) => ({ tags, words: order, given });
  return {
    title: "A sentence, its numbers, and where one head of MiniLM looks",
    controls: {
      tags: { label: "numbers", pattern: ORDER, value: HOME },
      words: { label: "words", pattern: ORDER, value: HOME },
      given: {
        label: "what the head is given",
        choices: [
          ["sentence", "words and numbers"],
          ["same", "all “dog”"],
          ["none", "no numbers"],
        ],
        value: "sentence",
      },
    },
    presets: [
      ["2 ↔ 5", state(there, HOME, "sentence")],
      ["dog ↔ man", state(HOME, there, "sentence")],
    ],
    handles: {
      tag: carry("tags", placeAt, ({ tags }, digit) => tags.indexOf(digit)),
      word: carry("words", placeAt),
    },
    numbers,
    draw,
    says,
  };
});
