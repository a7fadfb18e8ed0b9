// The table that stays beside the tour, in five faces: its rows and the matrix of a step; their dot
// products; the rows that MiniLM learned; rows added to words; and queries turned. One pull moves each.
peLive.define("companion", (data) => {
  const { bearing, circle, count, fixed, g, heat, line, rect, tableOf, tag, text, tip } = peDraw;
  const [ROWS, FURTHEST] = [30, 12];
  const SENTENCE = "the dog sees the cat and the cat sees the dog".split(" ");

  // ---- What the faces compute -----------------------------------------------------------------

  const dot = (one, other) => one.reduce((sum, value, j) => sum + value * other[j], 0);
  const products = (rows, others) => rows.map((row) => others.map((other) => dot(row, other)));
  const add = (rows, others) => rows.map((row, x) => row.map((value, j) => value + others[x][j]));
  /** The block of each pair of columns: it turns the pair by an angle and changes its length. */
  const blocksOf = ({ omega, factors }, step) =>
    omega.map((speed, i) => {
      const length = factors ? factors[i] ** step : 1;
      const [s, c] = [length * Math.sin(speed * step), length * Math.cos(speed * step)];
      return [[c, -s], [s, c]];
    }); // prettier-ignore
  const times = (row, blocks) =>
    blocks.flatMap(([[a, b], [p, q]], i) => {
      const [s, c] = [row[2 * i], row[2 * i + 1]];
      return [s * a + c * p, s * b + c * q];
    });
  const turned = (face, step) => face.rows.map((row) => times(row, blocksOf(face, step)));
  /** Blocks on the diagonal of a matrix. */
  function wholeOf(blocks) {
    const whole = blocks.flatMap(() => [0, 1].map(() => Array(2 * blocks.length).fill(0)));
    blocks.forEach((block, i) => block.forEach((row, k) => whole[2 * i + k].splice(2 * i, 2, ...row)));
    return whole;
  }

  const omega = Array.from({ length: 8 }, (_, i) => 16 ** (-i / 8));
  /** A row of the width of the table, turned to each place from 0 on. */
  const along = (row, length = ROWS) =>
    Array.from({ length }, (_, x) => times(row, blocksOf({ omega }, x)));
  const zero = omega.flatMap(() => [0, 1]);
  const [WORDS, [QUERY, KEY]] = [data.words, data.head].map(tableOf);
  const kinds = [...new Set(SENTENCE)];
  const words = SENTENCE.map((word) => [...WORDS[kinds.indexOf(word)]]);
  const largest = (rows) => Math.max(...rows.flat().map(Math.abs));

  /** Each face: the rows that its hands stand for and how fast they turn, what its table shows after
      a step, the matrix below, and the number in either that has the full colour. */
  const FACES = {
    table: {
      omega,
      rows: along(zero),
      names: ["Rows", (step) => `T(${count(step)}) moves every row`],
      matrix: (step) => wholeOf(blocksOf({ omega }, step)),
    },
    products: {
      omega,
      rows: along(zero),
      names: ["Rows", "Each row times each row"],
      matrix: (_, rows) => products(rows, rows),
      most: 8,
    },
    learned: {
      omega: data.angles,
      factors: data.factors,
      rows: tableOf(data.learned).map((row) => [...row]),
      first: 1,
      full: 1.4,
      names: ["MiniLM’s rows", "One matrix moves all"],
      matrix: (step) => wholeOf(blocksOf(FACES.learned, step)),
    },
    added: {
      omega,
      rows: along(zero, SENTENCE.length),
      shown: (rows) => add(words, rows),
      full: 2,
      names: ["Words plus rows", "Each sum times each sum"],
      matrix: (_, rows) => products(rows, rows),
      most: 16,
    },
    turned: {
      omega,
      rows: along([...QUERY]),
      names: ["One query at", "Query at m times key at n"],
      matrix: (step) => products(turned(FACES.turned, step), turned({ omega, rows: along([...KEY]) }, step)),
    },
  }; // prettier-ignore
  FACES.turned.full = largest(FACES.turned.rows);
  FACES.turned.most = largest(FACES.turned.matrix(0));
  const isSquare = ({ most }) => most !== undefined; // the rows below are those above

  function numbers({ face: name, step }) {
    const face = FACES[name];
    const codes = turned(face, step);
    const rows = face.shown ? face.shown(codes) : codes;
    return { codes, rows, matrix: face.matrix(step, rows) };
  }
  const firstOf = ({ face }) => FACES[face].first ?? 0;
  const rowOf = (state) => {
    const last = FACES[state.face].rows.length - 1;
    return Math.min(last, Math.max(0, Math.round(state.x) - firstOf(state)));
  };
  /** The row that a row is multiplied with, in the sentence below. */
  const otherOf = (row) => (row < 3 ? row + 3 : row - 3);

  // ---- The drawing ----------------------------------------------------------------------------

  const SIZES = {
    true: { width: 640, height: 322, left: 42, top: 78, across: 368, down: 240, r: 20, dial: 48, side: 184, matrix: [452, 100] },
    false: { width: 256, height: 481, left: 40, top: 56, across: 208, down: 180, r: 11, dial: 37, side: 210, matrix: [40, 266] },
  }; // prettier-ignore
  const centre = ({ left, across, dial }, count, i) => [left + ((i + 0.5) * across) / count, dial];
  const scaled = (rows, most = 1) => rows.map((row) => row.map((value) => value / most));

  /** One face; what can be taken hold of is its own. */
  function layer(state, wide, grips) {
    const size = SIZES[wide];
    const { left, top, across, down, r, side, matrix: [mx, my] } = size; // prettier-ignore
    const face = FACES[state.face];
    const { codes, rows, matrix } = numbers(state);
    const [n, pairs, row] = [rows.length, face.omega.length, rowOf(state)];
    const [w, h, cell] = [across / rows[0].length, down / n, side / matrix.length];
    const grip = (name) => (grips ? { "data-handle": name } : {});
    const longest = Math.max(...face.rows.map((one) => Math.hypot(...one.slice(0, 2))), 1);
    const clocks = face.omega.map((_, i) => {
      const [cx, cy] = centre(size, pairs, i);
      const hand = (all) => {
        const [s, c] = all[row].slice(2 * i, 2 * i + 2);
        return tip(cx, cy, r * Math.min(1, Math.hypot(s, c) / longest), Math.atan2(s, c));
      };
      return g(
        "grip",
        circle(cx, cy, r, "dial"),
        line(cx, cy, ...hand(face.rows), "hand is-position earlier tie-x"),
        line(cx, cy, ...hand(codes), "hand is-step tie-moved tie-after"),
        rect(cx - across / pairs / 2, cy - r - 3, across / pairs, 2 * r + 6, "area", grip(`clock ${i}`))
      );
    });
    const first = firstOf(state);
    const said = (k) => (state.face === "added" ? SENTENCE[k] : count(k + first));
    const every = state.face === "added" ? 1 : 5;
    const labels = rows.map((_, k) => {
      const [isHere, isNear] = [k === row, Math.abs(k - row) < 3];
      if (!isHere && every > 1 && ((k + first) % every || isNear)) return "";
      return text(left - 6, top + (k + 0.5) * h, said(k), isHere ? "end strong is-position" : "end muted");
    });
    const places = state.step ? `x ${state.step < 0 ? "−" : "+"} ${count(Math.abs(state.step))}` : "x";
    const ring = (x, y, width, height) =>
      ["casing", "cased"].map((look) => rect(x, y, width, height, `ring ${look}`)).join("");
    const [above, below] = face.names;
    const square = [
      ring(mx + otherOf(row) * cell - 1, my + row * cell - 1, cell + 2, cell + 2),
      rect(mx, my, side, side, "area", grip("matrix")),
    ];
    return [
      text(left, 10, `${above} ${places}`, "strong tie-after"),
      g("clocks", ...clocks),
      g("heat", ...heat(scaled(rows, face.full), left, top, w, h)),
      ring(left - 1, top + row * h - 1, across + 2, h + 2),
      rect(left, top, across, down, "area", grip("table")),
      ...labels,
      text(mx, my - 14, below.call ? below(state.step) : below, "strong tie-matrix"),
      rect(mx, my, side, side, "frame"),
      g("heat tie-matrix", ...heat(scaled(matrix, face.most), mx, my, cell, cell)),
      ...(isSquare(face) ? square : []),
    ].join("");
  }
  function draw(state, wide, { from = state, share = 1 } = {}) {
    const { width, height } = SIZES[wide];
    if (from.face === state.face || share === 1) return { width, height, parts: [layer(state, wide, true)] };
    const fading = (opacity, one, grips) => tag("g", { opacity }, layer(one, wide, grips));
    const leaving = { ...state, face: from.face };
    return { width, height, parts: [fading(share, state, true), fading(1 - share, leaving, false)] };
  }

  // ---- What it says ---------------------------------------------------------------------------

  const SAYS = {
    table: ({ step }, x) =>
      step
        ? `One matrix takes row ${x} to row ${count(x + step)}, and every row as far.`
        : "Pull the table, or turn a clock: one matrix moves every row.",
    products: ({ step }, x, other, { matrix }) =>
      `Row ${x} times row ${other} is ${fixed(matrix[x][other])}` +
      (step ? ", as before: all rows have moved by the same step." : ", and so is every pair as far apart. Pull the table."),
    learned({ step }, row) {
      if (!step) return "Thirty rows that training made. Pull: does one matrix move these, too?";
      const { rows } = FACES.learned;
      const to = rows[row + step];
      if (!to) return `The matrix has taken every row on by ${count(step)}.`;
      const found = times(rows[row], blocksOf(FACES.learned, step));
      const missed = Math.hypot(...to.map((value, j) => value - found[j])) / Math.hypot(...to);
      return `The matrix takes row ${row + 1} to row ${row + step + 1}, and misses it by ${Math.round(100 * missed)} %.`;
    },
    added(state, row, other, { matrix }) {
      const now = fixed(matrix[row][other]);
      const pair = `“${SENTENCE[row]}” at ${count(row + state.step)} times “${SENTENCE[other]}” at ${count(other + state.step)} is ${now}`;
      if (!state.step) return `${pair}. Pull: does it stay?`;
      return `${pair}, and was ${fixed(numbers({ ...state, step: 0 }).matrix[row][other])} at ${row} and ${other}.`;
    },
    turned: ({ step }, x, other, { matrix }) =>
      `The query at ${count(x + step)} scores ${fixed(matrix[x][other])} with the key at ${count(other + step)}` +
      (step ? `, as it did at ${x} and ${other}.` : ", and so does every pair as far apart. Pull: does it stay?"),
  }; // prettier-ignore
  function says(state) {
    const row = rowOf(state);
    return SAYS[state.face](state, row, otherOf(row), numbers(state));
  }

  // ---- Hands ----------------------------------------------------------------------------------

  const within = (value) => Math.min(FURTHEST, Math.max(-FURTHEST, value));
  const rowAt = (y, top, down, state) => {
    const n = FACES[state.face].rows.length;
    return firstOf(state) + Math.min(n - 1, Math.max(0, Math.floor(((y - top) / down) * n)));
  };
  const inTable = (state, { y }, wide) => rowAt(y, SIZES[wide].top, SIZES[wide].down, state);
  const inMatrix = (state, { y }, wide) => rowAt(y, SIZES[wide].matrix[1], SIZES[wide].side, state);
  return {
    title: "The table beside the text",
    controls: {
      face: { label: "face", pattern: Object.keys(FACES).join("|"), value: "table" },
      step: { label: "step Δx", min: -FURTHEST, max: FURTHEST, step: 0.1, value: 0, part: "step", moves: ["matrix", "moved", "after"] },
      x: { label: "row x", min: 0, max: ROWS - 1, value: 6, part: "x", moves: ["moved", "after"] },
    }, // prettier-ignore
    presets: [["One row", ({ step }) => ({ step: step + 1 })]],
    play: ({ step }, seconds) => ({ step: ((step + FURTHEST + 1.5 * seconds) % (2 * FURTHEST)) - FURTHEST }),
    handles: {
      table: {
        control: "step",
        free: true,
        taps: (state, place, wide) => ({ x: inTable(state, place, wide) }),
        move(state, { y }, wide, _, { before, start }) {
          const by = ((start.y - y) / SIZES[wide].down) * FACES[state.face].rows.length;
          return { x: inTable(state, start, wide), step: within(before.step + by) };
        },
      },
      clock: {
        control: "step",
        free: true,
        move(state, pointer, wide, i) {
          const { omega: speeds } = FACES[state.face];
          const [s, c] = numbers(state).codes[rowOf(state)].slice(2 * i, 2 * i + 2);
          const by = bearing(...centre(SIZES[wide], speeds.length, i), pointer) - Math.atan2(s, c);
          return { step: within(state.step + (by - 2 * Math.PI * Math.round(by / (2 * Math.PI))) / speeds[i]) };
        },
      },
      matrix: {
        control: "x",
        move: (state, place, wide) => ({ x: inMatrix(state, place, wide) }),
      },
    },
    numbers,
    draw,
    says,
  };
});
