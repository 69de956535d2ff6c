// The state of the page. The address has all of it, so that it can be sent to somebody.
const state = {
  view: null,      // {from, until}: of the time line
  range: null,     // {from, until}: of tables and flame graph; null: the whole
  call: null,      // {lane, level, start, stop, what, flags}
  func: null,      // a FunctionId
  wanted: {},      // call and function of the address, while the page does not know them yet
  tab: "summary",
  weight: null, per: "all", inverted: false, flameSearch: "",
  sort: "self", up: false, filter: "",
  theme: null,     // null: the system's
  wholeNames: false,  // of functions, instead of short ones
};
let facts = null;  // the answer to "summary"
let source = null;
const listeners = [];

function onChange(listener) { listeners.push(listener); }
function change(values) {
  if ("call" in values || "func" in values) state.wanted = {};
  const changed = new Set(Object.keys(values).filter((name) => state[name] !== values[name]));
  Object.assign(state, values);
  for (const listener of listeners) listener(changed);
  writeAddress();
}

const pair = (range) => range ? Math.floor(range.from) + "," + Math.ceil(range.until) : "";
let addressTimer = 0;
function writeAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => {
    const values = new URLSearchParams();
    const isWhole = state.view.from === facts.from_ns && state.view.until === facts.until_ns;
    if (!isWhole) values.set("view", pair(state.view));
    if (state.range) values.set("range", pair(state.range));
    const call = state.call ? callText(state.call) : state.wanted.call;
    if (call) values.set("call", call);
    const name = state.func !== null ? shortNameOf(state.func) : state.wanted.function;
    if (name) values.set("function", name);
    for (const name of ["tab", "weight", "per", "sort", "filter", "theme"]) {
      if (state[name]) values.set(name, state[name]);
    }
    if (state.inverted) values.set("inverted", "1");
    if (state.wholeNames) values.set("names", "whole");
    if (state.up) values.set("up", "1");
    if (state.flameSearch) values.set("find", state.flameSearch);
    history.replaceState(null, "", "#" + values.toString());
  }, 150);
}
function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  const range = (name) => {
    const list = (values.get(name) || "").split(",").map(Number);
    return list.length === 2 && list.every(Number.isFinite) && list[0] < list[1] ? { from: list[0], until: list[1] } : null;
  };
  state.view = range("view") || { from: facts.from_ns, until: Math.max(facts.until_ns, facts.from_ns + 1) };
  state.range = source.canReadAgain ? range("range") : null;
  const choose = (name, choices) => { if (choices.includes(values.get(name))) state[name] = values.get(name); };
  choose("tab", TABS.map((tab) => tab.id));
  choose("weight", Object.keys(WEIGHTS));
  choose("per", Object.keys(GROUPINGS));
  choose("sort", COLUMNS.map((column) => column.id));
  choose("theme", ["light", "dark"]);
  state.inverted = values.get("inverted") === "1";
  state.up = values.get("up") === "1";
  state.wholeNames = values.get("names") === "whole";
  state.filter = values.get("filter") || "";
  state.flameSearch = values.get("find") || "";
  state.wanted = { call: values.get("call"), function: values.get("function") };
  findWanted();
}

// A call and a function in the address: lanes by their keys, functions by their short names.
function callText(call) {
  return [facts.lanes[call.lane].key, call.level, call.start, call.stop, shortNameOf(call.what)].join(",");
}
// Finds those of the wanted call and function that the page knows by now.
function findWanted() {
  const idOf = (name) => facts.functions.findIndex((entry) => entry[0] === name);
  const { wanted } = state;
  const [key, ...rest] = (wanted.call || "").split(",");
  const lane = facts.lanes.findIndex((one) => one.key === key);
  const [level, start, stop] = rest.map(Number);
  const what = idOf(rest.slice(3).join(","));
  if (lane >= 0 && what >= 0 && [level, start, stop].every(Number.isFinite)) {
    state.call = { lane, level, start, stop, what, flags: 0 };
    wanted.call = null;
  }
  const found = wanted.function ? idOf(wanted.function) : -1;
  if (found >= 0) {
    state.func = found;
    wanted.function = null;
  }
}

const shortNameOf = (id) => id < 0 ? "[too little to be seen]" : facts.functions[id] ? facts.functions[id][0] || "[no name]" : "?";
// The name with types, template arguments and parameters, of functions that have another short one; null: the same.
const wholeNameOf = (id) => facts.functions[id]?.[3] || null;
const nameOf = (id) => state.wholeNames && wholeNameOf(id) || shortNameOf(id);
const moduleOf = (id) => id >= 0 && facts.functions[id] ? fileOf(facts.functions[id][1]) : "";
const laneTitle = (lane) => lane.name + " " + lane.pid + "/" + lane.tid +
  (lane.coroutine ? " coroutine " + lane.coroutine : "") + (lane.adopted ? ", entered before tracing" : "");

// Each function has its colour.
const colors = new Map();
const isWait = (id) => id >= 0 && Boolean(facts.functions[id]?.[2]);
const isDark = () => document.documentElement.dataset.theme === "dark";
function colorOf(id) {
  let color = colors.get(id);
  if (color) return color;
  const own = hash(shortNameOf(id));
  const hue = own % 360;
  const light = isDark() ? 34 + (own >>> 9) % 12 : 72 + (own >>> 9) % 12;
  // Functions that wait are nearly grey.
  const full = isWait(id) ? 12 : isDark() ? 38 : 58;
  color = id < 0 ? (isDark() ? "#3b434d" : "#d9dde3") : "hsl(" + hue + " " + full + "% " + light + "%)";
  colors.set(id, color);
  return color;
}
