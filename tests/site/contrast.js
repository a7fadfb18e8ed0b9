// The contrast of everything that a drawing shows with what it stands on.
//
// `measured(root, behind)` gives a row for each text and each line or mark of the drawings below
// root: what it is, its kind, and the smallest contrast ratio (WCAG 2.2) along it. Colours are those
// that the browser computes. What something stands on is found under it, at points along it: areas,
// pixels of pictures, and the background of the page. Colours named in `behind` are those of grid
// lines and shaded areas, which are there to be read over. The cells of a heat map (`heat`) are as
// strong as their numbers, so they are passed over, too.
(() => {
  const MARK = 16; // px: what is filled and no larger is a mark, and what is larger is an area
  const SHARES = [0.1, 0.3, 0.5, 0.7, 0.9]; // where a line is looked at, of its length
  const CLEAR = 4.5; // enough for everything: no more needs to be looked at
  const BESIDE = [[0, 0], [3, 0], [-3, 0], [0, 3], [0, -3]]; // px from the middle of a line

  // ---- Colours: [red, green, blue, alpha], from 0 to 1 ------------------------------------------

  function colour(text) {
    if (!text || text === "none" || text.startsWith("url")) return null;
    const numbers = text.match(/-?[\d.]+/g).map(Number);
    const [r, g, b, a = 1] = numbers;
    return text.startsWith("color(") ? [r, g, b, a] : [r / 255, g / 255, b / 255, a];
  }
  const over = ([r, g, b, a], below) => [r, g, b].map((part, k) => part * a + below[k] * (1 - a));
  const luminance = (parts) => {
    const [r, g, b] = parts.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  function contrast(one, other) {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }
  /** The opacity of an element: its own and that of all that hold it. */
  function opacity(element) {
    let product = 1;
    for (let one = element; one instanceof Element; one = one.parentElement)
      product *= Number(getComputedStyle(one).opacity);
    return product;
  }
  const known = new Map();
  function painted(element, property) {
    if (!known.has(element)) known.set(element, {});
    const paints = known.get(element);
    if (!(property in paints)) paints[property] = paintedNow(element, property);
    return paints[property];
  }
  function paintedNow(element, property) {
    const style = getComputedStyle(element);
    const found = colour(style[property]);
    if (!found) return null;
    const alpha = found[3] * Number(style[`${property}Opacity`]) * opacity(element);
    return alpha ? [...found.slice(0, 3), alpha] : null;
  }

  // ---- What lies under a point ------------------------------------------------------------------

  const pictures = new Map();
  async function read(image) {
    const picture = new Image();
    picture.src = image.href.baseVal;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(picture, 0, 0);
    pictures.set(image, context);
  }
  function pixel(image, x, y) {
    const context = pictures.get(image);
    const place = inside(image, x, y);
    const [left, top, width, height] = ["x", "y", "width", "height"].map((key) => image[key].baseVal.value);
    const at = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    const column = at((place.x - left) / width, context.canvas.width);
    const row = at((place.y - top) / height, context.canvas.height);
    const [r, g, b, a] = context.getImageData(column, row, 1, 1).data;
    return [r / 255, g / 255, b / 255, a / 255];
  }
  function isArea(element) {
    const { width, height } = element.getBoundingClientRect();
    return Math.max(width, height) > MARK && Math.min(width, height) > 2;
  }
  // Areas of a drawing from the first to the last painted, and the way from the screen into each.
  const places = new Map();
  function inside(element, x, y) {
    if (!places.has(element)) places.set(element, element.getScreenCTM().inverse());
    return new DOMPoint(x, y).matrixTransform(places.get(element));
  }
  const between = (value, start, size) => value >= start && value <= start + size;
  const holds = (box, { x, y }) => {
    const [left, top, width, height] = ["x", "y", "width", "height"].map((key) => box[key].baseVal.value);
    return between(x, left, width) && between(y, top, height);
  };
  /** Whether an area is painted at a point: within its outline, and within what it is clipped to. */
  function covers(area, x, y) {
    const point = inside(area, x, y);
    if (area.tagName === "image" ? !holds(area, point) : !area.isPointInFill(point)) return false;
    const clipped = area.closest("[clip-path]");
    const name = clipped?.getAttribute("clip-path").match(/#([^)"]+)/)?.[1];
    const frame = name && document.getElementById(name)?.querySelector("rect");
    return !frame || holds(frame, inside(clipped, x, y));
  }
  const areasOf = (svg) =>
    [...svg.querySelectorAll("rect, path, circle, image")].filter((element) => {
      if (element.closest("defs, clipPath, pattern") || !element.checkVisibility()) return false;
      return element.tagName === "image" || (isArea(element) && painted(element, "fill"));
    });
  const areas = new Map();
  /** The colour of the page behind a drawing. */
  function pageColour(svg) {
    for (let one = svg; one; one = one.parentElement) {
      const found = colour(getComputedStyle(one).backgroundColor);
      if (found?.[3] === 1) return found;
    }
    return [1, 1, 1];
  }
  /** The colour on which an element stands at a point. */
  function ground(element, x, y) {
    const svg = element.ownerSVGElement;
    if (!areas.has(svg)) areas.set(svg, [areasOf(svg), pageColour(svg)]);
    const [drawn, page] = areas.get(svg);
    const before = (area) => area.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
    const under = drawn.filter((area) => area !== element && before(area) && covers(area, x, y));
    const layers = under.map((area) => (area.tagName === "image" ? pixel(area, x, y) : painted(area, "fill")));
    return layers.reduce((below, above) => over(above, below), page);
  }

  // ---- What is drawn ----------------------------------------------------------------------------

  /** Points on the screen along a text, a line or an outline. */
  function points(element) {
    if (element instanceof SVGGeometryElement) {
      const [length, matrix] = [element.getTotalLength(), element.getScreenCTM()];
      return SHARES.map((share) => {
        const { x, y } = element.getPointAtLength(share * length).matrixTransform(matrix);
        return [x, y];
      });
    }
    const { left, top, width, height } = element.getBoundingClientRect();
    const shares = width > height ? [0.1, 0.5, 0.9].map((s) => [s, 0.5]) : [0.1, 0.5, 0.9].map((s) => [0.5, s]);
    return shares.map(([across, down]) => [left + across * width, top + down * height]);
  }
  // Matplotlib draws a text as a group of glyphs, and names it, or plots.py does.
  const TEXT = ":is(text, [id^='text_'], [id^='as-drawn']:has(use:is([*|href^='#SourceSerif'], [*|href^='#DejaVu'])))";
  const isText = (element) => element.matches(TEXT);
  const GEOMETRY = ["d", "x1", "y1", "x2", "y2", "cx", "cy", "r", "x", "y", "width", "height", "href"];
  const place = (element) =>
    isText(element) ? element : element.tagName + GEOMETRY.map((key) => element.getAttribute(key)).join();

  /** The colours of an element that must be seen: of a text, of a line, or of a small filled mark. */
  function colours(element) {
    if (isText(element)) {
      const glyph = element.querySelector("use") ?? element;
      return [painted(glyph, "fill")];
    }
    const drawn = element.tagName === "use" ? document.querySelector(element.href.baseVal) : element;
    const styled = element.tagName === "use" && element.hasAttribute("style") ? element : drawn;
    const line = parseFloat(getComputedStyle(styled).strokeWidth) > 0 ? painted(styled, "stroke") : null;
    return [line, isArea(element) ? null : painted(styled, "fill")];
  }

  async function measured(root, behind) {
    for (const map of [known, places, areas]) map.clear();
    const unread = [...root.querySelectorAll("svg image")].filter((image) => !pictures.has(image));
    await Promise.all(unread.map(read));
    const quiet = behind.map((text) => text.toLowerCase());
    const hex = (parts) => "#" + parts.slice(0, 3).map((c) => Math.round(255 * c).toString(16).padStart(2, "0")).join("");
    const best = new Map(); // of all that is drawn in one place, what is seen best
    for (const element of root.querySelectorAll("svg :is(text, [id^='text_'], [id^='as-drawn'], line, path, circle, rect, use)")) {
      if (element.closest("defs, clipPath, pattern, .heat") || !element.checkVisibility()) continue;
      if (!isText(element) && (element.tagName === "g" || element.closest(TEXT))) continue;
      const seen = colours(element).filter((one) => one && !quiet.includes(hex(one)));
      if (!seen.length) continue;
      const style = getComputedStyle(element);
      const halo = isText(element) && style.paintOrder.startsWith("stroke") ? painted(element, "stroke") : null;
      const ratios = points(element).map(([x, y]) => {
        // A line at the edge of an area is seen where it stands out on one of its sides.
        let best = 0;
        for (const [right, down] of isText(element) ? [[0, 0]] : BESIDE) {
          const below = halo ?? ground(element, x + right, y + down);
          best = Math.max(best, ...seen.map((one) => contrast(over(one, below), below)));
          if (best >= CLEAR) break;
        }
        return best;
      });
      const key = place(element);
      const others = best.get(key)?.ratios;
      const drawing = element.closest("svg").getAttribute("aria-label") ?? "";
      const said = isText(element) ? element.textContent.trim() || element.id : element.getAttribute("class");
      best.set(key, {
        drawing: drawing.slice(0, 60),
        kind: isText(element) ? "text" : "line",
        what: `${element.tagName} ${said ?? ""} ${seen.map(hex).join(" ")}`,
        ratios: others ? ratios.map((ratio, k) => Math.max(ratio, others[k] ?? 0)) : ratios,
      });
    }
    return [...best.values()].map(({ ratios, ...one }) => ({ ...one, contrast: Math.min(...ratios) }));
  }
  window.measured = measured;
})();
