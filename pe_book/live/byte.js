// A byte as a dial of 256 marks, to which each position adds the same number. What does not fit into
// the byte is whole turns, and an angle does not need those.
peLive.define("byte", () => {
  const { bearing, circle, count, g, line, path, rect, text, tip } = peDraw;
  const [MARKS, BITS, KEPT, LAST] = [256, 15, 8, 100];
  const turnOf = (units) => (2 * Math.PI * units) / MARKS;

  function numbers({ x, add }) {
    const sum = Math.round(x) * add;
    return { sum, turns: Math.floor(sum / MARKS), byte: sum % MARKS };
  }

  const SIZES = {
    true: { width: 640, height: 280, dial: [136, 140, 108], side: 300, top: 66, box: 21.5, low: 58 },
    false: { width: 360, height: 412, dial: [180, 134, 104], side: 8, top: 300, box: 22.9, low: 52 },
  }; // prettier-ignore
  const r1 = (value) => Math.round(value * 10) / 10;
  const ticks = ([cx, cy, r]) =>
    Array.from({ length: MARKS }, (_, k) => {
      const [[x, y], [a, b]] = [r, r - (k % 64 ? (k % 8 ? 4 : 7) : 13)].map((at) => tip(cx, cy, at, turnOf(k)));
      return `M${r1(x)} ${r1(y)}L${r1(a)} ${r1(b)}`;
    }).join(""); // prettier-ignore

  function draw(state, wide) {
    const { x, add } = state;
    const { width, height, dial, side, top, box, low } = SIZES[wide];
    const [cx, cy, r] = dial;
    const { sum, turns, byte } = numbers(state);
    const at = (position, out = r) => tip(cx, cy, out, turnOf(position * add));
    const now = Math.round(x);
    const trail = Array.from({ length: 13 }, (_, k) => now - 13 + k).filter((position) => position >= 0);
    const [hx, hy] = at(x, r - 4);
    const bits = sum.toString(2).padStart(BITS, "0");
    const cells = [...bits].map((bit, k) => {
      const [left, isKept] = [side + k * box, k >= BITS - KEPT];
      const look = isKept ? "is-position" : "is-grey";
      return g(
        look,
        rect(left + 1, top, box - 2, 28, isKept ? "disc" : "gone-box"),
        text(left + box / 2, top + 14, bit, `mid ${isKept ? "strong" : ""}`)
      );
    });
    const edge = side + (BITS - KEPT) * box;
    const parts = [
      path(ticks(dial), "axis"),
      ...trail.map((position, k) => circle(...at(position), 1.4 + 0.16 * k, "tip is-position")),
      line(cx, cy, hx, hy, "hand is-position"),
      circle(...at(x), 7, "tip is-position"),
      text(cx, cy + (Math.cos(turnOf(x * add)) > 0 ? 34 : -34), String(byte), "mid strong large is-position halo"),
      circle(cx, cy, r + 14, "area", { "data-handle": "hand" }),
      text(side, top - 24, `${count(now)} · ${count(add)} = ${count(sum)}`, "strong"),
      ...cells,
      text(edge - 6, top + 46, `${count(turns)} whole turn${turns === 1 ? "" : "s"}`, "end is-grey"),
      text(edge + 4, top + 46, `the byte: ${byte} of 256`, "is-position"),
      text(side, top + 46 + low - 22, `angle ${((byte / MARKS) * 360).toFixed(1)}°, with or without the turns`, ""),
    ]; // prettier-ignore
    return { width, height, parts };
  }

  function says(state) {
    const { sum, turns, byte } = numbers(state);
    const product = `${count(Math.round(state.x))} times ${count(state.add)} is ${count(sum)}`;
    if (!turns) return `${product}, which fits into a byte.`;
    const whole = `${count(turns)} full turn${turns === 1 ? "" : "s"}`;
    return `${product}: ${whole} and ${byte} units. The byte keeps the ${byte}, and the hand is right.`;
  }

  const within = (x) => Math.min(LAST, Math.max(0, x));
  return {
    title: "A byte as a dial",
    controls: {
      x: { label: "position", min: 0, max: LAST, value: 6 },
      add: { label: "each position adds", min: 1, max: 255, value: 37, jumps: true },
    },
    presets: [
      ["One position on", ({ x }) => ({ x: x + 1 })],
      ["Add 255", { add: 255 }],
    ],
    play: ({ x }, seconds) => ({ x: x < LAST ? within(x + 1.5 * seconds) : 0 }),
    handles: {
      hand: {
        control: "x",
        free: true,
        move({ x, add }, pointer, wide) {
          const [cx, cy] = SIZES[wide].dial;
          const by = bearing(cx, cy, pointer) - turnOf(x * add);
          return { x: within(x + (by - 2 * Math.PI * Math.round(by / (2 * Math.PI))) / turnOf(add)) };
        },
      },
    },
    numbers,
    draw,
    says,
  };
});
