// The signs of the time line, and the legend with those that this trace has.
const SIGNS = [
  { sign: "running", what: "on the CPU", isThere: () => facts.has_cpu },
  { sign: "ready", what: "ready, waits for a CPU", isThere: () => facts.has_wake_ups },
  { sign: "blocked", what: "blocked", isThere: () => facts.has_cpu },
  { sign: "notknown", what: "not known: records of the kernel are missing", isThere: () => facts.not_known_ns > 0 },
  { sign: "pale", what: "calls while blocked", isThere: () => facts.has_cpu },
  { sign: "waits", what: "calls that wait", isThere: () => true },
  { sign: "path", what: "critical path", isThere: () => facts.has_wake_ups },
  { sign: "gap", what: "records are missing", isThere: () => gapsOfCalls.length > 0 },
  { sign: "crowd", what: "too short to be drawn: zoom in", isThere: () => true },
  { sign: "density", what: "not read yet: how densely records were written", isThere: () => !facts.is_whole },
];

function makeLegend() {
  const signs = SIGNS.filter((one) => one.isThere());
  const controls = [
    facts.has_wake_ups && make("button", { id: "path", "aria-pressed": String(critical.isShown), title: "p", onclick: togglePath }, "critical path"),
    make("button", { id: "depth", "aria-pressed": String(timeLine.isDeep), title: "e", onclick: () => timeLine.unfoldAll() }, "all depths"),
    facts.functions.some((entry) => entry[3]) && make("button", { id: "names", "aria-pressed": String(state.wholeNames), title: "n", onclick: toggleNames }, "whole names"),
  ];
  return make("div", { class: "legend" }, make("ul", { "aria-label": "Signs in the time line" },
    signs.map(({ sign, what }) => make("li", {}, make("span", { class: "sign " + sign }), what))), controls);
}
// Shows functions by their whole names, with types, template arguments and parameters, or by short ones.
function toggleNames() {
  change({ wholeNames: !state.wholeNames });
  document.getElementById("names")?.setAttribute("aria-pressed", String(state.wholeNames));
}
// Shows the critical path in the time line, or hides it.
function togglePath() {
  critical.isShown = !critical.isShown;
  document.getElementById("path")?.setAttribute("aria-pressed", String(critical.isShown));
  timeLine.draw();
}
