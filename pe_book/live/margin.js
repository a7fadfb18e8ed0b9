// On a page whose text has marks for a figure that stays beside it (beside.js): its scripts are
// fetched when the page has loaded, and only where the window has room.
(() => {
  const { src } = document.currentScript;
  const roomy = matchMedia("(min-width: 80em) and (min-height: 42em)");
  function fetchCompanion() {
    if (!roomy.matches) return roomy.addEventListener("change", fetchCompanion, { once: true });
    for (const name of ["data/companion", "companion", "beside"]) {
      const script = document.createElement("script");
      script.src = src.replace("margin.js", `${name}.js`);
      script.async = false; // one after the other
      document.head.append(script);
    }
  }
  addEventListener("load", fetchCompanion);
})();
