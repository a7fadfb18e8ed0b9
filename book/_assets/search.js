// The search page: each page is listed once, under a name that says what was found, with sentences of
// its prose that hold the words. Sphinx's own search (searchtools.js) finds the pages; the names of
// the glossary's terms, TERMS, come with the scorer (book/_ext/search_pages.py).

const LONGEST_QUOTATION = 240; // letters, unless one sentence alone is longer
// What no reader searches for: code and what it prints, figures, the page's own ends.
const FURNITURE = `script, style, pre, table, img, .live, .headerlink, .caption-number, .admonition-title,
  .cell_input, .cell_output > :not(figure), .cell-mark, .checked-by-running, .reading-time, .run-this-page,
  details.hide, #references, #what-comes-next`;
const PROSE = "p, dd, li, figcaption"; // but for the fragments of a list
const SENTENCE = /[.?!:…][)”]*$/;
const HANGUL = /[가-힣]/;
// What MathML may not hold to read as a line of text: PE(x + Δx) does, a fraction or a power does not.
const NO_LINE = ":not(math, semantics, mrow, mstyle, mi, mo, mn, mtext, mspace, mpadded)";

/** The hits without repetition, the best one last, as Sphinx has them. */
function listOnce(hits) {
  const { docnames, titles } = Search._index;
  const seen = new Set();
  const listed = [];
  for (const hit of hits.toReversed()) {
    const [page, title, anchor] = hit;
    const name = titles[docnames.indexOf(page)];
    const isWhole = title === name || title === `${name} > ${name.split(/\u2002(?:<\/span>)?/).at(-1)}`;
    if (TERMS[anchor]) hit[1] = `${name}: ${TERMS[anchor]}`;
    else if (isWhole && seen.has(page)) continue; // a part of it, which answers better, is listed
    else if (isWhole) [hit[1], hit[2]] = [name, ""];
    else hit[1] = title.replace(/ >\s+\((.*)\)$/, " > $1"); // the name of a theorem
    seen.add(page);
    listed.push(hit);
  }
  return listed.toReversed();
}

/** A page without its furniture, and with formulas as a line of text, where they can be one. */
function proseOf(source) {
  const page = new DOMParser().parseFromString(source, "text/html");
  for (const formula of page.querySelectorAll(".math")) {
    const heard = formula.querySelector("mjx-assistive-mml");
    const isLine = formula.localName === "span" && heard && !heard.querySelector(NO_LINE);
    formula.replaceWith(isLine ? heard.textContent.replace(/[\u2061-\u2064]/g, "") : "…");
  }
  page.querySelectorAll(FURNITURE).forEach((part) => part.remove());
  return page;
}

const textOf = (element) => element.textContent.replace(/\s+/g, " ").trim();

/** Whether a word of a text begins with what was asked: “rope” is no part of “properties”. */
const begins = (text, asked) => new RegExp(`(?<![a-z])${_escapeRegExp(asked)}`).test(text);

/** How much of what was asked a text holds: each word counts, and all of them in one phrase twice. */
function holds(text, { words, phrase }) {
  const lower = text.toLowerCase();
  return words.filter((word) => begins(lower, word)).length * (begins(lower, phrase) ? 2 : 1);
}

/** The first of those that hold the most, with as few formulas left out as can be. */
function best(texts, asked) {
  const worth = (text) => holds(text, asked) - Math.min(0.9, 0.3 * (text.split("…").length - 1));
  return texts.reduce((a, b) => (worth(b) > worth(a) ? b : a), "");
}

/** Whole sentences from the one that holds the most, as many as fit. */
function sentencesWith(asked, text) {
  const segments = [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(text)];
  const sentences = segments.map(({ segment }) => segment);
  let quoted = "";
  for (const sentence of sentences.slice(sentences.indexOf(best(sentences, asked)))) {
    if (quoted && (quoted + sentence).length > LONGEST_QUOTATION) break;
    quoted += sentence;
  }
  return quoted.trim();
}

/** What a term of a list of terms means. */
function definitionOf(term) {
  let next = term.nextElementSibling;
  while (next && !next.matches("dd")) next = next.nextElementSibling;
  return next;
}

/** What stands below a hit; its link opens the section that is quoted. */
function quote(source, keywords, anchor) {
  const page = proseOf(source);
  const summary = document.createElement("p");
  summary.className = "context";
  queueMicrotask(() => unmarkParts(summary.parentElement));
  const named = anchor ? page.getElementById(anchor.slice(1)) : null;
  if (named?.matches("dt")) {
    summary.textContent = textOf(definitionOf(named).querySelector("p"));
    return summary;
  }
  const phrase = new URLSearchParams(location.search).get("q").toLowerCase().trim();
  const words = [...keywords].filter((word) => word.length > 1 || keywords.size === 1);
  const asked = { words, phrase };
  const blocks = [...(named ?? page.querySelector("article")).querySelectorAll(PROSE)];
  const paragraphs = new Map();
  for (const block of blocks) {
    const text = textOf(block);
    const isForeign = HANGUL.test(text) && !HANGUL.test(phrase);
    const isPart = block.matches("li") && /^\p{Lowercase}/u.test(text);
    const isProse = SENTENCE.test(text) && !isPart && !isForeign && !block.querySelector(PROSE);
    if (isProse) paragraphs.set(text, block);
  }
  const text = best([...paragraphs.keys()], asked);
  summary.textContent = holds(text, asked)
    ? sentencesWith(asked, text)
    : page.querySelector("meta[name=description]").content;
  const section = paragraphs.get(text)?.closest("article section[id]");
  if (holds(text, asked) && !anchor && section?.parentElement.closest("section"))
    queueMicrotask(() => (summary.parentElement.querySelector("a").hash = `#${section.id}`));
  return summary;
}

const performSearch = Search._performSearch;
Search._performSearch = (...query) => listOnce(performSearch(...query));
Search.makeSearchSummary = quote;
