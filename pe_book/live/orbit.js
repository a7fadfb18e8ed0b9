// A code as a path of points, and the matrix of the distances between them. Equal distances make every
// diagonal of the matrix one colour. A chord joins x and x + 8: its length is read off one diagonal.
peLive.define("orbit", () => {
  const { circle, fixed, line, plot, polyline, tag, text } = peDraw;
  const [COUNT, OMEGA, CHORD] = [40, 0.3, 8];
  const LAST = COUNT - CHORD - 1; // the x of the last chord
  // The sequential map of pe_book/plots.py: violet to orange, lighter with each step.
  const SHADES_OF = [[36, 16, 80], [84, 39, 136], [145, 80, 154], [204, 117, 96], [233, 160, 79], [253, 223, 168]]; // prettier-ignore
  const SHADES = 64;

  const point = ({ decay, pitch, stretch }, x) => {
    const size = Math.exp(-decay * x);
    return [stretch * size * Math.sin(OMEGA * x), size * Math.cos(OMEGA * x), pitch * x];
  };
  const apart = (p, q) => Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
  function numbers(state) {
    const points = Array.from({ length: COUNT }, (_, x) => point(state, x));
    const distances = points.map((p) => points.map((q) => apart(p, q)));
    const chords = points.slice(CHORD).map((_, x) => distances[x][x + CHORD]);
    return { points, distances, chords };
  }

  /** A matrix as a picture of one pixel a cell, in the simplest format that browsers read. */
  function bitmap(matrix) {
    const most = Math.max(...matrix.flat());
    const int = (value) => [value & 255, (value >> 8) & 255, (value >> 16) & 255, 0];
    const palette = Array.from({ length: SHADES }, (_, shade) => {
      const place = (shade / (SHADES - 1)) * (SHADES_OF.length - 1);
      const k = Math.min(SHADES_OF.length - 2, Math.floor(place));
      const mix = SHADES_OF[k].map((v, c) => Math.round(v + (place - k) * (SHADES_OF[k + 1][c] - v)));
      return [...mix.reverse(), 0];
    });
    const start = 54 + 4 * SHADES;
    const shade = (v) => Math.round((v / most) * (SHADES - 1));
    const head = [start + COUNT ** 2, 0, start, 40, COUNT, COUNT].flatMap(int);
    const more = [1, 0, 8, 0, ...[0, COUNT ** 2, 0, 0, SHADES, 0].flatMap(int)];
    const cells = [...matrix].reverse().flatMap((row) => row.map(shade)); // the last row comes first
    return btoa(String.fromCharCode(66, 77, ...head, ...more, ...palette.flat(), ...cells));
  }

  /** Points moved and scaled so that they fill a frame, in one scale for both axes. */
  function fitted(points, [left, top, width, height]) {
    const across = points.map(([x]) => x);
    const down = points.map(([, y]) => y);
    const [minX, maxX] = [Math.min(...across), Math.max(...across)];
    const [minY, maxY] = [Math.min(...down), Math.max(...down)];
    const scale = Math.min(width / (maxX - minX), height / (maxY - minY));
    return points.map(([x, y]) => [
      left + width / 2 + scale * (x - (minX + maxX) / 2),
      top + height / 2 + scale * (y - (minY + maxY) / 2),
    ]);
  }

  const MAPS = { true: [380, 18, 240], false: [184, 18, 168] }; // left, top and side of the matrix
  function draw(state, wide) {
    const { points, distances, chords } = numbers(state);
    const [left, top, side] = MAPS[wide];
    const { x } = state;
    // The path, seen from the front; what the pitch adds goes to the right and a little up.
    const flat = points.map(([a, b, c]) => [a + 0.85 * c, -b - 0.25 * c]);
    const places = fitted(flat, wide ? [8, 18, 330, 168] : [6, 24, 158, 150]);
    const whole = Math.min(LAST, Math.round(x));
    const [from, to] = [places[whole], places[whole + CHORD]];
    const dot = ([cx, cy], look, r) => circle(cx, cy, r, `dot ${look}`);
    // The matrix, its diagonal, and the cell of this chord.
    const cell = side / COUNT;
    const edge = (k) => (k + 0.5) * cell;
    const [cx, cy] = [left + edge(whole + CHORD), top + edge(whole)];
    const cased = (draw) => [draw("casing"), draw("cased")];
    const diagonal = [left + edge(CHORD), top + edge(0), left + edge(COUNT - 1), top + edge(LAST)];
    const href = `data:image/bmp;base64,${bitmap(distances)}`;
    const most = Math.max(2, Math.ceil(Math.max(...chords)));
    const axes = plot({
      ...(wide ? { left: 40, top: 222, width: 298, height: 42 } : { left: 40, top: 240, width: 306, height: 42 }),
      x: { range: [0, LAST], ticks: [0, 10, 20, 30], label: "x" },
      y: { range: [0, most], ticks: [0, most] },
    });
    const parts = [
      polyline(places, "axis"),
      ...places.map((p) => dot(p, "is-plain", wide ? 3 : 2.5)),
      line(...from, ...to, "is-step"),
      dot(from, "is-position", 6),
      dot(to, "is-after-step", 6),
      tag("image", { x: left, y: top, width: side, height: side, href, class: "pixels" }),
      ...cased((look) => line(...diagonal, look)),
      ...cased((look) => circle(cx, cy, 7, `ring ${look}`)),
      circle(cx, cy, 18, "reach", { "data-handle": "chord" }),
      text(left, 8, "matrix of distances", "small muted"),
      axes.axes,
      text(40, wide ? 208 : 224, `length of the chord from x to x + ${CHORD}`, "is-step"),
      polyline(chords.map((v, k) => [axes.px(k), axes.py(v)]), "is-step"),
      circle(axes.px(whole), axes.py(chords[whole]), 5, "dot is-step"),
    ]; // prettier-ignore
    return { width: wide ? 640 : 360, height: wide ? 304 : 324, parts };
  }

  function says(state) {
    const { chords } = numbers(state);
    const [least, most] = [Math.min(...chords), Math.max(...chords)];
    const drift = state.pitch ? "drifts away" : "stays bounded";
    return most - least < 1e-9
      ? `Every chord of ${CHORD} steps is ${fixed(most)} long: each diagonal is one colour, and the path ${drift}.`
      : `Chords of ${CHORD} steps are from ${fixed(least)} to ${fixed(most)} long: the diagonals change colour as x grows.`;
  }

  const shape = (decay, pitch, stretch) => ({ decay, pitch, stretch });
  return {
    title: "A path of 40 points, and the matrix of their distances",
    controls: {
      decay: { label: "decay a step", min: 0, max: 0.08, step: 0.01, value: 0, show: (v) => fixed(v) },
      pitch: { label: "pitch", min: 0, max: 0.1, step: 0.01, value: 0, show: (v) => fixed(v) },
      stretch: { label: "stretch", min: 1, max: 2, step: 0.1, value: 1, show: (v) => fixed(v, 1) },
      x: { label: "chord from x", min: 0, max: LAST, value: 3 },
    },
    presets: [
      ["Circle", shape(0, 0, 1)],
      ["Damped spiral", shape(0.05, 0, 1)],
      ["Helix", shape(0, 0.06, 1)],
      ["Ellipse", shape(0, 0, 2)],
    ],
    play: ({ x }, seconds) => ({ x: x < LAST ? Math.min(LAST, x + 5 * seconds) : 0 }),
    handles: {
      chord: {
        control: "x",
        move(_, { x, y }, wide) {
          const [left, top, side] = MAPS[wide];
          return { x: ((x - left + (y - top)) / side) * (COUNT / 2) - CHORD / 2 - 0.5 };
        },
      },
    },
    numbers,
    draw,
    says,
  };
});
