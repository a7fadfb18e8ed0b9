// Ties: a term that is touched lights its part of the figure, and the other way round.
const peLight = (() => {
  const PART = /(?:^|\s)tie-([a-z]+)/;
  // How a lit term of a formula looks. The colour of its part stands in kit.css.
  const TERM = `--tie-line: 2px solid; border-radius: 4px;
    background: color-mix(in srgb, var(--tie) 18%, transparent); text-decoration-line: underline;
    text-decoration-style: solid; text-decoration-thickness: 2px; text-decoration-color: var(--tie)`;
  const partOf = (target) => target.closest?.("[class*='tie-']")?.getAttribute("class").match(PART)?.[1];

  const touched = {}; // the parts that are held, pointed at and focused; and what moves with the held
  const sheet = typeof document.createElement === "function" && document.createElement("style");
  /** Note what is touched, and light it: what is held wherever the pointer goes, else what it is at.
      The part is named on the element that holds figure and text. With what is held, all that moves
      with it is lit. */
  function touch(parts) {
    Object.assign(touched, parts);
    const part = touched.held ?? touched.pointed ?? touched.focused;
    const page = document.documentElement;
    if (part) page.dataset.lit = part;
    else delete page.dataset.lit;
    page.toggleAttribute("data-held", Boolean(touched.held));
    const lit = new Set([part, ...(touched.held ? touched.moves ?? [] : [])].filter(Boolean));
    const all = (before) => [...lit].map((one) => `[data-lit] ${before}.tie-${one}.tie-${one}`).join();
    sheet.textContent = lit.size
      ? `${all(".live__picture ")} { opacity: 1 } ${all(":is(button, mjx-container *)")} { ${TERM} }`
      : "";
    if (!sheet.isConnected) document.head.append(sheet);
  }
  const release = () => touch({ held: undefined });
  window.addEventListener("pointerup", release);

  /** Light what is pointed at, touched or focused within an element. A finger that scrolls touches
      nothing; where it has tapped stays lit until it taps something else. */
  function light(element) {
    const at = ({ target }) => touch({ pointed: partOf(target) });
    element.addEventListener("pointerover", (event) => event.pointerType === "touch" || at(event));
    element.addEventListener("pointerup", (event) => {
      if (event.pointerType === "touch" && !touched.held) at(event);
    });
    element.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType !== "touch") touch({ pointed: undefined });
    });
    element.addEventListener("pointercancel", release);
    element.addEventListener("focusin", ({ target }) => {
      if (target.matches(":focus-visible")) touch({ focused: target.dataset.light });
    });
    element.addEventListener("focusout", () => touch({ focused: undefined }));
    element.addEventListener("keydown", ({ key }) => {
      if (key === "Escape") touch({ held: undefined, pointed: undefined, focused: undefined });
    });
  }

  return { partOf, touch, light };
})();
