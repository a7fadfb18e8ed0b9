// The figure that stays beside the text of a page, on the site alone, where the window is wide.
//
// Empty marks in the text, `<span data-face="products"></span>`, say which face it shows from there on,
// and one without a face that it rests. It takes its state over from the page's table, and hands it
// back where the reader returns. While it shows, the outline of the page gives way as to a margin note.
(() => {
  const READ = 0.4; // of the height of the window: what stands above has been read
  const marks = [...document.querySelectorAll("[data-face]")];
  const table = document.querySelector('.live[data-figure="table"]');
  const outline = document.querySelector(".bd-sidebar-secondary");
  const roomy = matchMedia("(min-width: 80em) and (min-height: 42em)");

  const place = document.createElement("div");
  place.dataset.beside = "";
  place.role = "group";
  place.ariaLabel = "The table, beside the text";
  place.hidden = true;
  outline.after(place);

  const state = { figure: "companion" };
  const nothing = () => {};
  const model = {
    get: (name) => state[name],
    set: (name, value) => (state[name] = value),
    save_changes: nothing,
    on: nothing,
    off: nothing,
  };
  let last = -1; // the mark that was passed last
  let face = "";

  const figure = () => place.firstChild;
  const set = (box, detail) => box.dispatchEvent(new CustomEvent("set-state", { detail }));
  /** What the sliders of a figure stand at: those of the table and of the companion have one name. */
  const stateOf = (box) =>
    Object.fromEntries([...box.querySelectorAll("input")].map((one) => [one.dataset.key, one.value]));
  function begin() {
    Object.assign(state, peLive.defaults(peLive.kinds.companion({})));
    peLive.render({ model, el: place });
    // Its sentence is read aloud to who moves it, and not to who scrolls.
    const saying = place.querySelector(".live__says");
    saying.ariaLive = "off";
    place.addEventListener("focusin", () => (saying.ariaLive = "polite"));
    place.addEventListener("focusout", () => (saying.ariaLive = "off"));
  }
  function follow() {
    const now = marks.findLastIndex((mark) => mark.getBoundingClientRect().top < READ * innerHeight);
    const shown = (roomy.matches && marks[now]?.dataset.face) || "";
    if (shown && !figure()) begin();
    if (shown && last < 0) set(figure(), stateOf(table));
    if (now < 0 && last >= 0 && figure()) set(table, stateOf(figure()));
    last = shown || now < 0 ? now : last;
    if (shown === face) return;
    face = shown;
    place.hidden = !face;
    outline.classList.toggle("hide", Boolean(face)); // the theme's class
    if (face) set(figure(), { face });
  }
  let waiting = 0;
  const soon = () => (waiting ||= requestAnimationFrame(() => ((waiting = 0), follow())));
  addEventListener("scroll", soon, { passive: true });
  roomy.addEventListener("change", soon);
  // A key or a pointer may be quicker than the next frame: it moves what has been handed back.
  for (const type of ["keydown", "pointerdown"]) table.addEventListener(type, follow, true);
  soon();
})();
