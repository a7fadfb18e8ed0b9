// Ties between the text of a page and its figures, on the site alone.
//
// The build has marked the symbols of the formulas that a figure shows (website/extensions/formulas.py):
// one that is touched lights its part of the figure. A phrase that names a state,
// `<span data-state="clock x=3 step=2">from 3 to 5</span>`, becomes a button that sets it.
// Where the figure is out of sight, a small copy of its picture comes to the reader.
(() => {
  const article = document.querySelector("article") ?? document.body;
  peLight.light(article);

  // ---- Figures, and whether they are seen -----------------------------------------------------

  const ENOUGH = 0.6; // of the height of a picture: then it needs no copy
  function isInSight(box) {
    const { top, bottom, height } = box.querySelector(".live__picture").getBoundingClientRect();
    return Math.min(bottom, innerHeight) - Math.max(top, 0) > ENOUGH * height;
  }
  /** The one of these figures that stands nearest to an element, before or after it. */
  function nearest(boxes, element) {
    const at = element.getBoundingClientRect();
    const gap = (box) => {
      const { top, bottom } = box.getBoundingClientRect();
      return Math.max(0, top - at.bottom, at.top - bottom);
    };
    return boxes.sort((a, b) => gap(a) - gap(b))[0];
  }
  /** The figure that a phrase means: by its name, else the nearest of its kind. */
  function figureOf(phrase, named) {
    const one = document.getElementById(named)?.querySelector(".live");
    return one ?? nearest([...document.querySelectorAll(`.live[data-figure="${named}"]`)], phrase);
  }

  // ---- The small copy of a picture ------------------------------------------------------------

  const copy = document.createElement("div");
  copy.className = "live live-copy";
  copy.setAttribute("aria-hidden", "true"); // who hears the page has the sentence of the figure
  copy.innerHTML = '<div class="live__picture"></div>';
  let shown; // what is shown: the figure's box, the symbol or phrase, and whether it outlasts the pointer
  let waiting = 0;

  function show(box, element, stays) {
    putAway();
    const drawing = peLive.copies.get(box)?.();
    if (!drawing) return; // the figure does not live yet
    shown = { box, element, stays };
    copy.firstChild.innerHTML = drawing;
    for (const part of copy.querySelectorAll("[id]")) part.removeAttribute("id"); // the figure's own
    document.body.append(copy);
    keepClear();
  }
  function putAway() {
    clearTimeout(waiting);
    copy.remove();
    shown = undefined;
  }
  /** Whether the copy covers what it belongs to, or comes close. */
  function covers() {
    const ROOM = 16; // px
    const [mine, its] = [copy, shown.element].map((one) => one.getBoundingClientRect());
    const overlap = (start, end) => mine[start] < its[end] + ROOM && its[start] < mine[end] + ROOM;
    return overlap("top", "bottom") && overlap("left", "right");
  }
  /** The copy goes aside where it would cover that, and where there is no room it does not show. */
  function keepClear() {
    copy.classList.remove("live-copy--aside");
    copy.classList.toggle("live-copy--aside", covers());
    if (covers()) putAway();
  }
  function follow() {
    if (!shown) return;
    const { top, bottom } = shown.element.getBoundingClientRect();
    if (isInSight(shown.box) || bottom <= 0 || top >= innerHeight) putAway();
    else keepClear();
  }
  addEventListener("scroll", follow, { passive: true });
  addEventListener("resize", follow);
  document.addEventListener("keydown", ({ key }) => key === "Escape" && putAway());
  document.addEventListener("focusin", ({ target }) => shown?.element !== target && putAway());

  // ---- Symbols --------------------------------------------------------------------------------

  const symbolAt = (target) => target.closest("mjx-math .tie");
  /** Show the part that a symbol stands for, unless a figure in the window shows it already. */
  function showPart(symbol) {
    const part = `.tie-${peLight.partOf(symbol)}`;
    const all = document.querySelectorAll(`.live[data-live]:has(.live__picture ${part})`);
    const boxes = [...all].filter((box) => box.checkVisibility());
    if (boxes.length && !boxes.some(isInSight)) show(nearest(boxes, symbol), symbol, false);
  }

  const MOMENT = 150; // ms, so that nothing flickers where a mouse crosses the text
  let pointed = null;
  function pointAt(symbol) {
    if (symbol === pointed) return;
    pointed = symbol;
    clearTimeout(waiting);
    if (!shown?.stays) putAway();
    if (symbol) waiting = setTimeout(showPart, MOMENT, symbol);
  }
  article.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "touch") pointAt(symbolAt(target));
  });
  article.addEventListener("pointerleave", () => pointAt(null));

  // A tap, or a click that no symbol or phrase answers, puts the copy away.
  document.addEventListener("pointerup", ({ target, pointerType }) => {
    if (copy.contains(target)) return;
    const isTouch = pointerType === "touch";
    if (isTouch || shown?.stays) putAway();
    if (isTouch && symbolAt(target)) showPart(symbolAt(target));
  });
  copy.addEventListener("click", putAway); // not before, or what lies below it would be pressed

  // ---- Phrases --------------------------------------------------------------------------------

  for (const phrase of document.querySelectorAll("span[data-state]")) {
    const [named, ...given] = phrase.dataset.state.split(" ");
    const state = Object.fromEntries(given.map((pair) => pair.split("=")));
    const button = document.createElement("button");
    button.className = "sets-a-figure";
    button.title = "Show this in the figure";
    button.append(...phrase.childNodes);
    button.addEventListener("click", () => {
      const box = figureOf(button, named);
      peLive.hydrate(box); // it may still wait
      box.dispatchEvent(new CustomEvent("set-state", { detail: state }));
      if (isInSight(box)) putAway();
      else show(box, button, true);
    });
    phrase.replaceChildren(button);
  }
})();
