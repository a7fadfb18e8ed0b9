// The row of a position (d = 64, B = 10 000), its sines in float64, with float32 angles, and with the
// position itself in bfloat16; below, how far the two are off. Rounding is the processor's own.
peLive.define("formats", () => {
  const { circle, count, fixed, line, path, plot, polyline, text } = peDraw;
  const PAIRS = 32;
  const single = new Float32Array(1);
  const word = new Uint32Array(single.buffer);

  /** To bfloat16: the upper half of a float32, to the nearest, ties to even. */
  function bfloat16(value) {
    single[0] = value;
    word[0] = (word[0] + 0x7fff + ((word[0] >>> 16) & 1)) & 0xffff0000;
    return single[0];
  }
  const omega = Array.from({ length: PAIRS }, (_, i) => 10000 ** (-i / PAIRS));
  const { fround } = Math;

  function numbers({ position }) {
    const held = bfloat16(position);
    const exact = omega.map((w) => Math.sin(position * w));
    const angles = omega.map((w) => fround(Math.sin(fround(fround(position) * fround(w)))));
    const half = omega.map((w) => Math.sin(held * w));
    const worst = (row) => Math.max(...row.map((v, i) => Math.abs(v - exact[i])));
    return { held, exact, angles, half, errors: [worst(angles), worst(half)] };
  }

  const raised = (power) => String(power).replace(/[-\d]/g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
  /** A size with two digits that count, as 1.2·10⁻³. */
  function small(value) {
    if (value === 0 || value >= 0.01) return fixed(value);
    const [digits, power] = value.toExponential(1).split("e");
    return `${digits}·10${raised(Number(power))}`;
  }

  function draw(state, wide) {
    const { exact, angles, half, errors } = numbers(state);
    const width = wide ? 580 : 312;
    const left = wide ? 52 : 44;
    const x = { range: [-0.5, PAIRS - 0.5], ticks: [0, 8, 16, 24, 31], label: "" };
    const top = wide ? 34 : 60;
    const rows = plot({ left, top, width, height: wide ? 112 : 110, x, y: { range: [-1.1, 1.1], ticks: [-1, 0, 1] } });
    const ticks = [-9, -6, -3, 0].map((power) => [10 ** power, power ? `10${raised(power)}` : "1"]);
    const under = plot({
      left,
      top: wide ? 192 : 214,
      width,
      height: wide ? 84 : 90,
      x: { ...x, label: "pair i" },
      y: { range: [1e-10, 10], log: true, ticks },
    });
    const corner = (middle) => Math.round(middle * 10) / 10 - 4;
    const marks = [
      (cx, cy) => circle(cx, cy, wide ? 4 : 3, "dot is-plain"),
      (cx, cy) => path(`M${corner(cx)} ${corner(cy)}l8 8m0-8l-8 8`, "is-error"),
    ];
    const series = [angles, half].flatMap((row, which) =>
      row.flatMap((v, i) => {
        const off = Math.abs(v - exact[i]);
        const below = off >= 1e-10 ? marks[which](under.px(i), under.py(off)) : "";
        return [marks[which](rows.px(i), rows.py(v)), below];
      })
    );
    const thick = polyline(exact.map((v, i) => [rows.px(i), rows.py(v)]), "exact is-position");
    const bar = (cx, cy) => line(cx - 8, cy, cx + 6, cy, "exact is-position");
    const names = [
      "exact sine",
      `float32 angles: off by ${small(errors[0])}`,
      `bfloat16 position: off by ${small(errors[1])}`,
    ];
    const looks = ["is-position", "is-plain", "is-error"];
    const spots = wide ? [[60, 12], [166, 12], [414, 12]] : [[14, 10], [12, 28], [12, 46]]; // prettier-ignore
    const legends = [bar, ...marks].map((mark, k) => {
      const [cx, cy] = spots[k];
      return mark(cx, cy) + text(cx + 12, cy, names[k], looks[k]);
    });
    const parts = [
      rows.axes,
      under.axes,
      thick,
      ...series,
      ...legends,
      text(4, wide ? 182 : 202, "error", "muted"),
    ];
    return { width: wide ? 640 : 360, height: wide ? 320 : 348, parts };
  }

  const preset = (position, name = count(position)) => [name, { position }];
  return {
    title: "The sines of one row, in three formats",
    controls: {
      position: { label: "position", min: 1, max: 2 ** 26, log: true, nudge: true, jumps: true, value: 10000 },
    },
    presets: [preset(256), preset(257), preset(10001), preset(2 ** 24, "2²⁴"), preset(2 ** 24 + 1, "2²⁴ + 1")],
    numbers,
    draw,
    says(state) {
      const { held, errors } = numbers(state);
      const { position } = state;
      const kept = held === position ? "bfloat16 stores the position exactly" : `bfloat16 makes it ${count(held)}`;
      const single32 = fround(position) === position ? "" : ` float32 makes it ${count(fround(position))}.`;
      return `Position ${count(position)}: ${kept}.${single32} Largest errors: ${small(errors[0])} with float32 angles, ${small(errors[1])} with a bfloat16 position.`;
    },
  };
});
