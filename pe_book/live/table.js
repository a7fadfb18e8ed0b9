// Thirty rows of the table (d = 16, B = 16) times T(Δx), a clock over each pair of columns, and the
// matrix beside it. Pull the table by any Δx, turn a clock, or transpose a block.
peLive.define("table", () => {
  const { arc, bearing, circle, count, g, heat, line, rect, text, tip } = peDraw;
  const [ROWS, PAIRS, FURTHEST] = [30, 8, 12];
  const OMEGA = Array.from({ length: PAIRS }, (_, i) => 16 ** (-i / PAIRS));
  const pair = (angle) => [Math.sin(angle), Math.cos(angle)];
  const isTransposed = ({ transposed }, i) => transposed[i] === "1";
  function block(state, i) {
    const [s, c] = pair(OMEGA[i] * state.step);
    return isTransposed(state, i) ? [[c, s], [-s, c]] : [[c, -s], [s, c]];
  } // prettier-ignore
  const times = ([s, c], [[a, b], [p, q]]) => [s * a + c * p, s * b + c * q];

  /** The blocks of the matrix, and each row of the table times it. */
  function numbers(state) {
    const blocks = OMEGA.map((_, i) => block(state, i));
    const rows = Array.from({ length: ROWS }, (_, x) =>
      OMEGA.flatMap((omega, i) => times(pair(omega * x), blocks[i]))
    );
    return { blocks, rows };
  }
  /** Where the hand of pair i of row x stands after the matrix. */
  const turned = (state, i) =>
    OMEGA[i] * (state.x + (isTransposed(state, i) ? -state.step : state.step));

  const SIZES = {
    true: { width: 640, height: 336, left: 32, top: 64, w: 24, h: 8, r: 21, dial: 26, matrix: [452, 96, 11] },
    false: { width: 360, height: 460, left: 25, top: 64, w: 20.75, h: 7.4, r: 18, dial: 24, matrix: [25, 320, 8] },
  }; // prettier-ignore
  const centre = ({ left, w, dial }, i) => [left + (2 * i + 1) * w, dial];

  /** The cells as they are in the wide drawing, fitted into these: twice the same text is sent once. */
  function fitted(rows, x, y, w, h, { left, top, w: width, h: height }) {
    const cells = heat(rows, left, top, width, height);
    if (w === width) return cells.join("");
    const [across, down] = [w / width, h / height];
    const transform = `matrix(${across} 0 0 ${down} ${x - across * left} ${y - down * top})`;
    return peDraw.tag("g", { class: "heat", transform }, cells.join(""));
  }

  function draw(state, wide, { lives } = {}) {
    const size = SIZES[wide];
    const { left, top, w, h, r } = size;
    const { x, step } = state;
    const { blocks, rows } = numbers(state);
    const bottom = top + ROWS * h;
    const table = g(
      "heat",
      fitted(rows, left, top, w, h, SIZES.true),
      rect(left, top, 2 * PAIRS * w, ROWS * h, "area", { "data-handle": "table" })
    ); // prettier-ignore
    const frame = (look) => rect(left - 1, top + x * h - 1, 2 * PAIRS * w + 2, h + 2, `ring ${look}`);
    const ticks = Array.from({ length: ROWS / 5 }, (_, k) => 5 * k).filter((row) => Math.abs(row - x) > 1.5);
    const name = (row, look) => text(left - 6, top + (row + 0.5) * h, count(Math.round(row)), `end ${look}`);
    const clocks = OMEGA.map((omega, i) => {
      const [cx, cy] = centre(size, i);
      const [from, to] = [omega * x, turned(state, i)];
      const grip = { "data-handle": `clock ${i}` };
      return g(
        "grip",
        rect(cx - w, 0, 2 * w, top - 4, "area", grip),
        circle(cx, cy, r, "dial"),
        line(cx, cy, ...tip(cx, cy, r, from), "hand is-position earlier tie-x"),
        arc(cx, cy, r * 0.45, from, to, "is-step tie-step tie-matrix", 5),
        line(cx, cy, ...tip(cx, cy, r, to), "hand is-step tie-moved tie-after"),
        rect(cx - w, 0, 2 * w, top - 4, "area", grip)
      );
    });
    const [mx, my, side] = size.matrix;
    const entries = blocks.map((rows_, i) => {
      const [bx, by] = [mx + 2 * i * side, my + 2 * i * side];
      const keys = lives
        ? { tabindex: 0, role: "switch", "aria-checked": isTransposed(state, i), "aria-label": `block ${i + 1} transposed` }
        : {};
      const [ox, oy, edge] = SIZES.true.matrix;
      const own = { left: ox + 2 * i * edge, top: oy + 2 * i * edge, w: edge, h: edge };
      const cells = fitted(rows_, bx, by, side, side, own);
      const mark = isTransposed(state, i) ? rect(bx - 1, by - 1, 2 * side + 2, 2 * side + 2, "ring is-error") : "";
      const reach = rect(bx - 3, by - 3, 2 * side + 6, 2 * side + 6, "area");
      return peDraw.tag("g", { class: "grip tie-matrix", "data-handle": `block ${i}`, ...keys }, g("heat", cells) + mark + reach);
    }); // prettier-ignore
    const isWhole = !state.transposed.includes("1") || !step;
    const beside = wide ? [mx, my - 16] : [mx + 16 * side + 12, my + 10];
    const where = `the rows x ${step < 0 ? "−" : "+"} ${count(Math.abs(step))}, where the rows x were`;
    const [lx, ly] = wide ? [mx, my + 16 * side + 18] : [beside[0], my + 36];
    const legend = [[lx, ly], [lx, ly + 19]]; // prettier-ignore
    const key = ([kx, ky], look, said) =>
      line(kx, ky, kx + 18, ky, `hand ${look}`) + text(kx + 24, ky, said, look);
    const parts = [
      g("clocks", ...clocks),
      table,
      ...["casing", "cased"].map(frame),
      ...ticks.map((row) => name(row, "muted")),
      name(x, "strong is-position"),
      text(left + PAIRS * w, bottom + 16, where, "mid muted"),
      rect(mx, my, 16 * side, 16 * side, "frame"),
      ...entries,
      text(...beside, `${isWhole ? "" : "not "}T(${count(step)})`, `strong tie-matrix ${isWhole ? "" : "is-error"}`),
      key(legend[0], "is-position earlier tie-x", `row ${count(Math.round(x))}`),
      key(legend[1], "is-step tie-moved tie-after", `row ${count(Math.round(x))} after T`),
      text(lx, ly + 40, "−1", "muted"),
      g("heat", ...heat([[-1, -0.5, 0, 0.5, 1]], lx + 24, ly + 34, 16, 12)),
      text(lx + 110, ly + 40, "1", "muted"),
    ];
    return { width: size.width, height: size.height, parts };
  }

  const listed = (words) =>
    words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
  function says(state) {
    const { step } = state;
    const x = Math.round(state.x);
    if (!step) return `T(0) leaves row ${x} where it is, and every other. Pull the table, or turn a clock.`;
    const [there, back] = [count(x + step), count(x - step)];
    const every = `every row x to x\u00a0${step < 0 ? "−" : "+"}\u00a0${count(Math.abs(step))}`;
    const flipped = OMEGA.flatMap((_, i) => (isTransposed(state, i) ? [String(i + 1)] : []));
    if (!flipped.length) return `One matrix takes row ${x} to row ${there}, and ${every}.`;
    const many = flipped.length > 1;
    const names = flipped.length > 3 ? `${flipped.length} blocks` : `Block${many ? "s" : ""} ${listed(flipped)}`;
    return `${names} ${many ? "are" : "is"} transposed: of row ${x}, ${many ? "their" : "its"} columns go to ${back}, the others to ${there}.`;
  } // prettier-ignore

  function formula(state) {
    const { x, step, transposed } = state;
    const wrong = transposed.includes("1") && step;
    return [
      [`PE(${count(x)})`, "x", "the row of the position x"],
      " · ",
      [`T(${count(step)})`, "matrix", "the matrix of the step Δx"],
      wrong ? " ≠ " : " = ",
      [`PE(${count(x + step)})`, "after", "the row of the position x + Δx"],
      " for ",
      [`Δx = ${count(step)}`, "step", "the step that T turns by"],
    ];
  }

  const within = (value) => Math.min(FURTHEST, Math.max(-FURTHEST, value));
  const flip = ({ transposed }, i) => ({
    transposed: [...transposed].map((digit, k) => (k === i ? 1 - digit : digit)).join(""),
  });
  const rowAt = ({ y }, { top, h }) => Math.min(ROWS - 1, Math.max(0, Math.floor((y - top) / h)));
  return {
    title: "A table of thirty rows, its clocks, and the matrix that moves it",
    controls: {
      step: { label: "step Δx", min: -FURTHEST, max: FURTHEST, step: 0.1, value: 0, part: "step", moves: ["matrix", "moved", "after"] },
      x: { label: "clocks of row x", min: 0, max: ROWS - 1, value: 12, part: "x", moves: ["moved", "after"] },
      transposed: { label: "transposed blocks", pattern: "[01]{8}", value: "0".repeat(PAIRS) },
    }, // prettier-ignore
    presets: [
      ["One row", ({ step }) => ({ step: step + 1 })],
      ["Half a row", ({ step }) => ({ step: step + 0.5 })],
      ["Transpose block 5", (state) => ({ step: state.step || 2, ...flip(state, 4) })],
    ],
    play: ({ step }, seconds) => ({ step: ((step + FURTHEST + 1.5 * seconds) % (2 * FURTHEST)) - FURTHEST }),
    handles: {
      table: {
        control: "step",
        free: true,
        taps: (_, place, wide) => ({ x: rowAt(place, SIZES[wide]) }),
        move(_, { y }, wide, __, { before, start }) {
          const { h } = SIZES[wide];
          return { x: rowAt(start, SIZES[wide]), step: within(before.step + (start.y - y) / h) };
        },
      },
      clock: {
        control: "step",
        free: true,
        taps: (state, _, __, i) => flip(state, i),
        move(state, pointer, wide, i) {
          const by = bearing(...centre(SIZES[wide], i), pointer) - turned(state, i);
          const short = (by - 2 * Math.PI * Math.round(by / (2 * Math.PI))) / OMEGA[i];
          return { step: within(state.step + (isTransposed(state, i) ? -short : short)) };
        },
      },
      block: {
        control: "transposed",
        taps: (state, _, __, i) => flip(state, i),
        move: () => ({}),
        key: (state, key, i) => (key === "Enter" || key === " " ? flip(state, i) : null),
      },
    },
    numbers,
    draw,
    formula,
    says,
  };
});
