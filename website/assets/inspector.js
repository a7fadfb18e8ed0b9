// The page "What does this model's RoPE do?". What a configuration says comes from rope_settings.js;
// here it is shown. `inspector.view` makes the answer as text and needs no page, so the build shows
// the first example with it, and readers without scripts see that.

const inspector = (() => {
  const { CannotSay, UnknownFamily, describe, group, read, spans, words } = ropeSettings;
  const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const MOST_KINDS = 6; // that are drawn

  // ---- The pairs

  const turnsOf = (frequency, length) => (frequency * length) / (2 * Math.PI);
  const say = (turns) => (turns === 0 ? "stands still" : `${turns < 1000 ? Number(turns.toPrecision(3)) : group(turns.toFixed(0))} turns`);

  /** Colour by turns. A pair that came round in training has met every angle; another has not. */
  function shade(turns, trained) {
    if (turns === 0) return "pair-still";
    if (trained !== null && trained < 1 && turns > trained * (1 + 1e-9)) return "pair-new";
    return turns >= 32 ? "pair-many" : turns >= 1 ? "pair-some" : "pair-part";
  }

  const rowOf = (name, turns) => ({ name, turns, shades: turns.map((each) => shade(each, null)) });

  /** Whether layers look back no farther than a window, at the trained length as at the one asked. */
  function isWithinWindow({ window, trained }, length) {
    return window !== null && window <= Math.min(trained ?? Infinity, length);
  }

  /** The rows of a strip: each a name and the turns of every pair. */
  function rowsOf(kind, shown, length) {
    const { window, trained } = shown;
    const reach = (asked) => (window === null ? asked : Math.min(asked, window));
    const scaled = kind.frequencies.some((w, i) => Math.abs(w / shown.unscaled[i] - 1) > 1e-9);
    const rows = [];
    if (isWithinWindow(shown, length))
      return [rowOf(`within ${group(String(window))}`, kind.frequencies.map((w) => turnsOf(w, window)))];
    if (trained !== null)
      rows.push({ name: `within ${group(String(reach(trained)))}`, turns: shown.unscaled.map((w) => turnsOf(w, reach(trained))) });
    const asked = group(String(reach(length)));
    const isAsTrained = trained !== null && !scaled && reach(length) === reach(trained);
    if (!isAsTrained)
      rows.push({
        name: scaled ? `within ${asked}, unscaled` : `within ${asked}`,
        turns: (scaled ? shown.unscaled : kind.frequencies).map((w) => turnsOf(w, reach(length))),
        asked: true,
      });
    if (scaled)
      rows.push({ name: `within ${asked}, ${kind.rope_type}`, turns: kind.frequencies.map((w) => turnsOf(w, reach(length))), asked: true });
    for (const row of rows)
      row.shades = row.turns.map((turns, i) => shade(turns, row.asked && trained !== null ? rows[0].turns[i] : null));
    return rows;
  }

  const pairsWith = (row, wanted) => row.shades.flatMap((each, i) => (each === wanted ? [i] : []));

  /** What the strip shows, in sentences. */
  function told(kind, shown, length, rows) {
    const said = [];
    const slow = rows[0].turns.flatMap((turns, i) => (turns > 0 && turns < 1 ? [i] : []));
    if (isWithinWindow(shown, length)) {
      const window = group(String(shown.window));
      const come = slow.length ? `Within them pairs ${spans(slow)} do not come round once, and a` : "A";
      return `These layers look back over ${window} positions and no farther. ${come} longer text shows them no new angle.`;
    }
    if (shown.trained === null) said.push("The file does not say for which length the model was trained before it was scaled, so no angle can be called new.");
    else {
      said.push(
        slow.length
          ? `Within ${rows[0].name.slice(7)} positions (${shown.trainedFrom}) pairs ${spans(slow)} do not come round once.`
          : `Within ${rows[0].name.slice(7)} positions (${shown.trainedFrom}) every pair that turns comes round at least once.`
      );
      for (const row of rows.slice(1)) {
        const fresh = pairsWith(row, "pair-new");
        const how = row.name.replace("within ", "Within ");
        said.push(`${how}: ${fresh.length ? `pairs ${spans(fresh)} meet` : "no pair meets"} angles beyond those of training.`);
      }
      if (rows.length === 1) said.push("A text of that length meets no other angle.");
      if (rows.length > 2 && !pairsWith(rows[2], "pair-new").length) said.push("That says nothing about what the scaling costs.");
    }
    if (shown.window !== null)
      said.push(`These layers look back over a window of ${group(String(shown.window))} positions, and no farther.`);
    return said.join(" ");
  }

  const KEY = {
    "pair-many": "32 turns or more",
    "pair-some": "1 to 32 turns",
    "pair-part": "less than one turn",
    "pair-new": "angles beyond those of training",
    "pair-still": "stands still",
  };

  function strip(kind, shown, length, index, layers) {
    const rows = rowsOf(kind, shown, length);
    const drawn = rows.map(
      ({ name, shades }) =>
        `<div class="pairs-row"><span class="pairs-name">${escape(name)}</span>` +
        `<span class="pairs" aria-hidden="true" style="--pairs: ${shades.length}">${shades.map((each) => `<i class="${each}"></i>`).join("")}</span></div>`
    );
    const present = Object.keys(KEY).filter((each) => rows.some((row) => row.shades.includes(each)));
    const key = present.map((each) => `<li><i class="${each}"></i>${KEY[each]}</li>`).join("");
    const last = kind.frequencies.length - 1;
    return `<div class="pairs-strip" data-kind="${index}">
      <p class="pairs-told">${escape(told(kind, shown, length, rows))}</p>
      <p class="pairs-ends" aria-hidden="true"><span>pair 0, the fastest</span><span>pair ${last}</span></p>
      ${drawn.join("")}
      <ul class="pairs-key">${key}</ul>
      <p class="pairs-one"><label><span>One pair<span class="visually-hidden"> of ${escape(layers)}</span></span> <input type="range" min="0" max="${last}" value="${last}"></label> <output></output></p></div>`;
  }

  /** The turns of one pair, in words. */
  function pairSaid(kind, shown, length, pair) {
    const said = rowsOf(kind, shown, length).map(({ name, turns }) => `${say(turns[pair])} ${name}`);
    return `Pair ${pair}: ${said.join("; ")}`;
  }

  // ---- Lines to copy

  const needsLength = (settings) => settings.kinds.some((kind) => ["dynamic", "longrope"].includes(kind.rope_type));
  const first = (settings, index) => settings.layers.indexOf(index);

  function moduleLines(settings, length) {
    const given = needsLength(settings) ? `, seq_len=${length}` : "";
    if (settings.kinds.some((kind) => kind.rotary_start > 0))
      return [
        "from pe_lib.rope import rotary_settings",
        "",
        `layer = rotary_settings("config.json"${given.replace("seq_len=", "")}).layers[${first(settings, 0)}]`,
        "# The last entries of a head turn: give a module x[..., layer.rotary_start:] alone.",
        "frequencies, factor = layer.frequencies, layer.attention_factor",
      ].join("\n");
    return [
      "from pe_lib.torch import rotary_modules",
      "",
      "# One for each layer, None where nothing turns.",
      "# q and k have the shape (batch, heads, seq, width).",
      `rotary = rotary_modules("config.json"${given})`,
      `q, k = rotary[${first(settings, 0)}](q), rotary[${first(settings, 0)}](k)`,
    ].join("\n");
  }

  const layersOf = (settings, index) => settings.layers.flatMap((each, layer) => (each === index ? [layer] : []));

  /** A test for each kind of layer, and one for the layers that are not rotated. */
  function testLines(settings, length) {
    const given = needsLength(settings) ? `, seq_len=${length}` : "";
    const still = layersOf(settings, null);
    const differ = settings.kinds.length > 1 || still.length > 0;
    const tests = settings.kinds.map((kind, index) => {
      const axes = kind.pair_axes === null ? 0 : Math.max(...kind.pair_axes) + 1;
      const layers = layersOf(settings, index);
      const layer = layers[0];
      const note = differ ? `# Layers ${spans(layers)}` : "# All layers";
      return `\n\n${note}
def test_layer_${layer}_turns_as_the_configuration_says():
    layer = SETTINGS.layers[${layer}]
    doctor.assert_turns_as(${differ ? `turn_of(${layer})` : "turn"}, layer.head_dim, layer${axes > 1 ? `, position_axes=${axes}` : ""})`;
    });
    if (still.length)
      tests.push(`\n\n# Layers ${spans(still)}
def test_which_layers_are_not_rotated():
    for number, layer in enumerate(SETTINGS.layers):
        assert (turn_of(number) is None) == (layer is None), number`);
    const theirs = differ
      ? `# turn_of(layer) is the rotary function of a layer, turn(x, positions) -> y, NumPy arrays
# in and out${still.length ? "; None where a layer is not rotated" : ""}.
from my_model import turn_of`
      : `# turn(x, positions) -> y, NumPy arrays in and out.
from my_model import turn`;
    return `# Needs pe_lib: "pip install ." in a clone of this book's repository. Run with pytest.
${theirs}

from pe_lib import doctor
from pe_lib.rope import rotary_settings

SETTINGS = rotary_settings("config.json"${given})
${tests.join("\n")}`;
  }

  const block = (title, name, text) =>
    `<div class="inspector-lines"><h2 id="inspector-${name}-title">${title}</h2>` +
    `<button type="button" data-copy="${name}" aria-describedby="inspector-${name}-title">Copy</button>` +
    `<section class="inspector-code" aria-labelledby="inspector-${name}-title" tabindex="0" id="inspector-${name}">${escape(text)}</section></div>`;

  // ---- The answer

  const NOTES = {
    split: (kind) => `Entry i makes a pair with entry i + ${kind.rotary_dim / 2}. Read as neighbours instead, nothing fails: the scores are wrong.`,
    interleaved: () => "Entry 2i makes a pair with entry 2i + 1. Read as halves instead, nothing fails: the scores are wrong.",
  };

  function list(lines, kind) {
    if (!lines.length) return "";
    const rows = lines
      .map(([name, text]) => {
        const notes = name === "layout" && kind ? [NOTES[kind.layout](kind)] : [];
        if (notes.length && kind.layout_out !== kind.layout)
          notes.push("It writes the pairs as halves: the scores stay the same, and cached keys differ from those of code that writes neighbours.");
        const shown = name === "axes" && text.length > 60 ? axesInRuns(kind.pair_axes) : text;
        // A line without a name goes on with the one before it.
        const row = `<dd>${escape(shown)}${notes.map((note) => `<small>${escape(note)}</small>`).join("")}</dd>`;
        return (name ? `<dt>${name}</dt>` : "") + row;
      })
      .join("");
    return `<dl>${rows}</dl>`;
  }

  /** How many pairs each axis of a position turns. */
  function axesInRuns(axes) {
    const names = [...new Set(axes)].sort();
    return names.map((axis) => `axis ${axis} turns pairs ${spans(axes.flatMap((each, i) => (each === axis ? [i] : [])))}`).join("; ");
  }

  function answer(settings, length) {
    const { title, before, blocks, after } = words(settings);
    const [family, ...rest] = title.split(" · ");
    const kinds = blocks.map(({ heading, lines }, index) => {
      const kind = settings.kinds[index];
      const name = blocks.length > 1 ? `<h2>${escape(heading)}</h2>` : "";
      const drawn = index < MOST_KINDS ? strip(kind, settings.shown[index], length, index, heading.split(" · ")[0]) : "";
      return `${name}${list(lines, kind)}${drawn}`;
    });
    return (
      `<p class="inspector-title"><strong>${escape(family)}</strong> · ${escape(rest.join(" · "))}</p>` +
      `${list(before)}${kinds.join("")}${list(after)}` +
      (settings.kinds.length ? block("Its rotation in pe_lib", "module", moduleLines(settings, length)) : "") +
      (settings.kinds.length ? block("A test of your own rotation", "test", testLines(settings, length)) : "") +
      block("What <code>python -m pe_lib</code> prints", "said", describe(settings))
    );
  }

  /** The answer to a text: HTML, a sentence for the voice, and whether the family is not known. */
  function view(text, length, layout = null) {
    if (!text.trim()) return { html: "<p>Paste a config.json, or press an example.</p>", said: "", unknown: false };
    try {
      if (!(Number.isInteger(length) && length >= 1 && length <= 1e9))
        throw new CannotSay(`the length must be a whole number from 1 to 1,000,000,000`);
      const settings = read(text, { length, layout });
      return { html: answer(settings, length), said: words(settings).title, unknown: false, settings };
    } catch (error) {
      if (!(error instanceof CannotSay)) throw error;
      const said = `Cannot say: ${error.message}`;
      return { html: `<p class="inspector-cannot">${escape(said)}</p>`, said, unknown: error instanceof UnknownFamily };
    }
  }

  // ---- The page

  function start(form) {
    const [text, length, layout] = ["config", "tokens", "layout"].map((name) => form.elements[name]);
    const result = document.getElementById("inspector-answer");
    const status = form.querySelector("[role=status]");
    const examples = JSON.parse(document.getElementById("inspector-examples").textContent);
    let shown;
    const show = () => {
      const own = layout.closest("label");
      shown = view(text.value, Number(length.value), own.hidden ? null : layout.value || null);
      // The choice stays while it is what makes the family readable.
      own.hidden = !(shown.unknown || (!own.hidden && layout.value));
      result.innerHTML = shown.html;
      status.textContent = shown.said;
      result.querySelectorAll(".pairs-one input").forEach(tellPair);
    };
    const tellPair = (slider) => {
      const index = Number(slider.closest("[data-kind]").dataset.kind);
      const said = pairSaid(shown.settings.kinds[index], shown.settings.shown[index], Number(length.value), Number(slider.value));
      slider.setAttribute("aria-valuetext", said);
      slider.closest(".pairs-one").querySelector("output").textContent = said;
    };
    let waiting;
    const soon = () => {
      clearTimeout(waiting);
      waiting = setTimeout(show, 250);
    };
    const press = (name) => {
      layout.value = "";
      layout.closest("label").hidden = true;
      text.value = examples[name].config;
      length.value = examples[name].length;
      show();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      show();
    });
    form.addEventListener("input", ({ target }) => {
      if (target === text) layout.value = "";
      if (target !== form.elements.file) soon();
    });
    form.elements.file.addEventListener("change", async ({ target }) => {
      if (!target.files.length) return;
      text.value = await target.files[0].text();
      layout.value = "";
      show();
    });
    form.addEventListener("click", ({ target }) => target.dataset.example && press(target.dataset.example));
    result.addEventListener("input", ({ target }) => target.matches(".pairs-one input") && tellPair(target));
    result.addEventListener("click", async ({ target }) => {
      if (!target.dataset.copy) return;
      const lines = document.getElementById(`inspector-${target.dataset.copy}`);
      try {
        await navigator.clipboard.writeText(lines.textContent);
        status.textContent = "Copied.";
        target.textContent = "Copied";
        setTimeout(() => (target.textContent = "Copy"), 2000);
      } catch {
        getSelection().selectAllChildren(lines);
        status.textContent = "The browser allows no copying here: the lines are selected.";
      }
    });
    show();
  }

  const useTable = (table) => ropeSettings.useTable(table);
  if (typeof document !== "undefined" && document.getElementById("inspector")) {
    useTable(document.getElementById("inspector-families").textContent);
    start(document.getElementById("inspector"));
  }
  return { moduleLines, testLines, rowsOf, useTable, view };
})();
