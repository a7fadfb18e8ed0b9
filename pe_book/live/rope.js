// A query at m and a key at n, four pairs each (d = 8, B = 16), turned as rotary embeddings turn them.
// The key is made so that the score is highest for a query one ahead of it. Turned alike, the score
// depends on m − n alone; with the pairs mixed up it depends on m as well.
peLive.define("rope", () => {
  const { arc, bearing, circle, count, fixed, g, line, plot, polyline, text } = peDraw;
  const OMEGA = [0, 1, 2, 3].map((i) => 16 ** (-i / 4));
  const QUERY = [0, 1, 0, 1, 0, 1, 0, 1];
  const KEY = OMEGA.flatMap((omega) => [Math.sin(omega), Math.cos(omega)]);
  const LAST = 30;

  /** The places of pair i in a row of 8: neighbours, or one from each half. */
  const pairs = (split) => OMEGA.map((_, i) => (split ? [i, i + 4] : [2 * i, 2 * i + 1]));
  const isSplit = ({ pairs: way }, isKey) => way === "halves" || (way === "mixed" && isKey);
  /** A row turned to its position, clockwise or the other way. */
  function turn(row, at, split, direction) {
    const turned = [...row];
    pairs(split).forEach(([j, k], i) => {
      const angle = OMEGA[i] * at * (direction === "clockwise" ? 1 : -1);
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      turned[j] = row[j] * c + row[k] * s;
      turned[k] = row[k] * c - row[j] * s;
    });
    return turned;
  }
  const query = (state, m = state.m) => turn(QUERY, m, isSplit(state, false), state.direction);
  const key = (state, n = state.n) => turn(KEY, n, isSplit(state, true), state.direction);
  const dot = (a, b) => a.reduce((sum, v, j) => sum + v * b[j], 0);
  const score = (state, m = state.m, n = state.n) => dot(query(state, m), key(state, n));

  const dial = (wide, i) => (wide ? [80 + 160 * i, 72, 48] : [45 + 90 * i, 58, 36]);
  const offsets = Array.from({ length: 61 }, (_, k) => k / 2 - 15);
  const frames = {
    true: [{ left: 36, top: 172, width: 268, height: 86 }, { left: 362, top: 172, width: 266, height: 86 }],
    false: [{ left: 30, top: 138, width: 322, height: 70 }, { left: 30, top: 276, width: 322, height: 46 }],
  }; // prettier-ignore

  function draw(state, wide) {
    const { m, n } = state;
    const parts = [];
    // The key is a thick hand with a ring, the query a dashed one with a dot: where they meet, the dot
    // stands in the ring.
    const rows = [["is-after-step tie-n", "n", key(state), true], ["is-position is-before tie-m", "m", query(state), false]]; // prettier-ignore
    const agree = isSplit(state, true) === isSplit(state, false);
    OMEGA.forEach((_, i) => {
      const [cx, cy, r] = dial(wide, i);
      parts.push(text(cx, 11, `ω${"₀₁₂₃"[i]} = ${["1", "1/2", "1/4", "1/8"][i]}`, "mid muted"));
      parts.push(circle(cx, cy, r, "dial"), line(cx, cy - r, cx, cy - r + 5, "axis"));
      const hands = rows.map(([look, name, row, isKey]) => {
        const [j, k] = pairs(isSplit(state, isKey))[i];
        return { look, name, isKey, pair: [row[j], row[k]] };
      });
      const [from, to] = hands.map(({ pair: [s, c] }) => Math.atan2(s, c));
      const gap = to - from - 2 * Math.PI * Math.round((to - from) / (2 * Math.PI));
      parts.push(arc(cx, cy, r * 0.42, from, from + gap, "is-step tie-offset tie-score", 6));
      for (const { look, name, isKey, pair } of hands) {
        const [x, y] = [cx + (r / 1.2) * pair[0], cy - (r / 1.2) * pair[1]];
        const grip = { "data-handle": `${name} ${i}` };
        const tip = isKey ? circle(x, y, 8, "ring thick", grip) : circle(x, y, 4.5, "tip", grip);
        parts.push(g(look, line(cx, cy, x, y, "reach", grip), line(cx, cy, x, y, isKey ? "hand thick" : "hand", grip), tip));
      }
      // What the pair adds to the score.
      if (agree) parts.push(text(cx, cy + r + 12, fixed(dot(...hands.map(({ pair }) => pair))), "mid tie-score"));
    }); // prettier-ignore
    const [alone, both] = frames[wide];
    const y = { range: [-4.4, 4.4], ticks: [-4, 0, 4] };
    const first = plot({ ...alone, x: { range: [-15, 15], ticks: [-12, -6, 0, 6, 12], label: "m − n, with this n" }, y });
    const shift = plot({ ...both, x: { range: [-15, 15], ticks: [-12, -6, 0, 6, 12], label: "both moved by" }, y });
    const curve = ({ px, py }, f, look) => polyline(offsets.map((t) => [px(t), py(f(t))]), look);
    const now = score(state);
    const head = ({ left, top }, said, look) => text(left - 24, top - 16, said, look);
    parts.push(
      first.axes,
      curve(first, (t) => score(state, n + t, n), "is-plain tie-score"),
      Math.abs(m - n) <= 15 ? circle(first.px(m - n), first.py(now), 6, "dot is-step tie-offset tie-score", { "data-handle": "offset" }) : "",
      head(alone, `score ${fixed(now)} at m − n = ${count(m - n)}`, "strong tie-offset tie-score"),
      shift.axes,
      curve(shift, (t) => score(state, m + t, n + t), "is-plain"),
      circle(shift.px(0), shift.py(now), 6, "dot is-plain"),
      head(both, "score if both move", "")
    ); // prettier-ignore
    return { width: wide ? 640 : 360, height: wide ? 302 : 366, parts };
  }

  /** How far the score changes while both move. */
  function drift(state) {
    const all = offsets.map((t) => score(state, state.m + t, state.n + t));
    return Math.max(...all) - Math.min(...all);
  }
  function says(state) {
    const { m, n } = state;
    const at = `Query (blue) at ${count(m)}, key (green) at ${count(n)}: score ${fixed(score(state))}.`;
    return drift(state) < 1e-9
      ? `${at} If both move by the same amount, the score stays the same: it depends on m − n = ${count(m - n)} alone.`
      : `${at} Query and key are paired differently: if both move by the same amount, the score changes by up to ${fixed(drift(state))}.`;
  }

  /** The score with the numbers of the state: it depends on m − n where the pairs agree. */
  function formula(state) {
    const { m, n } = state;
    const depends = drift(state) < 1e-9 ? " = f(" : " ≠ f(";
    return [
      [`q(${count(m)})`, "m", "the query, turned by its position m"],
      " · ",
      [`k(${count(n)})`, "n", "the key, turned by its position n"],
      ` = ${fixed(score(state))}${depends}`,
      [`${count(m)} − ${count(n)}`, "offset", "the offset m − n"],
      ")",
    ];
  }

  const within = (value) => Math.min(LAST, Math.max(0, value));
  function pull(name) {
    return (state, pointer, wide, i) => {
      const row = name === "m" ? query(state) : key(state);
      const [j, k] = pairs(isSplit(state, name === "n"))[i];
      const [cx, cy] = dial(wide, i);
      const by = bearing(cx, cy, pointer) - Math.atan2(row[j], row[k]);
      const short = by - 2 * Math.PI * Math.round(by / (2 * Math.PI));
      const way = state.direction === "clockwise" ? 1 : -1;
      return { [name]: within(state[name] + (way * short) / OMEGA[i]) };
    };
  }
  return {
    title: "A query and a key on four dials, and their score",
    controls: {
      m: { label: "query at m", min: 0, max: LAST, value: 5, part: "m", moves: ["n", "offset", "score"] },
      n: { label: "key at n", min: 0, max: LAST, value: 2, part: "n", moves: ["m", "offset", "score"] },
      direction: {
        label: "direction of the turns",
        choices: [["clockwise", "clockwise"], ["anticlockwise", "anticlockwise"]],
        value: "clockwise",
      },
      pairs: {
        label: "entries that turn together",
        choices: [["neighbours", "neighbours"], ["halves", "half a row apart"], ["mixed", "query and key differ"]],
        value: "neighbours",
      },
    }, // prettier-ignore
    presets: [["Move both by 1", ({ m, n }) => (m < LAST && n < LAST ? { m: m + 1, n: n + 1 } : {})]],
    play({ m, n }, seconds) {
      const by = Math.max(m, n) + 2 * seconds > LAST ? -Math.min(m, n) : 2 * seconds;
      return { m: m + by, n: n + by };
    },
    handles: {
      m: { control: "m", free: true, move: pull("m") },
      n: { control: "n", free: true, move: pull("n") },
      offset: {
        control: "m",
        free: true,
        move({ n }, { x }, wide) {
          const { left, width } = frames[wide][0];
          return { m: within(n - 15 + (30 * (x - left)) / width) };
        },
      },
    },
    numbers: (state) => ({ query: query(state), key: key(state), score: score(state), drift: drift(state) }),
    draw,
    formula,
    says,
  };
});
