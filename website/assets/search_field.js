// The field of the search: while one types, the places that answer best stand in a list below it, from
// which keys, a mouse or a finger choose. This is the combobox of the ARIA Authoring Practices: the
// focus stays in the field, which says what is chosen. Without a choice the form is sent, and the page
// of the search answers. All this comes when the field opens (website/templates/layout.html).
(() => {
  const WISHES = { most: 7, longest: 0, isTyping: true }; // one sentence of each hit
  const PAUSE = 80; // ms between the last letter and the look-up
  const STEPS = { ArrowDown: 1, ArrowUp: -1 };
  const HALF_A_SYLLABLE = /[ㄱ-ㅎㅏ-ㅣ]+$/; // Korean, while it is typed
  const SCRIPT = document.currentScript.src;

  const { element } = peSearch;
  const dialog = document.getElementById("pst-search-dialog");
  const field = dialog.querySelector("input");
  const status = element("p", "search-status");
  const list = element("div", "search-list");
  let chosen; // an option of the list
  let waiting; // for the next letter

  /** Give the elements their roles, and the list its look. */
  function setUp() {
    const look = element("link");
    Object.assign(look, { rel: "stylesheet", href: SCRIPT.replace(".js", ".css") });
    document.head.append(look);
    dialog.ariaLabel = field.ariaLabel;
    Object.assign(status, { role: "status" });
    Object.assign(list, { role: "listbox", id: "search-list", ariaLabel: "Places in the book" });
    Object.assign(field, { role: "combobox", ariaAutoComplete: "list", ariaExpanded: "false" });
    field.setAttribute("aria-controls", list.id);
    dialog.append(status, list);
  }

  /** One hit as an option, which is a link: its name is the place, its description the quotation. */
  function optionOf({ address, page, section, said }, number) {
    const place = element("span", "search-place", element("strong", "", page));
    if (section) place.append(" › ", section);
    const option = element("a", "search-option", place, said);
    Object.assign(option, { role: "option", href: address, tabIndex: -1, ariaSelected: "false" });
    option.id = `search-option-${number}`;
    place.id = `${option.id}-place`;
    said.id = `${option.id}-said`;
    option.setAttribute("aria-labelledby", place.id);
    option.setAttribute("aria-describedby", said.id);
    return option;
  }

  function choose(option) {
    if (chosen) chosen.ariaSelected = "false";
    chosen = option;
    if (!option) return field.removeAttribute("aria-activedescendant");
    option.ariaSelected = "true";
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  /** List what answers the words in the field; nothing where they ask for nothing yet. */
  function lookUp() {
    const query = field.value.replace(HALF_A_SYLLABLE, "");
    const { hits, words, note, count, hasMore } = peSearch.answer(query, WISHES);
    const says = words || note.length ? [...note, count] : [];
    if (hasMore) says.push(" Enter lists more.");
    choose();
    list.replaceChildren(...hits.map(optionOf));
    list.scrollTop = 0;
    list.dataset.words = words;
    field.ariaExpanded = String(hits.length > 0);
    status.replaceChildren(...says);
  }

  function lookUpSoon() {
    clearTimeout(waiting);
    waiting = setTimeout(lookUp, PAUSE);
  }

  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key in STEPS && list.childElementCount) {
      event.preventDefault();
      const stops = [undefined, ...list.children]; // the field is one: the way goes round
      choose(stops.at((stops.indexOf(chosen) + STEPS[event.key]) % stops.length));
    } else if (event.key === "Enter" && chosen) {
      event.preventDefault();
      chosen.click();
    }
  });
  list.addEventListener("click", ({ target }) => {
    const option = target.closest("a");
    if (!option) return;
    // On the page that is open Sphinx would mark nothing, and keep the words for another.
    if (option.pathname !== location.pathname) peSearch.markNext(list.dataset.words);
    dialog.close();
  });

  setUp();
  peSearch.load().then(
    () => {
      field.addEventListener("input", lookUpSoon);
      lookUp(); // what was typed meanwhile
    },
    () => (status.textContent = "The search does not work here: load this page again.")
  );
})();
