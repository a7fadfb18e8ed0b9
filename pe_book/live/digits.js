// The four binary digits of a position, each as a hand. A hand turns evenly: its digit says on which side
// of the dial it is, and its sine how far on that side. Between the two, a steep curve grows soft.
peLive.define("digits", () => {
  const { bearing, circle, count, fixed, g, line, path, plot, polyline, r1, rect, text, tip } = peDraw;
  const [DIGITS, LAST] = [4, 31];
  const STEEP = 5;

  /** The bearing of a hand: half a turn every 2^i positions, and never on the border. */
  const turn = (x, i) => (Math.PI * (x + 0.5)) / 2 ** i;
  /** From the side that a number lies on (±1) to the number itself. */
  function softened(u, soft) {
    if (soft === 0) return u < 0 ? -1 : 1;
    const steep = (STEEP * (1 - soft)) / soft;
    return steep === 0 ? u : Math.tanh(steep * u) / Math.tanh(steep);
  }
  /** A digit as a number from 0 to 1: 1 on the left of its dial. */
  const value = (x, i, soft) => (1 - softened(Math.sin(turn(x, i)), soft)) / 2;
  const partner = (x, i, soft) => (1 - softened(Math.cos(turn(x, i)), soft)) / 2;
  const code = (x, { soft, read }) =>
    Array.from({ length: DIGITS }, (_, i) => [value(x, i, soft), ...(read === "both" ? [partner(x, i, soft)] : [])]).flat();
  const step = (x, state) => {
    const next = code(x + 1, state);
    return Math.hypot(...code(x, state).map((v, k) => next[k] - v));
  };
  const numbers = (state) => ({
    code: code(state.x, state),
    steps: Array.from({ length: LAST }, (_, x) => step(x, state)),
  });

  const SIZES = {
    true: { width: 640, height: 330, dial: [34, 34, 25], row: 58, plots: [110, 584], said: 638, low: 38 },
    false: { width: 360, height: 334, dial: [28, 34, 22], row: 58, plots: [94, 316], said: 356, low: 38 },
  }; // prettier-ignore
  const FINE = Array.from({ length: 8 * (LAST + 1) + 1 }, (_, k) => k / 8 - 0.5);

  function draw(state, wide) {
    const { x, soft, read } = state;
    const { width, height, dial, row, plots, said, low } = SIZES[wide];
    const [left, right] = plots;
    const px = (position) => left + ((right - left) * (position + 0.5)) / (LAST + 1);
    const rows = Array.from({ length: DIGITS }, (_, i) => {
      const [cx, cy, r] = [dial[0], dial[1] + i * row, dial[2]];
      const [top, tall] = [cy - 18, 36];
      const py = (v) => top + tall * (1 - v);
      const of = (f) => FINE.map((at) => [px(at), py(f(at))]);
      const [hx, hy] = tip(cx, cy, r, turn(x, i));
      const grip = { "data-handle": `hand ${i}` };
      return g(
        "grip",
        path(`M${cx} ${cy - r}A${r} ${r} 0 0 0 ${cx} ${cy + r}Z`, "tint side is-position"),
        circle(cx, cy, r, "dial"),
        text(cx + r + 7, cy, `2${"⁰¹²³"[i]}`, "muted"),
        line(cx, cy, hx, hy, "hand is-position"),
        circle(hx, hy, 4.5, "tip is-position"),
        rect(cx - r - 6, cy - row / 2, 2 * r + 12, row, "area", grip),
        line(left, py(0), right, py(0), "grid"),
        polyline(of((at) => value(at, i, 0)), "axis thin"),
        read === "both" ? polyline(of((at) => partner(at, i, soft)), "is-grey dotted") : "",
        polyline(of((at) => value(at, i, soft)), "is-position"),
        circle(px(x), py(value(x, i, soft)), 5, "dot is-position"),
        text(said, cy, fixed(value(x, i, soft), soft ? 2 : 0), "end strong is-position")
      );
    }); // prettier-ignore
    const top = dial[1] + DIGITS * row;
    const axes = plot({
      left, top, width: right - left, height: low,
      x: { range: [-0.5, LAST + 0.5], ticks: [0, 8, 16, 24, LAST], label: "" },
      y: { range: [0, 2], ticks: [0, 2] },
    }); // prettier-ignore
    const places = Array.from({ length: LAST }, (_, k) => [px(k), axes.py(step(k, state))]);
    const now = Math.min(LAST - 1, Math.round(x));
    const [nameLeft, nameMiddle] = [left - 30, top - 14];
    const here = r1(px(x));
    const gap = here < nameLeft + 175 ? `V${nameMiddle - 10}M${here} ${nameMiddle + 10}` : ""; // for the name
    const parts = [
      ...rows,
      axes.axes,
      polyline(places, "is-step"),
      ...places.map(([cx, cy]) => circle(cx, cy, 2.2, "tip is-step")),
      circle(px(now), axes.py(step(now, state)), 5, "dot is-step"),
      text(said, axes.py(1), fixed(step(now, state)), "end strong is-step"),
      path(`M${here} 6${gap}V${top + low}`, "is-position thin dashed"),
      text(nameLeft, nameMiddle, "distance from x to x + 1", "is-step halo"),
      rect(left, 0, right - left, top + low, "area", { "data-handle": "x" }),
    ];
    return { width, height, parts };
  }

  function says(state) {
    const { steps } = numbers(state);
    const digits = Array.from({ length: DIGITS }, (_, i) => value(Math.round(state.x), i, 0)).reverse().join("");
    const [least, most] = [Math.min(...steps), Math.max(...steps)];
    const at = `${count(Math.round(state.x))} is ${digits} in binary.`;
    return most - least < 1e-9
      ? `${at} With sine and cosine every step is ${fixed(most)} long.`
      : `${at} A step is between ${fixed(least)} and ${fixed(most)} long.`;
  } // prettier-ignore

  const within = (x) => Math.min(LAST, Math.max(0, x));
  return {
    title: "Four binary digits as hands, and what becomes of them as waves",
    controls: {
      x: { label: "position x", min: 0, max: LAST, value: 11 },
      soft: {
        label: "from digits to waves", min: 0, max: 1, step: 0.05, value: 0,
        show: (v) => (v === 0 ? "digits" : v === 1 ? "waves" : `${Math.round(100 * v)} %`),
      },
      read: {
        label: "what is read off each hand",
        choices: [["sine", "left or right"], ["both", "up or down, too"]],
        value: "sine",
      },
    }, // prettier-ignore
    presets: [
      ["Digits", { soft: 0, read: "sine" }],
      ["Waves", { soft: 1, read: "sine" }],
      ["Sine and cosine", { soft: 1, read: "both" }],
    ],
    play: ({ x }, seconds) => ({ x: x < LAST ? within(x + 3 * seconds) : 0 }),
    handles: {
      hand: {
        control: "x",
        free: true,
        move({ x }, pointer, wide, i) {
          const [cx, cy] = [SIZES[wide].dial[0], SIZES[wide].dial[1] + i * SIZES[wide].row];
          const by = bearing(cx, cy, pointer) - turn(x, i);
          return { x: within(x + ((by - 2 * Math.PI * Math.round(by / (2 * Math.PI))) * 2 ** i) / Math.PI) };
        },
      },
      x: {
        control: "x",
        free: true,
        move(_, place, wide) {
          const [left, right] = SIZES[wide].plots;
          return { x: within(((place.x - left) / (right - left)) * (LAST + 1) - 0.5) };
        },
      },
    },
    numbers,
    draw,
    says,
  };
});
