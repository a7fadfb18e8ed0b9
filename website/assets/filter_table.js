// A field of words before a long table: rows that have all of them stay. Without it all rows stand.

function addFilter(table) {
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const form = document.createElement("form");
  form.className = "table-filter";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Rows of the table");
  form.innerHTML = `
    <label>Find <input type="search" name="words" autocomplete="off" placeholder="qwen3, interleaved, …"></label>
    <p role="status" aria-live="polite"></p>`;
  const show = () => {
    const words = new FormData(form).get("words").toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    form.querySelector("[role=status]").textContent =
      shown === rows.length ? `All ${shown} rows` : `${shown} of ${rows.length} rows`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  (table.closest(".pst-scrollable-table-container") ?? table).before(form);
  show();
}

document.querySelectorAll("table.filterable").forEach(addFilter);
