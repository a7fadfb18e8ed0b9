// What the pages do beyond the theme: names for the sliders, and keyboard access to wide content.

/** Fit the widget manager to the page that it runs in; this script comes before it. */
function prepareWidgetManager() {
  // Its validator warns of its own schema on every page.
  const warn = console.warn;
  console.warn = (...said) => String(said[0]).startsWith("strict mode: ") || warn(...said);
}

/** Give a slider's handle the name and the value that stand beside it. */
function nameHandle(slider) {
  const [handle, label, readout] = [".noUi-handle", ".widget-label", ".widget-readout"].map(
    (part) => slider.querySelector(part)
  );
  const say = () => {
    if (handle.getAttribute("aria-valuetext") !== readout.textContent)
      handle.setAttribute("aria-valuetext", readout.textContent);
  };
  handle.setAttribute("aria-label", label.textContent);
  const watch = new MutationObserver(say); // the slider writes its own value text, a bare number
  watch.observe(handle, { attributeFilter: ["aria-valuetext"] });
  watch.observe(readout, { childList: true, characterData: true, subtree: true });
  say();
}

/** Name the sliders of a figure once the widget manager has drawn them. */
function nameSliders(figure) {
  new MutationObserver((_, watch) => {
    const sliders = figure.querySelectorAll(".widget-slider");
    if (!figure.querySelector(".widget-subarea svg") || !sliders.length) return;
    watch.disconnect();
    sliders.forEach(nameHandle);
    figure.dataset.live = "";
  }).observe(figure, { childList: true, subtree: true });
}

/** Let what is wider than the page scroll in its own box, and let the keyboard reach that box. */
function reachWideContent() {
  for (const box of document.querySelectorAll(".pst-scrollable-table-container, .live-figure"))
    setReach(box, box.scrollWidth > box.clientWidth + 1);
}

/** The same for a formula in a line: its own box ends where its list, proof or table does. */
function reachWideFormulas() {
  const measure = new ResizeObserver((boxes) => {
    for (const { target: box } of boxes) {
      const formula = box.firstElementChild;
      const [drawn, room] = [formula.firstElementChild, box].map(
        (part) => part.getBoundingClientRect().width
      );
      formula.toggleAttribute("data-wide", drawn > room + 1);
      setReach(formula, drawn > room + 1);
    }
  });
  // A box changes its size as the window does, and where what held it folded is opened.
  for (const box of document.querySelectorAll("span.math:has(> mjx-container)"))
    measure.observe(box);
}

function setReach(box, reached) {
  if (reached) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

/** Each displayed equation can be reached by keyboard; it scrolls where it is wide. */
function reachEquations() {
  for (const equation of document.querySelectorAll('mjx-container[display="true"]'))
    equation.tabIndex = 0;
  reachWideContent();
  reachWideFormulas();
}

/** On a phone the outline of a page lies over its text: it goes once a heading was chosen. */
function closeOutline() {
  const outline = document.getElementById("pst-secondary-sidebar-modal");
  outline?.addEventListener("click", ({ target }) => target.closest("a") && outline.close());
}

/** The search quotes from the article alone, without its formulas. */
function quoteArticles() {
  if (typeof Search === "undefined") return;
  Search.htmlToText = (source, anchor) => {
    const page = new DOMParser().parseFromString(source, "text/html");
    page.querySelectorAll(".headerlink, script, style").forEach((part) => part.remove());
    page.querySelectorAll(".math").forEach((formula) => formula.replaceWith("…"));
    const quoted = (anchor && page.querySelector(`article ${anchor}`)) || page.querySelector("article");
    return quoted?.textContent ?? "";
  };
}

prepareWidgetManager();
closeOutline();
quoteArticles();
document.querySelectorAll(".live-figure").forEach(nameSliders);
window.addEventListener("load", reachEquations);
window.addEventListener("resize", reachWideContent);
