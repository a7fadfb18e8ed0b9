// The kit of the live figures: controls, dragging, play and address, for every kind.
//
// A kind of figure is one file beside this one, which calls `peLive.define(name, make)`. A notebook
// gets draw.js, light.js, this file and that one as one module, through anywidget. The site loads
// the same texts as plain scripts, since a module cannot be imported from a file: address, and gives
// `start` a stand-in for the model.
const peLive = (() => {
  const kinds = {};
  const kept = {}; // what files of data have brought, by the kind of figure
  const NARROW = 520; // px of a picture's box below which its narrow drawing shows, as in kit.css
  const GLIDE = 320; // ms from one state to the next
  const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  const { count, escape, tag } = peDraw;

  // ---- Values ---------------------------------------------------------------------------------

  /** The allowed value that is nearest to what was asked for, or the one to begin with. */
  function allowed(control, asked, start) {
    const number = String(asked ?? "").trim() === "" ? NaN : Number(asked);
    if (control.choices) {
      const values = control.choices.map(([value]) => value);
      const same = values.find((value) => String(value) === String(asked));
      if (same !== undefined || typeof values[0] !== "number" || Number.isNaN(number))
        return same ?? start;
      return values.reduce((a, b) => (Math.abs(b - number) < Math.abs(a - number) ? b : a));
    }
    if (control.pattern) return RegExp(`^${control.pattern}$`).test(asked) ? String(asked) : start;
    if (Number.isNaN(number)) return start;
    const { min, max, step = 1 } = control;
    const within = Math.min(max, Math.max(min, number));
    if (control.log) return Math.round(control.digits ? within.toPrecision(control.digits) : within);
    const stepped = min + Math.round((within - min) / step) * step;
    return Number(Math.min(max, stepped).toFixed(6)) || 0;
  }

  const defaults = (spec) =>
    Object.fromEntries(Object.entries(spec.controls).map(([key, control]) => [key, control.value]));

  /** A whole state: what was asked for where it is allowed, the rest from a state that is. */
  const allowAll = (spec, asked, start) =>
    Object.fromEntries(
      Object.entries(spec.controls).map(([key, control]) => [
        key,
        key in asked ? allowed(control, asked[key], start[key]) : start[key],
      ])
    );

  /** What lies between two states: numbers between numbers, and of what is chosen the new choice. */
  const between = (spec, from, to, share) =>
    Object.fromEntries(
      Object.entries(spec.controls).map(([key, { choices, pattern, jumps, log }]) => {
        const [a, b] = [from[key], to[key]];
        if (choices || pattern || jumps || a === b) return [key, b];
        return [key, log ? a * (b / a) ** share : a + share * (b - a)];
      })
    );

  // A range runs over the values themselves, or over 1000 parts of their logarithm.
  const PARTS = 1000;
  const toRange = ({ log, min, max }, value) =>
    log ? Math.round((PARTS * Math.log(value / min)) / Math.log(max / min)) : value;
  const fromRange = ({ log, min, max }, place) => (log ? min * (max / min) ** (place / PARTS) : place);

  const shown = (control, value) =>
    (control.show ? control.show(value) : count(value)) + (control.unit ? `\u202f${control.unit}` : "");

  // ---- The box --------------------------------------------------------------------------------

  function controlHtml(key, control, value) {
    if (control.pattern) return ""; // it is set in the picture
    const name = escape(control.label);
    if (control.choices) {
      const buttons = control.choices.map(([choice, words]) =>
        tag("button", { type: "button", "data-set": key, "data-value": escape(choice), "aria-pressed": choice === value }, escape(words))
      ); // prettier-ignore
      return `<div class="live__control live__choice" role="group" aria-label="${name}">
<span class="live__name">${name}</span><span class="live__row">${buttons.join("")}</span></div>`;
    }
    const { log, min, max, step = 1 } = control;
    const limits = log ? { min: 0, max: PARTS, step: 1 } : { min, max, step };
    const value_ = { value: toRange(control, value), "aria-label": name, "aria-valuetext": escape(shown(control, value)) };
    const input = tag("input", { type: "range", "data-key": key, ...limits, ...value_ }).replace("</input>", "");
    const nudge = (by, sign, word) =>
      `<button type="button" data-nudge="${key}" data-value="${by}" aria-label="${sign}, ${word}: ${name}">${sign}</button>`;
    const track = log && control.nudge
      ? `<span class="live__row">${nudge(-1, "−1", "one less")}${input}${nudge(1, "+1", "one more")}</span>`
      : input; // prettier-ignore
    return `<div class="live__control"><span class="live__name" aria-hidden="true">${name}</span>
<span class="live__value" aria-hidden="true">${escape(shown(control, value))}</span>${track}</div>`;
  }

  /** One drawing of the picture, as wide or as narrow as asked. Its `way` is empty in a still. */
  function picture(spec, state, wide, way = {}) {
    const { width, height, parts } = spec.draw(state, wide, way);
    const look = `live-picture live-picture--${wide ? "wide" : "narrow"}`;
    const hasKeys = Object.values(spec.handles ?? {}).some(({ key }) => key);
    const role = way.lives && hasKeys ? "group" : "img"; // what is in an image has no focus
    const named = { role, "aria-label": escape(`${spec.title}. ${spec.says(state)}`) };
    return tag(
      "svg",
      { xmlns: "http://www.w3.org/2000/svg", class: look, viewBox: `0 0 ${width} ${height}`, width, height, ...named },
      parts.join("")
    ); // prettier-ignore
  }
  const pictures = (spec, state) =>
    spec.frame ? spec.frame(state) : picture(spec, state, true) + picture(spec, state, false);

  /** The figure's formula with the numbers of its state. Each term is a button that lights its part
      of a figure that lives. */
  function formulaHtml(spec, state, lives) {
    if (!spec.formula) return "";
    const term = ([words, part, meaning]) =>
      `<button type="button"${lives ? "" : " disabled"} class="tie tie-${part}" data-light="${part}" title="${escape(meaning)}" aria-label="${escape(`${words}: ${meaning}`)}">${escape(words)}</button>`; // prettier-ignore
    const terms = spec.formula(state).map((piece) => (Array.isArray(piece) ? term(piece) : escape(piece)));
    return `<p class="live__formula" role="group" aria-label="The formula with these numbers">${terms.join("")}</p>\n`;
  }

  /** What stands in the box below its question. The stills are this text, at the state to begin with. */
  function html(spec, state) {
    const controls = Object.entries(spec.controls).map(([key, c]) => controlHtml(key, c, state[key]));
    const presets = (spec.presets ?? []).map(
      ([name], which) => `<button type="button" data-preset="${which}">${escape(name)}</button>`
    );
    const button = (name, said) => `<button type="button" data-${name}>${said}</button>`;
    const play = spec.play ? button("play", "Play") : "";
    const reset = spec.plain ? "" : button("reset", "Reset");
    return `<div class="live__picture">${pictures(spec, state)}</div>
${formulaHtml(spec, state, false)}<div class="live__controls">${controls.join("")}
<div class="live__row live__presets">${play}${presets.join("")}${reset}</div></div>
<p class="live__says${spec.saysAloud ? " live__aloud" : ""}" aria-live="polite">${escape(spec.says(state))}</p>`;
  }

  /** Make one tree like another by changing only what differs: focus and capture stay. */
  function patch(old, fresh) {
    if (old.nodeType === 3) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes)
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const [had, has] = [[...old.childNodes], [...fresh.childNodes]];
    has.forEach((child, k) => {
      if (!had[k]) old.append(child);
      else if (had[k].nodeName !== child.nodeName) had[k].replaceWith(child);
      else patch(had[k], child);
    });
    had.slice(has.length).forEach((child) => child.remove());
  }
  function parse(source) {
    const template = document.createElement("template");
    template.innerHTML = source;
    return template.content.firstChild;
  }

  // ---- A figure that moves --------------------------------------------------------------------

  /** The pictures of each live box as it is now, for a copy of it. */
  const copies = new WeakMap();

  /** Bring a box to life. It may hold its still already. Gives a function that ends it. */
  function start(model, box) {
    const spec = kinds[model.get("figure")](model.get("data") ?? {});
    const asked = () => Object.fromEntries(Object.keys(spec.controls).map((key) => [key, model.get(key)]));
    const first = allowAll(spec, asked(), defaults(spec));
    let state = allowAll(spec, model.address?.read(Object.keys(spec.controls)) ?? {}, first);
    if (!box.querySelector(".live__controls")) box.insertAdjacentHTML("beforeend", html(spec, state));
    const find = (selector) => [...box.querySelectorAll(selector)];
    for (const control of find("input, button")) control.dataset.lmSuppressShortcuts = ""; // JupyterLab's
    const [pictureBox] = find(".live__picture");
    const [saying] = find(".live__says");
    peLight.light(box);
    const range = (key) => find(`input[data-key="${key}"]`)[0];
    let wide = true; // which of the two drawings shows
    let later = 0;
    let drawn = state; // what the picture shows: on its way to the state, while it glides
    let from = state; // where it comes from
    let share = 1; // of the way
    let gliding = 0;
    let held = null; // what is dragged

    function redraw(which) {
      const [svg] = find(`.live-picture--${which ? "wide" : "narrow"}`);
      const hand = held?.place && { name: held.name, part: held.part, place: held.place, let: held.let };
      const way = { lives: true, from, share, hand };
      if (svg) patch(svg, parse(picture(spec, drawn, which, way)));
    }
    function draw() {
      redraw(wide);
      clearTimeout(later); // the drawing that does not show: for print, and for a screen that turns
      later = setTimeout(() => redraw(!wide), 200);
    }
    /** Let the picture show the state: at once, or on the way to it from what it shows now. */
    function show(glides) {
      if (gliding) cancelAnimationFrame(gliding);
      gliding = 0;
      from = drawn;
      if (!glides || isCalm()) return arrive();
      const start = performance.now();
      const step = (now) => {
        const time = Math.min(1, Math.max(0, now - start) / GLIDE);
        if (time === 1 || !box.isConnected) return arrive();
        share = time * time * (3 - 2 * time);
        drawn = between(spec, from, state, share);
        gliding = requestAnimationFrame(step);
        draw();
      };
      step(start);
    }
    function arrive() {
      gliding = 0;
      share = 1;
      from = drawn = state;
      if (held?.let) held = null;
      draw();
    }
    function sync(glides = false) {
      for (const [key, control] of Object.entries(spec.controls)) {
        const input = range(key);
        if (!input) continue;
        const words = shown(control, state[key]);
        const place = String(toRange(control, state[key]));
        if (input.value !== place) input.value = place;
        input.disabled = !(control.when ?? (() => true))(state);
        input.setAttribute("aria-valuetext", words);
        input.closest(".live__control").querySelector(".live__value").textContent = words;
      }
      for (const button of find("[data-set]"))
        button.setAttribute("aria-pressed", String(state[button.dataset.set]) === button.dataset.value);
      if (spec.frame) pictureBox.innerHTML = spec.frame(state);
      else show(glides);
      const [formula] = find(".live__formula");
      if (formula) patch(formula, parse(formulaHtml(spec, state, true)));
      const words = spec.says(state);
      if (saying.textContent !== words) saying.textContent = words;
    }
    /** Change the state. What is free need not be a step: a hand that is dragged, or a play. What
        glides is seen on its way. */
    function change(asked, { free = false, glides = false } = {}) {
      const next = free ? { ...state, ...asked } : allowAll(spec, { ...state, ...asked }, first);
      if (Object.keys(next).every((key) => next[key] === state[key])) return;
      state = next;
      sync(glides);
      tell();
      if (!free) model.address?.write(state, first);
    }
    /** Let a kernel know: each control is a trait of its widget. */
    function tell() {
      for (const [key, value] of Object.entries(state)) if (model.get(key) !== value) model.set(key, value);
      model.save_changes();
    }

    // Ranges, buttons.
    box.addEventListener("input", ({ target }) => {
      const key = target.dataset.key;
      if (!key) return;
      stop();
      const control = spec.controls[key];
      const place = Number(target.value);
      let value = fromRange(control, place);
      // On a logarithmic track a small step may not reach the next value: go there.
      const way = control.log ? Math.sign(place - toRange(control, state[key])) : 0;
      if (way && allowed(control, value, value) === state[key]) {
        // Down from 1,000 the next value is 990, not 900.
        const decimal = Math.floor(Math.log10(state[key] * (1 + 1e-9 * way)));
        value = state[key] + way * (control.digits ? 10 ** (decimal + 1 - control.digits) : 1);
      }
      change({ [key]: value }, { glides: !("byPointer" in box.dataset) });
      target.value = toRange(control, state[key]);
    });
    box.addEventListener("pointerdown", ({ target }) => {
      if (target.dataset.key) hold(spec.controls[target.dataset.key]);
    });
    /** What is held is lit, with all that moves with it. */
    const hold = ({ part, moves = [] }, touched = part) => peLight.touch({ held: touched, moves: [part, ...moves] });
    // The ring of focus is for the keyboard: it waits while a pointer moves something.
    box.addEventListener("pointerdown", () => (box.dataset.byPointer = ""), true);
    box.addEventListener("keydown", () => delete box.dataset.byPointer, true);
    // A finger that lands on a track moves it at once; where it goes on to scroll, that is undone.
    let before = state;
    box.addEventListener("pointerdown", () => (before = state), true);
    box.addEventListener("pointercancel", ({ target }) => target.dataset?.key && change(before));
    box.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (!button) return;
      const { set, value, nudge, preset, play, reset } = button.dataset;
      if (play !== undefined) return playing ? stop() : begin();
      stop();
      const glides = true;
      if (set) change({ [set]: value }, { glides });
      if (nudge) change({ [nudge]: state[nudge] + Number(value) }, { glides });
      if (reset !== undefined) change(first, { glides });
      if (preset) {
        const asked = spec.presets[preset][1];
        change(typeof asked === "function" ? asked(state) : asked, { glides });
      }
    });

    // Dragging: what carries data-handle can be taken hold of. It then has the focus of the range
    // that it moves, so the arrow keys go on from there. What is no range has the focus itself.
    const point = (event) => {
      const place = new DOMPoint(event.clientX, event.clientY);
      return place.matrixTransform(held.svg.getScreenCTM().inverse());
    };
    const isPulled = () => held && !held.let;
    pictureBox.addEventListener("pointerdown", (event) => {
      const grip = event.target.closest("[data-handle]");
      if (!grip || event.button) return;
      stop();
      const [name, part] = grip.dataset.handle.split(" ");
      const handle = spec.handles[name];
      held = { svg: grip.closest("svg"), name, handle, part: Number(part), before: state };
      const control = spec.controls[handle.control];
      held.tie = peLight.partOf(grip) ?? control.part;
      pictureBox.setPointerCapture(event.pointerId);
      (range(handle.control) ?? grip.closest("[tabindex]"))?.focus({ preventScroll: true });
      hold(control, held.tie); // whose pointer is now the box's
      event.preventDefault(); // no text is marked
      held.start = point(event);
      if (!handle.taps) pull(event);
    });
    /** How far a pointer strays before what it taps is dragged, in pixels of the drawing. */
    const STRAYS = 5;
    function pull(event) {
      if (!isPulled()) return;
      const { handle, part, before, start } = held;
      const place = point(event);
      held.strays ||= Math.hypot(place.x - start.x, place.y - start.y) > STRAYS;
      if (handle.taps && !held.strays) return;
      if (handle.carries) held.place = place;
      const was = state;
      change(handle.move(state, place, wide, part, { before, start }), { free: handle.free, glides: handle.carries });
      if (handle.carries && state === was) draw();
    }
    function release(event) {
      if (!isPulled()) return;
      peLight.touch({ pointed: held.tie }); // until a mouse leaves it, or a finger taps something else
      const { handle, part, start, strays, place } = held;
      const isTap = handle.taps && !strays && event.type === "pointerup";
      if (isTap) change(handle.taps(state, start, wide, part), { glides: true });
      held.let = true; // it glides to its place
      if (!place) held = null;
      settle();
      if (held) show(true);
    }
    pictureBox.addEventListener("pointermove", pull);
    pictureBox.addEventListener("pointerup", release);
    pictureBox.addEventListener("pointercancel", release);
    pictureBox.addEventListener("keydown", (event) => {
      const grip = event.target.closest("[data-handle][tabindex]");
      if (!grip || event.ctrlKey || event.metaKey || event.altKey) return;
      const [name, part] = grip.dataset.handle.split(" ");
      const asked = spec.handles[name].key(state, event.key, Number(part));
      if (!asked) return;
      event.preventDefault(); // no scrolling
      stop();
      change(asked, { glides: true });
    });

    // Play starts by hand. Where motion is not wanted it goes in whole steps, one a second.
    let playing = 0;
    let cancel; // what ends a wait: numbers of timeouts and of frames are not told apart
    function begin() {
      const calm = isCalm();
      cancel = calm ? clearTimeout : cancelAnimationFrame;
      let last = 0;
      const beat = (now) => {
        const seconds = calm ? 1 : Math.min(0.1, (now - (last || now)) / 1000);
        last = now;
        if (!box.isConnected) return stop();
        change(spec.play(state, seconds), { free: !calm });
        if (playing) playing = calm ? setTimeout(beat, 1000, 0) : requestAnimationFrame(beat);
      };
      playing = -1;
      say("Pause");
      saying.ariaLive = "off";
      beat(performance.now());
    }
    function stop() {
      if (!playing) return;
      cancel(playing);
      playing = 0;
      say("Play");
      saying.ariaLive = "polite";
      settle();
    }
    const say = (word) => (find("[data-play]")[0].textContent = word);

    /** A hand that was dragged or played goes to the nearest step, and the address follows. */
    function settle() {
      change(state, { glides: true });
      model.address?.write(state, first);
    }
    const free = Object.values(spec.handles ?? {}).filter((handle) => handle.free);
    /** Where Python has put a hand that can be dragged between its steps, as a linked one is. */
    const betweenSteps = () =>
      Object.fromEntries(
        free.map(({ control: key }) => {
          const { min, max } = spec.controls[key];
          return [key, Math.min(max, Math.max(min, model.get(key)))];
        })
      );
    /** What Python has set is shown; where it is no allowed value, Python is told the nearest one. */
    function follow() {
      change({ ...allowAll(spec, asked(), first), ...betweenSteps() }, { free: true });
      tell();
    }
    box.addEventListener("set-state", ({ detail }) => {
      stop();
      change(detail, { glides: true });
    });
    const changes = Object.keys(spec.controls).map((key) => `change:${key}`).join(" ");
    model.on(changes, follow);
    const watch = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width) wide = contentRect.width >= NARROW;
    });
    watch.observe(pictureBox);
    wide = (pictureBox.clientWidth || NARROW) >= NARROW;
    copies.set(box, () => pictures(spec, state));
    sync();
    box.dataset.live = "";
    return () => {
      stop();
      if (gliding) cancelAnimationFrame(gliding);
      clearTimeout(later);
      watch.disconnect();
      model.off(changes, follow);
    };
  }

  // ---- In a notebook: anywidget gives the model -----------------------------------------------

  function render({ model, el }) {
    const box = document.createElement("div");
    box.className = "live";
    const question = model.get("question");
    if (question) box.innerHTML = `<p class="live__question">${escape(question)}</p>`;
    el.append(box);
    return start(model, box);
  }

  // ---- On the site: a stand-in for the model, and the state in the address --------------------

  /** The states of a page's figures in its address, as `?clock.x=4&clock.step=2`. */
  function addressOf(box) {
    const anchor = box.closest("figure[id], div.live[id]")?.id;
    const same = document.querySelectorAll(`.live[data-figure="${box.dataset.figure}"]`);
    const name = anchor ?? box.dataset.figure + ([...same].indexOf(box) || "");
    let later = 0;
    const write = (state, first) => {
      const url = new URL(location.href);
      for (const [key, value] of Object.entries(state)) {
        if (value === first[key]) url.searchParams.delete(`${name}.${key}`);
        else url.searchParams.set(`${name}.${key}`, value);
      }
      if (anchor) url.hash = anchor;
      history.replaceState(history.state, "", url);
    };
    return {
      read(keys) {
        const asked = new URLSearchParams(location.search);
        const found = keys.filter((key) => asked.has(`${name}.${key}`));
        return Object.fromEntries(found.map((key) => [key, asked.get(`${name}.${key}`)]));
      },
      write(...states) {
        clearTimeout(later); // browsers allow few changes of the address a second
        later = setTimeout(write, 300, ...states);
      },
    };
  }

  /** Bring a box to life, unless it lives. */
  function hydrate(box) {
    if ("live" in box.dataset) return;
    const data = box.querySelector("script[type='application/json']");
    const traits = {
      ...JSON.parse(box.dataset.state),
      figure: box.dataset.figure,
      data: data ? JSON.parse(data.textContent) : {},
    };
    const nothing = () => {};
    const model = { get: (name) => traits[name], set: (name, value) => (traits[name] = value) };
    start({ ...model, save_changes: nothing, on: nothing, off: nothing, address: addressOf(box) }, box);
  }

  /** Figures come to life one after the other once the page stands, so that none holds it up. */
  const waiting = [];
  window.addEventListener("load", () => waiting.forEach((box, n) => setTimeout(hydrate, 100 * n, box)));

  /** What a file of data brings to a kind of figure, beside the data of the figure itself. */
  const keep = (name, data) => (kept[name] = data);

  /** A kind of figure: a function that gives, for a figure's data, all that the kit asks for. */
  function define(name, make) {
    kinds[name] = (data) => make({ ...kept[name], ...data });
    waiting.push(...document.querySelectorAll(`.live[data-figure="${name}"]:not([data-live])`));
  }

  return { kinds, copies, keep, define, hydrate, html, allowAll, defaults, render };
})();
