// Four hands of MiniLM's learned table, read off ten coordinates of each row (data/crank.js), and what
// the matrix that shifts the first half of the table predicts in the second.
peLive.define("crank", (data) => {
  const { bearing, circle, count, fixed, g, line, path, rect, tableOf, text } = peDraw;
  const { first: FIRST, half: HALF, turns: TURNS } = data;
  const [ROWS, SHIFT, REAL, IMAGINARY] = [data.rows, data.shift, data.real, data.imaginary].map(tableOf);
  const LAST = FIRST + ROWS.length - 1;
  const [WIDTH, MOST] = [512, 40]; // positions of the table; steps that are predicted at once

  // ---- Hands ----------------------------------------------------------------------------------

  const columns = (matrix) => Array.from(matrix[0], (_, k) => Array.from(matrix, (row) => row[k]));
  const dot = (row, column) => column.reduce((sum, value, k) => sum + value * row[k], 0);
  const [ACROSS, UP, STEPS] = [IMAGINARY, REAL, SHIFT].map(columns);
  /** The hands of a row: for each how far it points to the right, and how far up. */
  const handsOf = (row) => TURNS.map((_, i) => [dot(row, ACROSS[i]), dot(row, UP[i])]);
  const HANDS = ROWS.map(handsOf);
  /** The row that the matrix makes of the row of a position, so many steps on. */
  function predicted(from, steps) {
    let row = ROWS[from - FIRST];
    for (let k = 0; k < steps; k++) row = STEPS.map((column) => dot(row, column));
    return row;
  }
  /** Whether a position lies in the half that the matrix has not seen. */
  const isUnseen = (x) => x > HALF;

  const shares = new Map();
  /** Which share of the energy of the second half the matrix explains, so many steps at a time. */
  function explained(steps) {
    if (!shares.has(steps)) {
      let [missed, whole] = [0, 0];
      for (let x = HALF + 1 + steps; x <= LAST; x++) {
        const row = ROWS[x - FIRST];
        predicted(x - steps, steps).forEach((value, k) => {
          missed += (value - row[k]) ** 2;
          whole += row[k] ** 2;
        });
      }
      shares.set(steps, 1 - missed / whole);
    }
    return shares.get(steps);
  }

  const angle = ([across, up]) => Math.atan2(across, up);
  const short = (by) => by - 2 * Math.PI * Math.round(by / (2 * Math.PI));
  /** The hands between two positions: each turns the short way, and its length grows evenly. */
  function handsAt(x) {
    const [low, share] = [Math.min(LAST - 1, Math.floor(x)), x - Math.min(LAST - 1, Math.floor(x))];
    const next = HANDS[low - FIRST + 1];
    return HANDS[low - FIRST].map((hand, i) => {
      const turn = angle(hand) + share * short(angle(next[i]) - angle(hand));
      const length = Math.hypot(...hand) + share * (Math.hypot(...next[i]) - Math.hypot(...hand));
      return [length * Math.sin(turn), length * Math.cos(turn)];
    });
  }
  const ghosts = ({ x, steps }) => handsOf(predicted(Math.round(x) - steps, steps));
  const numbers = (state) => ({
    hands: handsAt(state.x),
    ghosts: isUnseen(state.x) ? ghosts(state) : null,
    explained: explained(state.steps),
  });

  // ---- The picture ----------------------------------------------------------------------------

  const SIZES = {
    true: {
      width: 640, height: 304, r: 50, dials: [[80, 84], [240, 84], [400, 84], [560, 84]],
      ratios: [[160, 84], [320, 84], [480, 84]], under: 88, tape: [16, 244, 608, 34],
    },
    false: {
      width: 360, height: 446, r: 47, dials: [[88, 78], [272, 78], [88, 244], [272, 244]],
      ratios: [[180, 78], [180, 160], [180, 244]], under: 80, tape: [8, 372, 344, 34],
    },
  }; // prettier-ignore
  const UNIT = 50; // whole numbers of a path in the median length of a hand
  const POINTS = TURNS.map((_, i) => {
    const places = HANDS.map((hands) => [Math.round(UNIT * hands[i][0]), Math.round(-UNIT * hands[i][1])]);
    const steps = places.map(([x, y], k) => [x - (k && places[k - 1][0]), y - (k && places[k - 1][1])]);
    return steps.map(([dx, dy]) => `m${dx}${dy < 0 ? "" : " "}${dy}h0`).join("");
  });

  function draw(state, wide) {
    const { x, steps } = state;
    const size = SIZES[wide];
    const { r } = size;
    const hands = handsAt(x);
    const ghost = isUnseen(x) ? ghosts(state) : [];
    const dials = size.dials.map(([cx, cy], i) => {
      const at = ([across, up]) => [cx + r * across, cy - r * up];
      const trail = [9, 8, 7, 6, 5, 4, 3, 2, 1].map((back) => Math.round(x) - back).filter((one) => one >= FIRST);
      const grip = { "data-handle": `hand ${i}` };
      return g(
        "grip",
        path(POINTS[i], "points", { transform: `translate(${cx} ${cy}) scale(${r / UNIT})` }),
        circle(cx, cy, r, "dial"),
        ...trail.map((one, k) => circle(...at(HANDS[one - FIRST][i]), 1.2 + 0.28 * k, "tip is-position")),
        ...(ghost[i] ? [line(cx, cy, ...at(ghost[i]), "hand earlier is-step"), circle(...at(ghost[i]), 9.5, "ring is-step")] : []),
        line(cx, cy, ...at(hands[i]), "hand is-position"),
        circle(...at(hands[i]), 6, "tip is-position"),
        rect(cx - r - 18, cy - r - 18, 2 * r + 36, 2 * r + 36, "area", grip),
        text(cx, cy + size.under, `a turn in ${fixed(TURNS[i], 0)}`, "mid")
      );
    }); // prettier-ignore
    const ratios = size.ratios.map(([cx, cy], i) =>
      g("ratio", text(cx, cy - 9, `${fixed(TURNS[i + 1] / TURNS[i], 0)} : 1`, "mid"), line(cx - 15, cy + 3, cx + 15, cy + 3, "thin"))
    ); // prettier-ignore
    const [left, top, width, height] = size.tape;
    const px = (position) => left + (width * position) / WIDTH;
    const said = `${steps === 1 ? "one step" : `${steps} steps`} ahead: ${fixed(100 * explained(steps), 1)} %`;
    const tape = [
      rect(left, top, width, height, "frame", { rx: 4 }),
      rect(px(FIRST), top, px(HALF) - px(FIRST), height, "tint is-position", { rx: 4 }),
      text(px(HALF / 2), top + height + 15, "the matrix is fitted here", "mid is-position"),
      text(px((HALF + WIDTH) / 2), top + height + 15, wide ? `and predicts this half, ${said}` : said, "mid is-step"),
      line(px(x), top - 8, px(x), top + height, "hand is-position"),
      circle(px(x), top + height / 2, 8, "tip is-position"),
      text(Math.min(px(x), left + width - 46), top - 18, `position ${count(Math.round(x))}`, `${px(x) < left + 46 ? "" : "mid"} strong is-position`),
      rect(left - 8, top - 5, width + 16, height + 10, "area", { "data-handle": "tape" }),
    ]; // prettier-ignore
    return { width: size.width, height: size.height, parts: [...dials, ...ratios, ...tape] };
  }

  const degrees = (hand) => Math.round(((angle(hand) * 180) / Math.PI + 360) % 360) % 360;
  function says(state) {
    const x = Math.round(state.x);
    const found = HANDS[x - FIRST];
    const stand = found.map((hand) => `${degrees(hand)}°`);
    const where = `At ${count(x)} the hands stand at ${stand.slice(0, -1).join(", ")} and ${stand.at(-1)}`;
    if (!isUnseen(x)) return `${where}. The matrix is fitted on this half.`;
    const off = ghosts(state).map((ghost, i) => Math.abs(short(angle(ghost) - angle(found[i]))));
    const most = Math.ceil((Math.max(...off) * 180) / Math.PI);
    const from = state.steps === 1 ? "the row before" : `${state.steps} rows before`;
    return `${where}, predicted from ${from} to within ${most}°.`;
  }

  const within = (x) => Math.min(LAST, Math.max(FIRST, x));
  return {
    title: "Four hands of a learned table of positions, and a matrix that turns them",
    controls: {
      x: { label: "position", min: FIRST, max: LAST, value: 140 },
      steps: { label: "steps predicted ahead", min: 1, max: MOST, value: 1, jumps: true },
    },
    presets: [
      ["Six on", ({ x }) => ({ x: x + 6 })],
      ["Into the second half", { x: 380 }],
    ],
    play: ({ x }, seconds) => ({ x: x < LAST ? within(x + 8 * seconds) : FIRST }),
    handles: {
      hand: {
        control: "x",
        free: true,
        move({ x }, pointer, wide, i) {
          const by = short(bearing(...SIZES[wide].dials[i], pointer) - angle(handsAt(x)[i]));
          return { x: within(x + (by * TURNS[i]) / (2 * Math.PI)) };
        },
      },
      tape: {
        control: "x",
        free: true,
        move(_, place, wide) {
          const [left, , width] = SIZES[wide].tape;
          return { x: within(((place.x - left) / width) * WIDTH) };
        },
      },
    },
    numbers,
    draw,
    says,
  };
});
