// The search page: the places that answer a query, the best first, each under a sentence of its
// prose. What stands in the book, PAGES, comes with search_index.js (website/finish/search_index.py). What
// Sphinx brings: searchtools.js takes the query from the address, splits texts into words and makes a
// list for the hits, which this script fills; language_data.js has the stemmer, and words that say
// nothing.

const INDEX = document.currentScript.dataset.index; // its address, with its version
const MOST_HITS = 15;
const LONGEST_QUOTATION = 240; // letters, unless one sentence alone is longer
// Words that say nothing.
const EMPTY_WORDS = new Set(`am an any been can could did do does doing done from get gets had has
  have i its just me my one our own per please should so some than them vs versus we were would you
  your all also about`.split(/\s+/));
for (const word of stopwords) if (word !== "no") EMPTY_WORDS.add(word);
// Words that say what kind of answer is wanted: they decide between places that are else equal.
const QUESTION_WORDS = new Set(`why how what which who when where whether work works working mean
  means meaning explain explained explanation understand simply simple easy use used using
  difference different between compare make makes happen happens way tell show list
  왜 무엇 어떻게 무엇인가 차이 뜻 의미 이유 설명`.split(/\s+/));
const KOREAN_ENDING =
  /(?<=[가-힣]{2})(?:이란|에서|으로|인가|한가|하는|은|는|이|가|을|를|의|에|로|와|과|도|란)$/;
const HANGUL = /[가-힣]/;
// A sentence that begins so speaks of something in the sentence before.
const LEANS = new RegExp(
  "^(?:no|yes|let|suppose|so|but|and|then|therefore|however|both|here|there|such|instead)\\b|" +
    "^(?:otherwise|again)\\b|" +
    "^(?:\\S+ ){0,4}?(?:it|its|they|their|them|these|those|that of)\\b|" +
    "^(?:\\S+ ){0,4}?this\\b(?! (?:page|chapter|book))|" +
    "^(?:이|그|두|따라서|그래서|그러나|여기) ",
  "i",
);

// ---- Words

const stemmer = new Stemmer();
const stems = new Map();

/** What the forms of a word have in common. */
function stemOf(word) {
  if (!stems.has(word))
    stems.set(word, HANGUL.test(word) ? word.replace(KOREAN_ENDING, "") : stemmer.stemWord(word));
  return stems.get(word);
}

/** The words of a text. A name such as rope_theta also counts as its parts. */
function wordsOf(text) {
  return splitQuery(text.toLowerCase()).flatMap((word) =>
    word.includes("_") ? [word, ...word.split("_").filter(Boolean)] : [word],
  );
}

/** What the telling words of a text have in common with their other forms. */
function stemsOf(text) {
  return new Set(wordsOf(text).filter((word) => !EMPTY_WORDS.has(word)).map(stemOf));
}

/** Whether one letter added, left out or changed, or two exchanged, makes one word of the other. */
function isOneEdit(a, b) {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  return (
    restA.slice(1) === restB ||
    restA === restB.slice(1) ||
    restA.slice(1) === restB.slice(1) ||
    (restA.slice(2) === restB.slice(2) && restA[0] === restB[1] && restA[1] === restB[0])
  );
}

// ---- The book

const book = { places: [], named: new Set(), counts: new Map(), spelled: new Map() };

/** Find the words of each place, once. */
function readBook() {
  const count = (counts, word) => counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [name, { said, title, places }] of Object.entries(PAGES)) {
    const page = { name, said, title, prose: places.flatMap(({ prose }) => prose) };
    for (const { anchor, names, known, prose, also } of places) {
      const text = [...prose, also].join(" ");
      const place = { page, anchor, title: names[0], prose, stems: stemsOf(text) };
      place.names = [...names, ...known].map(stemsOf);
      place.heading = new Set(place.names.flatMap((stems) => [...stems]));
      place.heading.forEach((stem) => book.named.add(stem));
      wordsOf([...names, ...known, text].join(" ")).forEach((word) => count(book.spelled, word));
      new Set([...place.heading, ...place.stems]).forEach((stem) => count(book.counts, stem));
      book.places.push(place);
    }
  }
}

const questionStems = new Set([...QUESTION_WORDS].map(stemOf));
const isQuestion = (stem) => questionStems.has(stem);

/** What a word is worth: the rarer, the more, and less if no place is called by it. */
function worthOf(stem) {
  const rarity = Math.log(1 + book.places.length / (book.counts.get(stem) ?? 1));
  if (isQuestion(stem)) return 0.1 * rarity;
  return book.named.has(stem) ? rarity : 0.5 * rarity;
}

// ---- What was asked

/**
 * What stands in the book for a word that was typed: itself; else longer words that begin with it;
 * else the most frequent word that is one edit away.
 */
