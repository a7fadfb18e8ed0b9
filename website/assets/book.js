// What the pages do beyond the theme: keyboard access to wide content, the outline, figures.

const WIDE = '.pst-scrollable-table-container, .bd-article pre, mjx-container[display="true"]';

/** How much of what a box holds has been scrolled past, and how much more it holds than it shows. */
const extentOf = (box) => [box, box.scrollLeft, box.scrollWidth - box.clientWidth];

/** What is wider than its box scrolls in it: the keyboard reaches it, and fades show what is hidden. */
function tellWide([box, passed, hidden]) {
  box.toggleAttribute("data-before", passed > 1);
  box.toggleAttribute("data-after", passed < hidden - 1);
  if (hidden > 1) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

/** Whether a formula in a line is wider than its list, proof or table leaves room for. */
function isWide(formula) {
  const [drawn, room] = [formula.firstElementChild, formula.parentElement].map(
    (part) => part.getBoundingClientRect().width
  );
  return drawn > room + 1;
}

/** A formula in a line ends where its list, proof or table does, and then scrolls like the others. */
function fitFormula(formula, wide) {
  if (formula.toggleAttribute("data-wide", wide)) return;
  for (const told of ["data-before", "data-after", "tabindex"]) formula.removeAttribute(told);
}

/**
 * All boxes are measured before any is changed: to measure one after a change, the browser would
 * lay out the page again.
 */
function fitAll(boxes) {
  const scrolling = boxes.filter((box) => box.matches(WIDE));
  const formulas = boxes.filter((box) => !box.matches(WIDE)).map((box) => box.firstElementChild);
  const wide = new Set(formulas.filter(isWide));
  for (const formula of formulas) fitFormula(formula, wide.has(formula));
  [...scrolling, ...wide].map(extentOf).forEach(tellWide);
}

/** Boxes change their size as the window does, and where what held them folded is opened. */
function watchWide() {
  const measure = new ResizeObserver((sizes) => fitAll(sizes.map(({ target }) => target)));
  for (const box of document.querySelectorAll(`${WIDE}, span.math:has(> mjx-container)`))
    measure.observe(box);
  const scrolled = ({ target }) =>
    target.matches?.(`${WIDE}, mjx-container`) && tellWide(extentOf(target));
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
}

/** The header names the section that is being read. */
function nameSection() {
  const name = document.querySelector(".place__section");
  const headings = [...document.querySelectorAll("article section > h2")];
  const tell = () => {
    const passed = headings.filter((heading) => heading.getBoundingClientRect().top < 100).at(-1);
    name.textContent = passed ? passed.textContent.replace(/#$/, "") : "";
  };
  let waiting;
  const soon = () => (waiting ??= requestAnimationFrame(() => (tell(), (waiting = null))));
  if (name) document.addEventListener("scroll", soon, { passive: true });
}

/** On a phone the outline of a page lies over its text: it goes once a heading was chosen. */
function closeOutline() {
  const outline = document.getElementById("pst-secondary-sidebar-modal");
  outline?.addEventListener("click", ({ target }) => target.closest("a") && outline.close());
}

/** A link that leads into a fold opens it, and those around it, where the browser does not. */
function openTarget() {
  const target = document.getElementById(location.hash.slice(1)); // :target comes after this script
  const folds = [];
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details"))
    if (!fold.open) folds.push(fold);
  for (const fold of folds) fold.open = true;
  if (folds.length) target.scrollIntoView();
}

function makeButton(text, press) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", press);
  return button;
}

/** A caption that stands a second time: no link to it, and no name that another element has. */
function copyCaption(caption) {
  const copy = caption.cloneNode(true);
  copy.querySelector(".headerlink")?.remove();
  for (const named of copy.querySelectorAll("[id]")) named.removeAttribute("id");
  return copy;
}

/** What shows one figure over the page: all of it first, and twice as large when it is pressed. */
function makeShowcase() {
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.ariaLabel = "Figure, enlarged";
  const bar = document.createElement("div");
  bar.className = "enlarged__bar";
  const place = document.createElement("div");
  place.className = "enlarged__place";
  place.tabIndex = 0; // the keyboard scrolls it
  const larger = makeButton("Larger", () => setLarger(!isLarger()));
  bar.append(larger, makeButton("Close", () => dialog.close()));
  document.body.append(dialog);

  const isLarger = () => dialog.hasAttribute("data-larger");
  /** The point that was pressed, given as parts of the picture, comes to the middle. */
  function setLarger(should, across = 0.5, down = 0.5) {
    dialog.toggleAttribute("data-larger", should);
    larger.textContent = should ? "Smaller" : "Larger";
    const left = across * place.scrollWidth - place.clientWidth / 2;
    place.scrollTo(left, down * place.scrollHeight - place.clientHeight / 2);
  }
  place.addEventListener("click", ({ target, offsetX, offsetY }) => {
    if (target === place) dialog.close();
    else setLarger(!isLarger(), offsetX / target.width, offsetY / target.height);
  });

  return (picture) => {
    const copy = picture.cloneNode();
    copy.style.setProperty("--ratio", picture.width / picture.height); // known before it has come
    const caption = picture.closest("figure").querySelector("figcaption");
    place.replaceChildren(copy);
    dialog.replaceChildren(bar, place, ...(caption ? [copyCaption(caption)] : []));
    dialog.showModal();
    setLarger(false);
  };
}

/** A still figure that is pressed is shown as large as the window allows. */
function enlargeFigures() {
  const show = makeShowcase();
  for (const picture of document.querySelectorAll("article figure img")) {
    const button = makeButton("", () => show(picture));
    button.className = "enlarges";
    button.title = "Enlarge";
    button.classList.add(...[...picture.classList].filter((name) => name.startsWith("only-")));
    picture.replaceWith(button);
    button.append(picture);
  }
}

/** Paper is white: what is printed looks as on a light page, and then the page is as it was. */
function printLight() {
  const page = document.documentElement;
  let chosen;
  addEventListener("beforeprint", () => {
    chosen = page.dataset.theme;
    page.dataset.theme = "light";
    // A figure that did not show was not fetched yet.
    for (const picture of document.querySelectorAll("img.only-light")) picture.loading = "eager";
  });
  addEventListener("afterprint", () => (page.dataset.theme = chosen));
}

/** Sphinx marks what was searched for inside words, too: the “rope” of “properties”. */
function unmarkParts(place) {
  for (const mark of place.querySelectorAll(".highlighted"))
    if (/[a-z]$/i.test(mark.previousSibling?.data ?? "") && /^[a-z]/.test(mark.textContent))
      mark.replaceWith(mark.textContent);
}

closeOutline();
enlargeFigures();
printLight();
openTarget();
window.addEventListener("hashchange", openTarget);
document.addEventListener("click", ({ target }) => {
  const link = target.closest?.("a[href]");
  if (link?.hash && link.href === location.href) openTarget();
});
watchWide();
// The theme's script, which comes after this one, would read the size of every box once the page has
// loaded, and write into each whether the keyboard reaches it. On a slow phone this holds a long page
// for half a second, and watchWide does the same work with observers.
window.addEventListener("load", (event) => event.stopImmediatePropagation());
nameSection();
// Sphinx marks a page that was found in a timer of its own, which begins before this one.
document.addEventListener("DOMContentLoaded", () => setTimeout(() => unmarkParts(document), 10));
