// Numbers, and drawing: each function gives a piece of SVG as text, so that the same lines draw what
// moves in the browser and the still that stands in print.
const peDraw = (() => {
  // ---- Text and numbers -----------------------------------------------------------------------

  const signs = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => signs[sign]);

  /** A number as the book prints it: a true minus, and no minus before zeros. */
  function fixed(value, digits = 2) {
    const text = value.toFixed(digits);
    return /[1-9]/.test(text) ? text.replace("-", "−") : text.replace("-", "");
  }

  /** An integer with commas between its thousands, any other number to one decimal. */
  const count = (value) =>
    Number.isInteger(value)
      ? String(value).replace("-", "−").replace(/\B(?=(\d{3})+$)/g, ",")
      : fixed(value, 1);

  /** The rows of a table, given as such or packed by data/make.py. */
  function tableOf(table) {
    if (Array.isArray(table)) return table;
    const { columns, scales, numbers } = table;
    const bytes = Uint8Array.from(atob(numbers), (sign) => sign.charCodeAt(0));
    const whole = new Int16Array(bytes.buffer);
    return scales.map((scale, row) =>
      Float64Array.from(whole.subarray(row * columns, (row + 1) * columns), (number) => number * scale)
    );
  }

  // ---- Drawing: strings of SVG ----------------------------------------------------------------

  /** An element; a number is rounded, so that a picture is the same text on every machine. */
  function tag(name, attributes, inner = "") {
    let text = "<" + name;
    for (const [key, value] of Object.entries(attributes))
      if (value !== undefined)
        text += ` ${key}="${typeof value === "number" ? Math.round(value * 100) / 100 : value}"`;
    return `${text}>${inner}</${name}>`;
  }
  const g = (look, ...parts) => tag("g", { class: look }, parts.join(""));
  const circle = (cx, cy, r, look, more) => tag("circle", { class: look, cx, cy, r, ...more });
  const rect = (x, y, width, height, look, more) =>
    tag("rect", { class: look, x, y, width, height, ...more });
  const line = (x1, y1, x2, y2, look, more) => tag("line", { class: look, x1, y1, x2, y2, ...more });
  const text = (x, y, said, look, more) => tag("text", { class: look, x, y, ...more }, escape(said));
  const path = (d, look, more) => tag("path", { class: look, d, ...more });
  const r1 = (value) => Math.round(value * 10) / 10 || 0;
  const polyline = (points, look, more) =>
    path("M" + points.map(([x, y]) => `${r1(x)} ${r1(y)}`).join("L"), look, more);

  /** A cell of a matrix: its tint shows sign and size, its text the number. */
  const cell = (x, y, width, height, value, digits = 2) =>
    rect(x, y, width, height, value < 0 ? "minus" : "plus", {
      "fill-opacity": Math.abs(value) * 0.5,
    }) + text(x + width / 2, y + height / 2, fixed(value, digits), "mid number");

  const SHADES = 25;
  /** The cells of a matrix, as one path for each shade: a picture of few parts moves quickly. */
  function heat(rows, x, y, width, height) {
    const paths = new Map();
    rows.forEach((row, k) =>
      row.forEach((value, j) => {
        const shade = Math.max(-SHADES, Math.min(SHADES, Math.round(value * SHADES)));
        const [left, right] = [j, j + 1].map((edge) => r1(x + edge * width)); // no seam between two
        const [top, bottom] = [k, k + 1].map((edge) => r1(y + edge * height));
        const [w, h] = [r1(right - left), r1(bottom - top)];
        const cell = `M${left} ${top}h${w}v${h}h-${w}z`;
        paths.set(shade, (paths.get(shade) ?? "") + cell);
      })
    );
    return [...paths].map(([shade, cells]) =>
      path(cells, shade < 0 ? "minus" : "plus", { "fill-opacity": Math.abs(shade) / SHADES })
    );
  }

  /** A hand of a clock: 0 points up, the angle grows clockwise. Gives its tip. */
  const tip = (cx, cy, r, angle) => [cx + r * Math.sin(angle), cy - r * Math.cos(angle)];

  /** The angle at which a point stands, seen from the centre of a dial. */
  const bearing = (cx, cy, { x, y }) => Math.atan2(x - cx, cy - y);

  /** An arc from one bearing to another, at most a few turns, with a head in its direction. */
  function arc(cx, cy, r, from, to, look, size) {
    const steps = Math.max(2, Math.ceil(Math.abs(to - from) / 0.15));
    const points = Array.from({ length: steps + 1 }, (_, k) =>
      tip(cx, cy, r + (k / steps) * Math.min(6, Math.abs(to - from)), from + ((to - from) * k) / steps)
    );
    if (Math.abs(to - from) * r < 5) return "";
    const [[ax, ay], [bx, by]] = [points.at(-2), points.at(-1)];
    return polyline(points, look) + head(bx, by, Math.atan2(by - ay, bx - ax), look, size);
  }

  /** The head of an arrow. */
  function head(x, y, direction, look, size = 8) {
    const back = (turn) =>
      `L${r1(x - size * Math.cos(direction + turn))} ${r1(y - size * Math.sin(direction + turn))}`;
    return path(`M${r1(x)} ${r1(y)}${back(0.45)}${back(-0.45)}Z`, `head ${look}`);
  }
  const arrow = (x1, y1, x2, y2, look) =>
    Math.hypot(x2 - x1, y2 - y1) < 1
      ? ""
      : line(x1, y1, x2, y2, look) + head(x2, y2, Math.atan2(y2 - y1, x2 - x1), look, 9);

  /** The axes of a plot in a frame of the picture, with the maps from numbers to places. */
  function plot({ left, top, width, height, x, y }) {
    const to = (axis, from, size) => {
      const [low, high] = axis.range.map(axis.log ? Math.log : (v) => v);
      return (v) => from + (size * ((axis.log ? Math.log(v) : v) - low)) / (high - low);
    };
    const px = to(x, left, width);
    const py = to(y, top + height, -height);
    const base = top + height;
    const named = (tick) => (Array.isArray(tick) ? tick : [tick, count(tick)]);
    const axes = g(
      "axes",
      ...y.ticks.map(named).map(
        ([v, name]) =>
          line(left, py(v), left + width, py(v), "grid") + text(left - 6, py(v), name, "end muted")
      ),
      ...x.ticks.map(named).map(
        ([v, name]) =>
          line(px(v), base, px(v), base + 4, "axis") + (name ? text(px(v), base + 14, name, "mid muted") : "")
      ),
      line(left, base, left + width, base, "axis"),
      text(left + width / 2, base + 33, x.label, "mid"),
      y.label ? text(left - 30, top - 14, y.label) : ""
    );
    const back = (place) => {
      const [low, high] = x.range.map(x.log ? Math.log : (v) => v);
      const v = low + ((place - left) / width) * (high - low);
      return x.log ? Math.exp(v) : v;
    };
    return { axes, px, py, back };
  }

  return { arc, arrow, bearing, cell, circle, count, escape, fixed, g, heat, line, path, plot, polyline, r1, rect, tableOf, tag, text, tip };
})();