function meaningOf(word) {
  const stem = stemOf(word);
  const longer = [...book.counts.keys()].filter((known) => known.startsWith(stem));
  // A Korean word has more endings than stemOf knows.
  const mayEnd = HANGUL.test(word) && word.length > 1;
  if (book.counts.has(stem)) return { word, stems: mayEnd ? longer : [stem] };
  if (longer.length && (mayEnd || word.length > 3)) return { word, stems: longer };
  const near = [...book.spelled].filter(([known]) => known.length > 3 && isOneEdit(word, known));
  if (word.length < 4 || /\d/.test(word) || !near.length) return { word, stems: [] };
  const [[nearest]] = near.toSorted((a, b) => b[1] - a[1]);
  return { word: nearest, typed: word, stems: [stemOf(nearest)] };
}

/** The same, part by part for a name or a Korean compound that the book does not have whole. */
function meaningsOf(word) {
  const whole = meaningOf(word);
  if (whole.stems.length) return [whole];
  if (word.includes("_")) return word.split("_").filter(Boolean).map(meaningOf);
  return (HANGUL.test(word) && meaningsOfTwoNouns(word)) || [whole];
}

/** Korean may leave out the space between two nouns, each of which has two syllables or more. */
function meaningsOfTwoNouns(word) {
  for (let end = 2; end <= word.length - 2; end++) {
    const nouns = [word.slice(0, end), word.slice(end)].flatMap(meaningsOf);
    if (nouns.every(({ stems }) => stems.length)) return nouns;
  }
}

/** The words of a query that say something, each with what stands for it in the book. */
function parse(query) {
  const typed = splitQuery(query.toLowerCase()).filter((word) => !EMPTY_WORDS.has(word));
  const meant = [...new Set(typed)].flatMap(meaningsOf);
  const known = meant.filter(({ stems }) => stems.length);
  for (const asked of known) asked.worth = Math.max(...asked.stems.map(worthOf));
  return {
    asked: known,
    telling: known.filter(({ stems }) => !stems.every(isQuestion)),
    corrected: known.filter(({ typed }) => typed),
    unknown: meant.filter(({ word, stems }) => !stems.length && !QUESTION_WORDS.has(word)),
  };
}

// ---- Which places answer

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const worthOfAll = (asked) => sum(asked.map(({ worth }) => worth));
const isIn = (words) => ({ stems }) => stems.some((stem) => words.has(stem));

/** How much of a query and of a name is the same: 1 if they are equal. */
function likeness(asked, name) {
  const others = [...name].filter((stem) => !asked.some(({ stems }) => stems.includes(stem)));
  const all = worthOfAll(asked) + sum(others.map(worthOf));
  return worthOfAll(asked.filter(isIn(name))) / all;
}

/** How much of a query a place holds. A heading counts more than the text below it. */
function coverage(telling, { heading, stems }) {
  const inHeading = worthOfAll(telling.filter(isIn(heading)));
  const inEither = worthOfAll(telling.filter((word) => isIn(heading)(word) || isIn(stems)(word)));
  return (0.3 * inHeading + 0.7 * inEither) / worthOfAll(telling);
}

/** Pages that explain come before those that prove or list. */
function rankOf({ name }) {
  if (name.startsWith("book/checks/")) return 0.6;
  return /index|glossary|sources|bibliography|library/.test(name) ? 0.8 : 1;
}

/** The places that answer, the best first: of each page the best, of a list each entry. */
function find({ asked, telling }) {
  if (!telling.length) return [];
  const rated = book.places.map((place) => {
    const covered = coverage(telling, place);
    const called = Math.max(...place.names.map((name) => likeness(asked, name)));
    return { place, covered, score: (2 * called + covered) * rankOf(place.page) };
  });
  const listed = new Set();
  return rated
    .filter(({ covered }) => covered)
    .toSorted((a, b) => b.score - a.score)
    .map(({ place }) => place)
    .filter((place) => {
      const isEntry = place.anchor && /glossary|library/.test(place.page.name);
      const key = isEntry ? place : place.page;
      return !listed.has(key) && listed.add(key);
    });
}

// ---- What is said of a place

/** Whether a sentence reads as one: whole, and without code, addresses and formulas left out. */
const isProse = (text) => /[.?!][)”’]*$/.test(text) && !/…|\d{7}|\bimport |https?:/.test(text);

/** Whether a sentence needs none before it, and is no label such as “What you see.” */
const standsAlone = (text) => isProse(text) && !LEANS.test(text) && text.length > 20;

/** The sentences of a paragraph from each that stands alone, as many as fit. */
function passagesOf(paragraph) {
  const segments = [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(paragraph)];
  const sentences = segments.map(({ segment }) => segment.trim());
  return sentences.flatMap((first, start) => {
    if (!standsAlone(first)) return [];
    let text = first;
    for (const next of sentences.slice(start + 1)) {
      if (!isProse(next) || text.length + next.length > LONGEST_QUOTATION) break;
      text += ` ${next}`;
    }
    return { first, text };
  });
}

