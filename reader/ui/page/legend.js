// The signs of the time line, and the legend with those that this trace has.
const SIGNS = [
  { sign: "running", what: "on the CPU", isThere: () => facts.has_cpu },
  { sign: "ready", what: "ready to run, waits for a CPU", isThere: () => facts.has_wake_ups },
  { sign: "blocked", what: "blocked", isThere: () => facts.has_cpu },
  { sign: "notknown", what: "not known: records of the kernel are missing", isThere: () => facts.not_known_ns > 0 },
  { sign: "gap", what: "records are missing", isThere: () => gapsOfCalls.length > 0 },
  { sign: "crowd", what: "calls too short to be drawn: zoom in", isThere: () => true },
  { sign: "density", what: "not read yet: how densely records were written", isThere: () => !facts.is_whole },
];

function makeLegend() {
  const signs = SIGNS.filter((one) => one.isThere());
  return make("ul", { class: "legend", "aria-label": "Signs in the time line" },
    signs.map(({ sign, what }) => make("li", {}, make("span", { class: "sign " + sign }), what)));
}
