// Ties between the text of a page and its figures, on the site alone.
//
// The build has marked the symbols of the formulas that a figure shows (book/_ext/live_figures.py):
// one that is touched lights its part of the figure. A phrase that names a state,
// `<span data-state="clock x=3 step=2">from 3 to 5</span>`, becomes a button that sets it.
(() => {
  const article = document.querySelector("article") ?? document.body;
  peLive.light(article);

  /** The figure that a phrase means: by its name, else the nearest of its kind. */
  function figureOf(phrase, named) {
    const one = document.getElementById(named)?.querySelector(".live");
    if (one) return one;
    const distance = (box) => Math.abs(box.getBoundingClientRect().top - phrase.getBoundingClientRect().top);
    const boxes = [...document.querySelectorAll(`.live[data-figure="${named}"]`)];
    return boxes.sort((a, b) => distance(a) - distance(b))[0];
  }

  /** A button is a box of its own: the comma after it must not begin the next line. */
  function keepWithComma(phrase) {
    const after = phrase.nextSibling;
    const mark = after?.data?.match(/^[,.;:)]+/)?.[0];
    if (!mark) return;
    after.data = after.data.slice(mark.length);
    phrase.append(mark);
    phrase.classList.add("kept");
  }

  for (const phrase of document.querySelectorAll("span[data-state]")) {
    const [named, ...given] = phrase.dataset.state.split(" ");
    const state = Object.fromEntries(given.map((pair) => pair.split("=")));
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sets-a-figure";
    button.title = "Show this in the figure";
    button.append(...phrase.childNodes);
    button.addEventListener("click", () => {
      const box = figureOf(button, named);
      box.dispatchEvent(new CustomEvent("set-state", { detail: state }));
      box.scrollIntoView({ block: "nearest" });
    });
    phrase.replaceChildren(button);
    keepWithComma(phrase);
  }
})();
