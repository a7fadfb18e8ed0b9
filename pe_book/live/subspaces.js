// Words on a line U, positions on a line V. One matrix W is to send the word u to −1 and the position v
// to +1. While the lines differ it can, but its norm grows as they close; z is the vector of length 1
// that it stretches most. Where they coincide it cannot, and the price is the parallel sum.
peLive.define("subspaces", () => {
  const { arrow, bearing, circle, fixed, line, plot, polyline, text } = peDraw;
  const radians = (degrees) => (degrees * Math.PI) / 180;
  const norm = (degrees) => 1 / Math.sin(radians(degrees) / 2); // √(2 / (1 − cos θ))
  const price = (c) => c / (1 + c); // sc / (s + c), with s = 1

  function numbers({ angle, c }) {
    const half = radians(angle) / 2;
    const matrix = [-1, 1 / Math.tan(half)];
    return { matrix, norm: norm(angle), part: 1 / (2 * Math.sin(half)), price: price(c) };
  }
  const places = { true: { cx: 186, cy: 214, room: 172 }, false: { cx: 190, cy: 150, room: 140 } };

  /** What is drawn on the way to one line: the norm of W grows without bound there. */
  const kept = (state) => (state.angle ? { ...state, angle: Math.max(1, state.angle) } : state);
  function lines(state, wide) {
    const { cx, cy, room } = places[wide];
    const angle = radians(state.angle);
    const { part } = numbers(state);
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    const reach = wide ? 178 : 165;
    const below = Math.min(reach, 58 / Math.max(s, 0.01)); // the picture ends there
    const far = wide ? reach : reach * 0.9;
    const above = Math.min(far, (cy - 26) / Math.max(s, 0.01)); // and here its name stands
    const v = [cx - below * c, cy + below * s, cx + above * c, cy - above * s];
    const labels = [
      text(cx + reach - 4, cy + 16, "U: words", "end is-word tie-words"),
      text(cx + far * c, Math.max(12, cy - far * s - 14), "V: positions", state.angle > 45 ? "mid is-position tie-positions" : "end is-position tie-positions"),
    ]; // prettier-ignore
    const base = [
      line(cx - reach, cy, cx + reach, cy, "is-word thin dashed tie-words"),
      line(...v, "is-position thin dashed tie-positions"),
      ...labels,
      line(...v, "reach", { "data-handle": "angle" }),
      circle(cx + far * 0.82 * c, cy - far * 0.82 * s, 7, "dot is-position", { "data-handle": "angle" }),
    ];
    if (!state.angle)
      return [...base, arrow(cx, cy, cx + 90, cy, "is-plain"), text(cx - 50, cy - 18, "z: word and position", "mid")];
    const scale = Math.min(wide ? 70 : 58, room / (part + 0.2));
    const z = [-Math.sin(angle / 2), Math.cos(angle / 2)];
    const at = (x, y) => [cx + scale * x, cy - scale * y];
    const [zx, zy] = at(...z);
    const [wx] = at(-part, 0);
    const beside = (height) => Math.sqrt(Math.max(0, scale ** 2 - height ** 2)); // the circle, from its axis
    // The circle goes through no number: the word's stands further out where it would.
    const middle = (cx - wx) / 2;
    const half = Math.abs(middle - beside(16)) < 20 ? beside(16) + 20 : middle;
    const deep = half * Math.tan(angle); // V, below the middle of the word's part
    const [halfWidth, bottom] = [13, 23]; // px, of the number; if V crosses it, it goes below V
    const under = (deep * (half - halfWidth)) / half < bottom ? deep + 18 : 16;
    const high = Math.max(14, (cy - zy) / 2 + 6); // of the position's number, above U
    const [vx, vy] = at(c, s);
    return [
      circle(cx, cy, scale, "axis"),
      ...base,
      circle(cx + scale, cy, 4, "dot is-word"),
      text(cx + scale + 5, cy + 15, "u", "is-word"),
      circle(vx, vy, 4, "dot is-position"),
      text(vx + 15 * Math.cos(angle + 0.6), vy - 15 * Math.sin(angle + 0.6), "v", "mid is-position"),
      arrow(cx, cy, wx, cy, "is-word tie-words"),
      arrow(wx, cy, zx, zy, "is-position tie-positions"),
      arrow(cx, cy, zx, zy, "is-plain"),
      text(zx, zy - 14, "z", "mid strong"),
      text(cx - half, cy + under, fixed(part), "mid is-word"),
      text(Math.min((wx + zx) / 2 - 10, cx - beside(high - 8) - 6), cy - high, fixed(part), "end is-position"),
    ];
  }

  const frames = { true: [424, 40, 198, 196], false: [44, 240, 290, 120] };
  const axesOf = (wide) => {
    const [left, top, width, height] = frames[wide];
    const x = { range: [0, 90], ticks: [0, 30, 60, 90].map((v) => [v, `${v}°`]), label: "angle between U and V" };
    return plot({ left, top, width, height, x, y: { range: [1, 120], log: true, ticks: [1, 10, 100] } });
  };
  const ANGLES = Array.from({ length: 90 }, (_, k) => k + 1);

  function side(state, wide) {
    const [left, top, width, height] = frames[wide];
    const head = (said, look) => text(left - 20, top - 22, said, look);
    if (state.angle) {
      const { axes, px, py } = axesOf(wide);
      const at = circle(px(state.angle), py(norm(state.angle)), 7, "dot is-plain", { "data-handle": "norm" });
      const curve = polyline(ANGLES.map((v) => [px(v), py(norm(v))]), "is-plain");
      return [axes, curve, at, head(`norm of W: ${fixed(norm(state.angle))}`, "strong")];
    }
    const x = { range: [0, 4], ticks: [0, 1, 2, 3, 4], label: "variance c of the positions" };
    const { axes, px, py } = plot({ left, top, width, height, x, y: { range: [0, 2], ticks: [0, 1, 2] } });
    const powers = Array.from({ length: 41 }, (_, k) => k / 10);
    return [
      axes,
      polyline([[px(0), py(1)], [px(4), py(1)]], "is-word dashed thin"),
      polyline([[px(0), py(0)], [px(2), py(2)]], "is-position dashed thin"),
      text(px(4), py(1) - 12, "words: s = 1", "end is-word"),
      text(px(2) + 8, py(1.85), "positions: c", "is-position"),
      polyline(powers.map((c) => [px(c), py(price(c))]), "is-plain"),
      circle(px(state.c), py(price(state.c)), 7, "dot is-plain"),
      head(`price sc/(s + c): ${fixed(price(state.c))}`, "strong"),
    ]; // prettier-ignore
  }

  /** What z is made of; on one line, the price with its numbers. */
  function formula(state) {
    const { part, price } = numbers(state);
    const [word, position] = [["words", "of the words"], ["positions", "of the positions"]];
    const term = (words, [lights, of], what) => [words, lights, `${what} ${of}`];
    if (state.angle)
      return [
        "z = ", term(`−${fixed(part)} u`, word, "the part of z on the line"),
        " + ", term(`${fixed(part)} v`, position, "the part of z on the line"),
      ]; // prettier-ignore
    const c = fixed(state.c, 1);
    return [
      term("1", word, "the variance s"), " · ", term(c, position, "the variance c"),
      ` / (1 + ${c}) = ${fixed(price)}`,
    ]; // prettier-ignore
  }

  return {
    title: "A line of words, a line of positions, and one matrix for both",
    controls: {
      angle: { label: "angle between U and V", min: 0, max: 90, value: 60, unit: "°", part: "positions" },
      c: {
        label: "variance c of the positions",
        min: 0.1,
        max: 4,
        step: 0.1,
        value: 0.5,
        part: "positions",
        show: (v) => fixed(v, 1),
        when: ({ angle }) => angle === 0,
      },
    },
    presets: [
      ["Right angle", { angle: 90 }],
      ["Nearly parallel", { angle: 8 }],
      ["One line", { angle: 0 }],
    ],
    handles: {
      angle: {
        control: "angle",
        move(_, pointer, wide) {
          const { cx, cy } = places[wide];
          const turned = 90 - (bearing(cx, cy, pointer) * 180) / Math.PI;
          return { angle: turned > 90 ? turned - 180 : turned };
        },
      },
      norm: { control: "angle", move: (_, { x }, wide) => ({ angle: Math.max(1, axesOf(wide).back(x)) }) },
    },
    numbers,
    formula,
    draw: (state, wide) => ({
      width: wide ? 640 : 360,
      height: wide ? 288 : 406,
      parts: [...lines(kept(state), wide), ...side(kept(state), wide)],
    }),
    says(state) {
      const { matrix, norm, part, price } = numbers(state);
      if (!state.angle)
        return `Every z is a word and a position, and is wanted at −1 and at +1. No W does both: the best leaves 4 · sc/(s + c) = ${fixed(4 * price)} on average.`;
      const entries = matrix.map((v) => fixed(v)).join(", ");
      return `W = [${entries}]ᵀ sends u to −1 and v to +1. The vector z, of norm 1, is a word and a position of norm ${fixed(part)} each, and W makes it ${fixed(norm)} long.`;
    },
  };
});
