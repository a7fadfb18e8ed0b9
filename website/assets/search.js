// What the search knows, and what it answers: the places of the book that answer a query, the best
// first, each with a sentence of its prose. search_page.js lists them on the page of the search,
// search_field.js under the field while one types. What stands in the book, PAGES, comes with
// search_index.js (website/finish/search_index.py). Sphinx brings language_data.js, which has the
// stemmer, and words that say nothing.
const peSearch = (() => {
  const INDEX = document.currentScript.src.replace("search.js", "search_index.js"); // with its version
  const { content_root: ROOT } = document.documentElement.dataset;
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
  const WORD = /[\p{Letter}\p{Number}_]+/gu;
  const WORD_OR_REST = /([\p{Letter}\p{Number}_]+)/u; // splits a text into both
  // A sentence that begins so speaks of something in the sentence before, and one with such a word of
  // a picture.
  const LEANS = new RegExp(
    "^\\(\\d|" +
      "^(?:no|yes|let|suppose|needs|so|but|and|then|therefore|however|both|here|there|such|instead)\\b|" +
      "^(?:otherwise|again)\\b|" +
      "^(?:\\S+ ){0,4}?(?:it|its|they|their|them|these|those|that of)\\b|" +
      "^(?:\\S+ ){0,4}?this\\b(?! (?:page|chapter|book))|" +
      "^(?:이|그|두|따라서|그래서|그러나|여기) |" +
      "\\b(?:below|above|figure|picture|panels?)\\b",
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

  const splitWords = (text) => (text.toLowerCase().match(WORD) ?? []).map(inFull);

  /** The number formats have short names, too: bf16, fp32. */
  const inFull = (word) => word.replace(/^(b)?f(?:p)?(?=(?:8|16|32|64)$)/, "$1float");

  /** The words of a text. A name such as rope_theta also counts as its parts. */
  function wordsOf(text) {
    return splitWords(text).flatMap((word) =>
      word.includes("_") ? [word, ...word.split("_").filter(Boolean)] : [word],
    );
  }

  /** What the telling ones of some words have in common with their other forms. */
  function stemsOf(words) {
    return new Set(words.filter((word) => !EMPTY_WORDS.has(word)).map(stemOf));
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

  /** Find the words of each place, once: page by page, so that one can type meanwhile. */
  async function readBook() {
    const count = (counts, word) => counts.set(word, (counts.get(word) ?? 0) + 1);
    for (const [name, { title, places }] of Object.entries(PAGES)) {
      await new Promise((resolve) => setTimeout(resolve));
      const page = { name, title, prose: places.flatMap(([, , prose]) => prose) };
      for (const [anchor, names, prose, also, known] of places) {
        const words = wordsOf([...prose, also].join(" "));
        const place = { page, anchor, title: names[0], prose, stems: stemsOf(words) };
        place.names = [...names, ...known].map((name) => stemsOf(wordsOf(name)));
        place.heading = new Set(place.names.flatMap((stems) => [...stems]));
        place.heading.forEach((stem) => book.named.add(stem));
        words.push(...wordsOf([...names, ...known].join(" ")));
        words.forEach((word) => count(book.spelled, word));
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

  /** The stems of the words of the book that begin so. */
  function stemsBegunBy(start) {
    const words = [...book.spelled.keys()].filter((known) => known.startsWith(start));
    return [...new Set(words.map(stemOf))].filter((stem) => book.counts.has(stem));
  }

  /**
   * What stands in the book for a word that was typed: itself; else longer words that begin with it;
   * else the most frequent word that is one edit away. Of a word that is still being typed, a few
   * letters are enough.
   */
  function meaningOf(word, isBegun = false) {
    const stem = stemOf(word);
    // A Korean word has more endings than stemOf knows.
    const mayEnd = HANGUL.test(word) && word.length > 1;
    if (book.counts.has(stem)) return { word, stems: mayEnd ? stemsBegunBy(stem) : [stem] };
    const longer = isBegun || mayEnd || word.length > 3 ? stemsBegunBy(mayEnd ? stem : word) : [];
    if (longer.length) return { word, stems: longer };
    const near = [...book.spelled].filter(([known]) => known.length > 3 && isOneEdit(word, known));
    if (word.length < 4 || /\d/.test(word) || !near.length) return { word, stems: [] };
    const [[nearest]] = near.toSorted((a, b) => b[1] - a[1]);
    return { word: nearest, typed: word, stems: [stemOf(nearest)] };
  }

  /** The same, part by part for a name or a Korean compound that the book does not have whole. */
  function meaningsOf(word, isBegun) {
    const whole = meaningOf(word, isBegun);
    if (whole.stems.length) return [whole];
    if (word.includes("_")) return word.split("_").filter(Boolean).map((part) => meaningOf(part));
    return (HANGUL.test(word) && meaningsOfTwoNouns(word)) || [whole];
  }

  /** Korean may leave out the space between two nouns, each of which has two syllables or more. */
  function meaningsOfTwoNouns(word) {
    for (let end = 2; end <= word.length - 2; end++) {
      const nouns = [word.slice(0, end), word.slice(end)].flatMap((noun) => meaningsOf(noun));
      if (nouns.every(({ stems }) => stems.length)) return nouns;
    }
  }

  /**
   * The words of a query that say something, each with what stands for it in the book. While one
   * types, the query may end within a word.
   */
  function parse(query, isTyping = false) {
    const words = splitWords(query).filter((word) => !EMPTY_WORDS.has(word));
    const begun = isTyping && /[\p{Letter}\p{Number}_]$/u.test(query) && words.at(-1);
    const meant = [...new Set(words)].flatMap((word) => meaningsOf(word, word === begun));
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
    return /index|glossary|sources|bibliography|library|korean/.test(name) ? 0.8 : 1;
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

  const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });

  /** The sentences of a paragraph from each that stands alone, as many as fit. */
  function passagesOf(paragraph, longest) {
    const sentences = [...segmenter.segment(paragraph)].map(({ segment }) => segment.trim());
    return sentences.flatMap((first, start) => {
      if (!standsAlone(first)) return [];
      let text = first;
      for (const next of sentences.slice(start + 1)) {
        if (!isProse(next) || text.length + next.length > longest) break;
        text += ` ${next}`;
      }
      return { first, text };
    });
  }

  /** How much of what was asked a statement holds, and how much to the letter. */
  function worthQuoting(sentence, telling) {
    if (sentence.endsWith("?")) return 0;
    const words = wordsOf(sentence);
    const held = worthOfAll(telling.filter(isIn(stemsOf(words)))) / worthOfAll(telling);
    const exact = telling.filter(({ word }) => words.includes(word)).length / telling.length;
    return held && held + 0.2 * exact;
  }

  /** What can be quoted of a place, in the language of the query; of its page where there is nothing. */
  function passagesFor({ page, anchor, prose }, { isKorean, longest }) {
    for (const paragraphs of anchor ? [prose, page.prose] : [page.prose]) {
      const readable = paragraphs.filter((text) => isKorean || !HANGUL.test(text));
      const chosen = readable.length ? readable : paragraphs;
      const passages = chosen.flatMap((text) => passagesOf(text, longest));
      if (passages.length) return passages;
    }
    return [{ first: page.title, text: page.title }];
  }

  /** What stands below a hit: a definition, else the passage that answers best, else the opening. */
  function quotationOf(place, telling, wishes) {
    if (place.page.name === "book/glossary" && place.anchor) return place.prose[0];
    const passages = passagesFor(place, wishes);
    const [best] = passages
      // What answers may need the sentence before it: then the passage is worth half as much.
      .map(({ first, text }) => ({
        text,
        worth: Math.max(worthQuoting(first, telling), 0.5 * worthQuoting(text, telling)),
      }))
      .toSorted((a, b) => b.worth - a.worth);
    // Half an answer says less of a page than its opening does, which is its finding.
    return best.worth > (place.anchor ? 0 : 0.5) ? best.text : passages[0].text;
  }

  // ---- What is shown of an answer

  function element(name, className, ...contents) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...contents);
    return made;
  }

  /** A text whose words are marked where they were asked for. */
  function marked(text, telling) {
    return text.split(WORD_OR_REST).map((part) => {
      const wasAskedFor = telling.some(isIn(stemsOf(wordsOf(part))));
      return wasAskedFor ? element("span", "highlighted", part) : part;
    });
  }

  /** A place as readers see it: its address, its page, its section there, and what is said of it. */
  function hitOf(place, telling, wishes) {
    const { page, anchor, title } = place;
    const address = `${ROOT}${page.name}.html${anchor && `#${anchor}`}`;
    const quotation = quotationOf(place, telling, wishes);
    const said = element("p", "context", ...marked(quotation, telling));
    if ((quotation.match(/[가-힣]/g) ?? []).length > quotation.length / 3) said.lang = "ko";
    return { address, page: page.title, section: anchor && title, said };
  }

  /** What the search took a word for, and which words it does not know. */
  function noteOn(query, { corrected, unknown }) {
    const note = [];
    if (corrected.length) {
      const parts = query.split(WORD_OR_REST).map((part) => {
        const found = corrected.find(({ typed }) => typed === part.toLowerCase());
        return found ? element("em", "", found.word) : part;
      });
      note.push("Results for ", ...parts, ". ");
    }
    const names = unknown.map(({ word }) => `“${word}”`).join(" or ");
    if (names) note.push(`The book does not have the word ${names}. `);
    return note;
  }

  /** How much was found. */
  function countOf({ length }, most) {
    if (!length) return "Nothing was found. Try a word that names it, such as “rotation”.";
    if (length > most) return `The best ${most} of ${length} places in the book.`;
    return length === 1 ? "One place in the book." : `${length} places in the book.`;
  }

  /**
   * What answers a query: the best hits, at most so many, and how many there are, with a note on the
   * words of the query. A quotation has at most so many letters, unless one sentence alone is longer.
   */
  function answer(query, { most, longest, isTyping }) {
    const parsed = parse(query, isTyping);
    const places = find(parsed);
    const wishes = { longest, isKorean: HANGUL.test(query) };
    const hits = places.slice(0, most).map((place) => hitOf(place, parsed.telling, wishes));
    const words = parsed.telling.map(({ word }) => word).join(" ");
    const note = noteOn(query, parsed);
    return { hits, words, note, count: countOf(places, most), hasMore: places.length > most };
  }

  /** Let Sphinx mark these words on the page that is opened next (sphinx_highlight.js). */
  function markNext(words) {
    if (SPHINX_HIGHLIGHT_ENABLED) localStorage.setItem("sphinx_highlight_terms", words);
  }

  /** Load what stands in the book, as a script: a page on a disk may fetch nothing. */
  let loaded;
  function load() {
    return (loaded ??= new Promise((resolve, reject) => {
      const script = element("script");
      script.src = INDEX;
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      document.head.append(script);
    }).then(readBook));
  }

  return { load, answer, markNext, element, parse, find, book, stemOf };
})();
