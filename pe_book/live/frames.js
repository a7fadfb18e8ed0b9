// Prepared drawings, of which the controls choose one: for pictures that need Python.
peLive.define("frames", ({ controls, frames, said }) => {
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
    plain: true, // a reset is one step away
    saysAloud: true, // what a drawing shows is seen; who hears the page is told when it changes
    says: (state) => said[place(state)],
    frame: (state) => frames[place(state)],
  };
});
