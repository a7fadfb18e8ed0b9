// Filters the ledger of the sources. Without this script every claim stands in the page.

const VERDICTS = ["true", "true with conditions", "imprecise", "false"];

const claims = [...document.querySelectorAll(".ledger tbody tr")].map((row) => ({
  row,
  source: row.querySelector("[id]").id[0].toUpperCase(),
  verdict: row.querySelector(".verdict").textContent,
}));
const sections = [...new Set(claims.map(({ row }) => row.closest("section")))];

/** A group of boxes. With none of them ticked, the group leaves nothing out. */
function group(name, title, values) {
  const boxes = values.map(
    (value) => `<label><input type="checkbox" name="${name}" value="${value}"> ${value}</label>`
  );
  return `<fieldset><legend>${title}</legend>${boxes.join("")}</fieldset>`;
}

function makeForm() {
  const form = document.createElement("form");
  form.className = "ledger-filter";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Claims");
  const sources = [...new Set(claims.map(({ source }) => source))];
  form.innerHTML = `
    ${group("source", "Source", sources)}
    ${group("verdict", "Verdict", VERDICTS)}
    <label class="ledger-words">Words <input type="search" name="words" autocomplete="off"></label>
    <button type="button">Show all</button>
    <p role="status" aria-live="polite"></p>`;
  return form;
}

/** Show the claims that the form asks for, and say how many they are. */
function filter(form) {
  const asked = new FormData(form);
  const [sources, verdicts] = [asked.getAll("source"), asked.getAll("verdict")];
  const words = asked.get("words").toLowerCase().split(/\s+/).filter(Boolean);
  for (const { row, source, verdict } of claims) {
    const text = words.length ? row.textContent.toLowerCase() : "";
    row.hidden = !(
      (!sources.length || sources.includes(source)) &&
      (!verdicts.length || verdicts.includes(verdict)) &&
      words.every((word) => text.includes(word))
    );
  }
  for (const section of sections)
    section.hidden = !section.querySelector(".ledger tbody tr:not([hidden])");
  const shown = claims.filter(({ row }) => !row.hidden).length;
  form.querySelector("[role=status]").textContent =
    shown === claims.length ? `All ${shown} claims` : `${shown} of ${claims.length} claims`;
}

function showAll(form) {
  form.reset();
  filter(form);
}

/** A link to a claim or a source that is filtered away brings everything back. */
function reveal(form) {
  const target = document.querySelector(":target");
  if (!target?.closest("[hidden]")) return;
  showAll(form);
  target.scrollIntoView();
}

const form = makeForm();
sections[0].before(form);
form.addEventListener("input", () => filter(form));
form.addEventListener("submit", (event) => event.preventDefault());
form.querySelector("button").addEventListener("click", () => showAll(form));
window.addEventListener("hashchange", () => reveal(form));
// A link to where the page is already changes no hash.
document.addEventListener("click", ({ target }) => {
  if (target.closest("a")?.href === location.href) reveal(form);
});
filter(form);
