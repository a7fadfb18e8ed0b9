// The page of the search: it lists what answers the query in its address and, while one types, what is
// in its field. Sphinx's searchtools.js takes the query from the address, and makes the list that this
// script fills.

const WISHES = { most: 15, longest: 240 };
const PAUSE = 150; // ms between the last letter and the look-up

/** One hit: its name, which is a link, and what is said of it. */
function itemOf({ address, page, section, said }) {
  const link = peSearch.element("a", "", section ? `${page} > ${section}` : page);
  link.href = address;
  return peSearch.element("li", "", link, said);
}

function show(query, isTyping) {
  const { hits, words, note, count } = peSearch.answer(query, { ...WISHES, isTyping });
  Search.output.parentElement.querySelector(".search-note")?.remove();
  if (note.length) Search.output.before(peSearch.element("p", "search-note", ...note));
  Search.output.replaceChildren(...hits.map(itemOf));
  finish(count);
  peSearch.markNext(words);
}

/** Say above the list what came of the search. */
function finish(said) {
  Search.stopPulse();
  document.getElementById("search-progress")?.replaceChildren();
  Search.title.textContent = "Search Results";
  Search.status.textContent = said;
}

let latest; // what was asked last

Search.query = async (query, isTyping = false) => {
  latest = query;
  Search.status.role = "status"; // what came of it is announced
  try {
    await peSearch.load(); // with the first query, so that the form alone comes quickly
    if (query === latest) show(query, isTyping);
  } catch (error) {
    console.error(error);
    // The index did not come, or an old browser lacks what the search needs.
    if (!Search.output.hasChildNodes())
      finish("The search does not work here: load this page again, or use a newer browser.");
  }
};

const field = document.querySelector(".bd-search-container input");
let waiting; // for the next letter
field.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const ask = Search.output ? Search.query : Search.performSearch; // which makes the list first
    ask(field.value, true);
  }, PAUSE);
});
