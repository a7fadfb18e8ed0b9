// The dot product of two encodings against their offset, K(Δ)/(d/2), beside its limit for many pairs
// and the logarithmic law. Offsets double from tick to tick, so the law is a straight line.
peLive.define("similarity", () => {
  const { circle, count, fixed, line, plot, polyline, text } = peDraw;
  const FURTHEST = 512;
  const GAMMA = 0.5772156649015329;

  /** The cosine integral: its series for small x, a continued fraction (Lentz) for large. */
  function ci(x) {
    if (x <= 3) {
      let [sum, term] = [GAMMA + Math.log(x), 1];
      for (let k = 2; k < 40; k += 2) {
        term *= (-x * x) / (k * (k - 1));
        sum += term / k;
      }
      return sum;
    }
    // −Re e^{−ix} / (1 + ix − 1 / (3 + ix − 4 / (5 + ix − …))), from the far end.
    let [re, im] = [0, 0];
    for (let k = 120; k > 0; k--) {
      const [a, b] = [2 * k + 1 - re, x - im];
      const size = (k * k) / (a * a + b * b);
      [re, im] = [a * size, -b * size];
    }
    const [a, b] = [1 - re, x - im];
    return (b * Math.sin(x) - a * Math.cos(x)) / (a * a + b * b);
  }

  const curves = new Map(); // a change of offset computes nothing anew
  function curve(d, base) {
    const key = `${d} ${base}`;
    if (!curves.has(key)) {
      if (curves.size > 8) curves.clear();
      const omega = Array.from({ length: d / 2 }, (_, i) => base ** ((-2 * i) / d));
      const at = (offset) => {
        let sum = 0;
        for (const w of omega) sum += Math.cos(w * offset);
        return sum / omega.length;
      };
      const all = Array.from({ length: FURTHEST + 2 }, (_, offset) => at(offset));
      curves.set(key, Object.assign(all, { at })); // and between two offsets, on the way from one
    }
    return curves.get(key);
  }
  const limit = (offset, base) => (ci(offset) - ci(offset / base)) / Math.log(base);
  const law = (offset, base) => 1 - (Math.log(offset) + GAMMA) / Math.log(base);
  const reach = ({ d_model, base }) => Math.min(base, (Math.PI * d_model) / Math.log(base));
  function firstRise({ d_model, base }) {
    const k = curve(d_model, base);
    for (let offset = 1; offset <= FURTHEST; offset++) if (k[offset + 1] > k[offset]) return offset;
    return NaN;
  }
  const numbers = (state) => ({
    similarity: curve(state.d_model, state.base).at(state.offset),
    limit: limit(state.offset, state.base),
    law: law(state.offset, state.base),
    rise: firstRise(state),
    reach: reach(state),
  });

  const frames = { true: [46, 36, 580, 212], false: [34, 92, 318, 190] };
  const axesOf = (wide) => {
    const [left, top, width, height] = frames[wide];
    // In the narrow picture there is no room for every number; the ticks still double.
    const doublings = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map((v, k) => (wide || k % 2 === 0 ? v : [v, ""]));
    const x = { range: [1, FURTHEST], log: true, ticks: doublings, label: "offset Δ: each tick doubles it" };
    const y = { range: [-0.25, 1], ticks: [[0, "0"], [0.25, "¼"], [0.5, "½"], [0.75, "¾"], [1, "1"]] };
    return plot({ left, top, width, height, x, y });
  }; // prettier-ignore
  const FINE = Array.from({ length: 91 }, (_, k) => FURTHEST ** (k / 90));

  function draw(state, wide) {
    const { d_model: d, base, offset } = state;
    const { axes, px, py } = axesOf(wide);
    const [left, top, width, height] = frames[wide];
    const here = numbers(state);
    const k = curve(d, base);
    const floor = (v) => Math.max(-0.25, v);
    const drawn = (f, from, to, look) =>
      polyline(FINE.filter((v) => v >= from && v <= to && f(v, base) > -0.25).map((v) => [px(v), py(f(v, base))]), look);
    const end = Math.min(here.reach, FURTHEST);
    const rows = [
      ["is-plain tie-score", "", `K(${offset}) / (d/2)`, here.similarity],
      ["is-grey tie-limit", "", "its limit, d → ∞", here.limit],
      ["is-grey tie-law", "dashed", "log law", here.law],
    ];
    const spot = (row) => (wide ? [46 + 202 * row, 12] : [88, 12 + 22 * row]);
    const parts = [
      axes,
      drawn(law, 1, end, "is-grey dashed tie-law"),
      drawn(law, end, FURTHEST, "is-grey dotted tie-law"),
      drawn(limit, 1, FURTHEST, "is-grey tie-limit"),
      polyline(k.slice(1, FURTHEST + 1).map((v, j) => [px(j + 1), py(floor(v))]), "is-plain tie-score"),
      line(px(offset), top, px(offset), top + height, "is-step thin tie-offset"),
      line(px(offset), top, px(offset), top + height, "reach", { "data-handle": "offset" }),
      circle(px(offset), py(floor(here.similarity)), 6, "dot is-step tie-offset tie-score", { "data-handle": "offset" }),
      ...rows.flatMap(([look, dash, name, value], row) => {
        const [tx, ty] = spot(row);
        const after = tx + (wide ? 24 : 34);
        return [
          line(tx, ty, after - 6, ty, `${look} ${dash}`),
          text(after, ty, name, look),
          text(wide ? after + [100, 112, 56][row] : tx + 222, ty, fixed(value, 3), `strong ${wide ? "" : "end"} ${look}`),
        ];
      }),
    ]; // prettier-ignore
    if (here.reach < FURTHEST) {
      const name = here.reach < base ? "πd / ln B" : "B";
      parts.push(line(px(here.reach), top + height * 0.5, px(here.reach), top + height, "axis dotted"));
      // The line of the offset strikes through no label: near it the number stands alone, or beyond.
      const gap = px(here.reach) - px(offset);
      const near = gap > 0 && gap < 125;
      const said = (near ? "" : `${name} = `) + here.reach.toFixed(0);
      const beyond = near && gap < 45;
      parts.push(text(px(here.reach) + (beyond ? 5 : -5), top + height - 12, said, `${beyond ? "" : "end"} muted halo`));
    } // prettier-ignore
    if (here.rise) {
      const [rx, ry] = [px(here.rise), py(floor(k[here.rise]))];
      parts.push(circle(rx, ry, 8, "ring is-plain"));
      // Nor through this one: the number stands on the other side of the ring.
      const [x, y, look] = px(offset) > rx ? [rx - 7, ry + 15, "end halo"] : [rx + 9, ry - 9, "halo"];
      parts.push(text(x, y, String(here.rise), look));
    }
    return { width: wide ? 640 : 360, height: wide ? 294 : 326, parts };
  }

  function says(state) {
    const { base, offset } = state;
    const rise = firstRise(state);
    const here = `At offset ${count(offset)} the similarity is ${fixed(numbers(state).similarity, 3)}`;
    const fall = fixed(Math.log(2) / Math.log(base), 3);
    const risen = rise ? `It first rises after offset ${rise} (○)` : `It does not rise up to offset ${FURTHEST}`;
    return `${here}. ${risen}. The straight line, the log law, falls by ln 2 / ln B = ${fall} each time the offset doubles.`;
  }

  /** K(Δ) = Σ cos(ω_i Δ) with the numbers of the state. */
  function formula(state) {
    const { d_model, offset } = state;
    const { similarity } = numbers(state);
    return [
      [`K(${count(offset)})`, "score", "the dot product of two rows at this offset"],
      " = Σ cos(ωᵢ · ",
      [count(offset), "offset", "the offset Δ"],
      `) = ${fixed((similarity * d_model) / 2, 1)} of ${count(d_model / 2)}`,
    ];
  }

  const widths = [64, 128, 256, 512, 1024];
  return {
    title: "Similarity of two positions against their offset",
    controls: {
      d_model: { label: "width d", choices: widths.map((d) => [d, String(d)]), value: 512 },
      base: { label: "base B", min: 100, max: 1e6, log: true, digits: 2, value: 10000 },
      offset: { label: "offset Δ", min: 1, max: FURTHEST, log: true, nudge: true, value: 5, part: "offset", moves: ["score", "limit", "law"] },
    },
    presets: [
      ["Double Δ", ({ offset }) => ({ offset: offset > 256 ? 1 : 2 * offset })],
      ["Go to the first rise", (state) => ({ offset: firstRise(state) || FURTHEST })],
    ],
    handles: {
      offset: { control: "offset", move: (_, { x }, wide) => ({ offset: axesOf(wide).back(x) }) },
    },
    numbers,
    draw,
    formula,
    says,
  };
});