/** How much of what was asked a statement holds, and how much to the letter. */
function worthQuoting(sentence, telling) {
  if (sentence.endsWith("?")) return 0;
  const [stems, words] = [stemsOf(sentence), new Set(wordsOf(sentence))];
  const held = worthOfAll(telling.filter(isIn(stems))) / worthOfAll(telling);
  const exact = telling.filter(({ word }) => words.has(word)).length / telling.length;
  return held && held + 0.2 * exact;
}

/** What stands below a hit: a definition, else a quotation, else the description of the page. */
function summaryOf({ page, anchor, prose }, telling, isKorean) {
  if (page.name === "book/glossary" && anchor) return prose[0];
  const paragraphs = (anchor ? prose : page.prose).filter((text) => isKorean || !HANGUL.test(text));
  const [best] = paragraphs
    .flatMap(passagesOf)
    .map(({ first, text }) => ({ text, worth: worthQuoting(first, telling) }))
    .toSorted((a, b) => b.worth - a.worth);
  // Half an answer says less of a page than its description does. A section has none: it is quoted
  // with its opening where it holds the words in a table or in code alone.
  if (best?.worth > (anchor ? 0 : 0.6)) return best.text;
  return (anchor && paragraphs.length && passagesOf(paragraphs[0])[0]?.text) || page.said;
}

// ---- The list

/** A text whose words are marked where they were asked for. */
function marked(text, telling) {
  return text.split(/([\p{Letter}\p{Number}_]+)/u).map((part) => {
    const wasAskedFor = telling.some(isIn(stemsOf(part)));
    return wasAskedFor ? element("span", "highlighted", part) : part;
  });
}

function element(name, className, ...contents) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...contents);
  return made;
}

/** One hit: its name, which is a link, and what is said of it. */
function itemOf(place, telling, isKorean) {
  const { page, anchor, title } = place;
  const link = element("a", "", anchor ? `${page.title} > ${title}` : page.title);
  link.href = `${page.name}.html${anchor ? `#${anchor}` : ""}`;
  const summary = summaryOf(place, telling, isKorean);
  const said = element("p", "context", ...marked(summary, telling));
  if ((summary.match(/[가-힣]/g) ?? []).length > summary.length / 3) said.lang = "ko";
  return element("li", "", link, said);
}

/** What the search took a word for, and which words it does not know. */
function noteOn(query, { corrected, unknown }) {
  const note = element("p", "search-note");
  if (corrected.length) {
    note.append("Results for ");
    for (const part of query.split(/([\p{Letter}\p{Number}_]+)/u)) {
      const found = corrected.find(({ typed }) => typed === part.toLowerCase());
      note.append(found ? element("em", "", found.word) : part);
    }
    note.append(". ");
  }
  const names = unknown.map(({ word }) => `“${word}”`).join(" or ");
  if (names) note.append(`The book does not have the word ${names}.`);
  return note;
}

function show(query) {
  const parsed = parse(query);
  const hits = find(parsed);
  const isKorean = HANGUL.test(query);
  const best = hits.slice(0, MOST_HITS);
  const items = best.map((place) => itemOf(place, parsed.telling, isKorean));
  if (parsed.corrected.length || parsed.unknown.length)
    Search.output.before(noteOn(query, parsed));
  Search.output.append(...items);
  finish(countOf(hits));
  // Sphinx marks these words on the page that is opened (sphinx_highlight.js).
  const words = parsed.telling.map(({ word }) => word).join(" ");
  if (SPHINX_HIGHLIGHT_ENABLED) localStorage.setItem("sphinx_highlight_terms", words);
}

/** Say above the list what came of the search. */
function finish(said) {
  Search.stopPulse();
  document.getElementById("search-progress")?.replaceChildren();
  Search.title.textContent = "Search Results";
  Search.status.textContent = said;
}

/** How much was found. */
function countOf({ length }) {
  if (!length) return "Nothing was found. Try a word that names it, such as “rotation”.";
  if (length > MOST_HITS) return `The best ${MOST_HITS} of ${length} places in the book.`;
  return length === 1 ? "One place in the book." : `${length} places in the book.`;
}

/** Load what stands in the book, as a script: a page on a disk may fetch nothing. */
function loadBook() {
  return new Promise((resolve, reject) => {
    const script = element("script");
    script.src = INDEX;
    script.addEventListener("load", resolve);
    script.addEventListener("error", reject);
    document.head.append(script);
  }).then(readBook);
}

let loaded;
Search.query = async (query) => {
  loaded ??= loadBook(); // with the first query, so that the form alone comes quickly
  try {
    await loaded;
    show(query);
  } catch (error) {
    console.error(error);
    // The index did not come, or an old browser lacks what the search needs.
    if (!Search.output.hasChildNodes())
      finish("The search does not work here: load this page again, or use a newer browser.");
  }
};
