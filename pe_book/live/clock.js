// A wall of clocks (d = 8, B = 16). Linked to it: the row of the table, the blocks of T(Δx), and
// PE(x)T(Δx) beside PE(x + Δx). Each dial counts ω_i radians a position; 0 is up, and time runs
// clockwise, so the sine stands to the right and the cosine upwards.
peLive.define("clock", () => {
  const { arc, bearing, cell, circle, count, fixed, g, line, text, tip } = peDraw;
  const OMEGA = [0, 1, 2, 3].map((i) => 16 ** (-i / 4));

  const pair = (angle) => [Math.sin(angle), Math.cos(angle)];
  /** What the matrix makes of a pair: the row [s, c] times the block, or times its transpose. */
  const times = ([s, c], [[a, b], [p, q]]) => [s * a + c * p, s * b + c * q];
  function block(angle, transposed) {
    const [s, c] = pair(angle);
    return transposed ? [[c, s], [-s, c]] : [[c, -s], [s, c]];
  }
  const lands = ({ x, step, block }) => (block === "transposed" ? x - step : x + step);

  /** Every number of the picture, dial by dial. */
  const numbers = ({ x, step, block: way }) =>
    OMEGA.map((omega) => {
      const before = pair(omega * x);
      const matrix = block(omega * step, way === "transposed");
      return { before, matrix, moved: times(before, matrix), after: pair(omega * (x + step)) };
    });

  /** The place of a dial. */
  const dial = (wide, i) => (wide ? [124 + 129 * (i + 0.5), 76] : [90 * (i + 0.5), 64]);

  function draw(state, wide) {
    const { x, step } = state;
    const [r, w, h] = wide ? [48, 57, 24] : [35, 43, 23]; // of a dial, and of a cell
    const of = (name, at) => `${name}(${count(at)})`;
    const names = [of("T", step) + (state.block === "transposed" ? "ᵀ" : ""), of("PE", x)];
    names.push(`${names[1]} ${names[0]}`, of("PE", x + step));
    const looks = ["", "is-position", "is-step", "is-after-step"];
    const ties = ["tie-matrix", "tie-x", "tie-moved", "tie-after"];
    const label = (k, y) =>
      text(wide ? 114 : 4, y, names[k], `${wide ? "end" : "start"} strong ${looks[k]} ${ties[k]}`);
    // The rows below the dials: the block, then three rows of the table.
    const top = wide ? [142, 206, 244, 270] : [124, 192, 237, 282];
    const parts = names.map((_, k) =>
      wide ? label(k, top[k] + (k ? h / 2 : h)) : label(k, top[k] - 11)
    );
    numbers(state).forEach(({ before, matrix, moved, after }, i) => {
      const [cx, cy] = dial(wide, i);
      const [from, to] = [OMEGA[i] * x, OMEGA[i] * lands(state)];
      const hand = (angle, look, name) => {
        const [hx, hy] = tip(cx, cy, r, angle);
        const grip = { "data-handle": `${name} ${i}` };
        return g(
          `grip ${look}`,
          line(cx, cy, hx, hy, "reach", grip),
          line(cx, cy, hx, hy, "hand", grip),
          circle(hx, hy, 5, "tip", grip)
        );
      };
      const [ax, ay] = tip(cx, cy, r, OMEGA[i] * (x + step));
      const row = (y, [left, right], tie) =>
        g(tie, cell(cx - w, y, w, h, left), cell(cx, y, w, h, right));
      parts.push(
        text(cx, 12, `ω${"₀₁₂₃"[i]} = ${["1", "1/2", "1/4", "1/8"][i]}`, "mid muted"),
        circle(cx, cy, r, "dial"),
        line(cx, cy - r, cx, cy - r + 5, "axis"),
        arc(cx, cy, r * 0.5, from, to, "is-step tie-step tie-matrix"),
        hand(from, "is-position is-before tie-x", "x"),
        hand(to, "is-step tie-moved", "step"),
        circle(ax, ay, 9, "ring is-after-step tie-after"),
        row(top[0], matrix[0], "tie-matrix"),
        row(top[0] + h, matrix[1], "tie-matrix"),
        row(top[1], before, "tie-x"),
        row(top[2], moved, "tie-moved"),
        row(top[3], after, "tie-after")
      );
    });
    return { width: wide ? 640 : 360, height: wide ? 296 : 308, parts };
  }

  function says(state) {
    const { x, step } = state;
    const gap = Math.max(
      ...numbers(state).flatMap(({ moved, after }) => moved.map((v, k) => Math.abs(v - after[k])))
    );
    const transposed = state.block === "transposed";
    const way = transposed ? "With the transposed blocks, a step" : "A step";
    const turn = OMEGA.map((omega) => fixed(omega * (lands(state) - x)));
    const turns = `${turn.slice(0, -1).join(", ")} and ${turn.at(-1)} rad`;
    const there =
      `${way} of ${count(step)} turns the hands by ${turns}, ` +
      `to where they stand at position ${count(lands(state))}`;
    const product = transposed ? "PE(x)T(Δx)ᵀ" : "PE(x)T(Δx)";
    return gap < 0.005
      ? `${there}. ${product} is PE(x\u00a0+\u00a0Δx).`
      : `${there}, not at ${count(x + step)}. ${product} misses PE(x\u00a0+\u00a0Δx) by up to ${fixed(gap)}.`;
  }

  /** PE(x)T(Δx) = PE(x + Δx) with the numbers of the state. */
  function formula(state) {
    const { x, step } = state;
    const wrong = state.block === "transposed" && numbers(state).some(differs);
    return [
      [`PE(${count(x)})`, "x", "the row of the position x"],
      " · ",
      [`T(${count(step)})${state.block === "transposed" ? "ᵀ" : ""}`, "matrix", "the matrix of the step Δx"],
      wrong ? " ≠ " : " = ",
      [`PE(${count(x + step)})`, "after", "the row of the position x + Δx"],
      " for ",
      [`Δx = ${count(step)}`, "step", "the step that T turns by"],
    ];
  }
  const differs = ({ moved, after }) => moved.some((v, k) => Math.abs(v - after[k]) >= 0.005);

  /** A hand is pulled the short way round to where the pointer stands. */
  function turned(i, at, pointer, wide) {
    const by = bearing(...dial(wide, i), pointer) - OMEGA[i] * at;
    return (by - 2 * Math.PI * Math.round(by / (2 * Math.PI))) / OMEGA[i];
  }
  const within = (value, low, high) => Math.min(high, Math.max(low, value));
  const controls = {
    x: { label: "position x", min: 0, max: 30, value: 3, part: "x", moves: ["moved", "after"] },
    step: { label: "step Δx", min: -6, max: 6, value: 2, part: "step", moves: ["matrix", "moved", "after"] },
    block: {
      label: "block",
      choices: [["T", "T(Δx)"], ["transposed", "transposed"]],
      value: "T",
    },
  };
  return {
    title: "Four clocks, and the rows of the table that belong to their hands",
    controls,
    presets: [
      ["One step", { step: 1, block: "T" }],
      ["Same Δx, another x", ({ x }) => ({ x: x > 10 ? x - 9 : x + 8, block: "T" })],
      ["Wrong way round", { block: "transposed" }],
    ],
    play: ({ x }, seconds) => ({ x: (x + seconds) % 30 }),
    handles: {
      x: {
        control: "x",
        free: true,
        move: ({ x }, pointer, wide, i) => ({ x: within(x + turned(i, x, pointer, wide), 0, 30) }),
      },
      step: {
        control: "step",
        free: true,
        move(state, pointer, wide, i) {
          const by = turned(i, lands(state), pointer, wide);
          const more = state.block === "transposed" ? -by : by;
          return { step: within(state.step + more, -6, 6) };
        },
      },
    },
    numbers,
    draw,
    formula,
    says,
  };
});
