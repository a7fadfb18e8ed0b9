// Prepared drawings, of which the controls choose one: for pictures that need Python.
peLive.define("frames", ({ controls, frames }) => {
  const keys = ["frame", "frame2"].slice(0, controls.length);
  const of = ({ label, shown, buttons }) => ({
    label,
    value: 0,
    show: (place) => shown[place],
    ...(buttons ? { choices: shown.map((words, place) => [place, words]) } : { min: 0, max: shown.length - 1 }),
  });
  const place = (state) => (keys[1] ? state.frame * controls[1].shown.length : state.frame) + (state.frame2 ?? 0);
  return {
    controls: Object.fromEntries(keys.map((key, which) => [key, of(controls[which])])),
    plain: true, // a reset is one step away, and each drawing says itself what it shows
    says: () => "",
    frame: (state) => frames[place(state)],
  };
});
