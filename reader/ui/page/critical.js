// The critical path: its table, what the summary tells of it, and where it runs on the time
// line.
const critical = { key: null, asked: null, answer: null, lanes: new Map(), starts: [], startLanes: [], isShown: true };
function forgetCritical() { critical.key = critical.asked = null; }

// Unpacks the pieces: by lane, with absolute times; and the begins of all, with their
// lanes, in order of time.
function unpackPath(answer) {
  critical.lanes = new Map();
  const begins = [];
  for (const [lane, ...numbers] of answer.pieces) {
    if (lane === null) continue;
    const start = new Float64Array(numbers.length / 2), stop = new Float64Array(numbers.length / 2);
    let at = answer.start_ns;
    for (let i = 0; i < start.length; ++i) {
      at += numbers[2 * i];
      start[i] = at;
      stop[i] = at + numbers[2 * i + 1];
      begins.push([start[i], lane]);
    }
    critical.lanes.set(lane, { start, stop });
  }
  begins.sort((a, b) => a[0] - b[0]);
  critical.starts = Float64Array.from(begins, ([at]) => at);
  critical.startLanes = begins.map(([, lane]) => lane);
}
// Reads the path of the present range, also if another one is chosen meanwhile. REQUIRES:
// facts.has_wake_ups.
async function readCritical() {
  const key = pair(state.range);
  if (critical.key === key) return critical.answer;
  if (critical.asked?.key !== key) critical.asked = { key, answer: source.critical(presentRange()) };
  const { asked } = critical;
  let answer = null;
  try {
    answer = await asked.answer;
  } catch (error) {
    if (critical.asked === asked) forgetCritical();
    throw error;
  }
  if (critical.asked !== asked) return readCritical();
  if (critical.key !== key) {
    critical.key = key;
    critical.answer = answer;
    unpackPath(answer);
    timeLine.draw();
  }
  return answer;
}
// Reads the path for the time line, if it can be known by now.
async function followCritical() {
  if (!facts.has_wake_ups || (!facts.is_whole && !state.range)) return;
  try {
    await readCritical();
  } catch (error) {
    if (!error.isEarly) say("The critical path: " + error.message);
  }
}

// Paints the path along the upper edges of its lanes, and where it goes from one to another.
function paintPath(picture, context) {
  if (!critical.isShown || critical.key !== pair(state.range)) return;
  const { from, until } = state.view, end = GUTTER + picture.width();
  const places = new Map(picture.visible().map(({ index, y }) => [index, y + 2]));
  context.fillStyle = picture.ink.path;
  for (const [lane, y] of places) {
    const pieces = critical.lanes.get(lane);
    if (!pieces) continue;
    const last = firstAfter(pieces.start, until);
    let painted = 0;
    for (let i = firstAfter(pieces.stop, from); i < last; ++i) {
      const left = Math.max(GUTTER, painted, Math.round(picture.xOf(pieces.start[i]))), right = Math.min(end, Math.round(picture.xOf(pieces.stop[i])));
      if (right < left) continue;
      context.fillRect(left, y, Math.max(1, right - left), 3);
      painted = Math.max(left + 1, right);
    }
  }
  const { starts, startLanes } = critical, first = Math.max(1, firstAfter(starts, from)), last = firstAfter(starts, until);
  if (last - first > 500) return;  // lines that cannot be told apart
  for (let i = first; i < last; ++i) {
    const a = places.get(startLanes[i - 1]), b = places.get(startLanes[i]);
    if (a !== undefined && b !== undefined && a !== b) context.fillRect(Math.round(picture.xOf(starts[i])), Math.min(a, b), 1, Math.abs(a - b) + 3);
  }
}

const pathText = (names) => names.slice(-5).map(shortName).map(plain).join(" › ");
const statesText = (states) => states.map(([name, ns]) => name + " " + duration(ns)).join(", ");
function pathMeter(ns, all, isRunning) {
  const meter = make("span", { class: isRunning ? "meter" : "meter off", "aria-hidden": "true" });
  meter.style.width = Math.round(130 * ns / Math.max(1, all)) + "px";
  return meter;
}

class CriticalTable {
  async show(main, isCurrent) {
    if (!facts.has_wake_ups) {
      clear(main, make("p", {}, "What each wait was ended by is not in this trace: arctrace record --kernel=bpf records it."));
      return;
    }
    const answer = await readCritical();
    if (!isCurrent()) return;
    const rows = answer.critical_path.map((row) => make("tr", row.lane === null ? {} : actionOf(() => timeLine.goTo(row.lane, row.at_ns, row.until_ns)),
      make("td", {}, duration(row.ns)), make("td", {}, share(row.ns, answer.wall_ns)), make("td", { class: "name" }, pathMeter(row.ns, answer.wall_ns, row.state === "running")),
      make("td", { class: "name" }, row.state), make("td", { class: "name" }, plain(row.process), make("span", { class: "module" }, row.pid + "/" + row.tid)),
      make("td", { class: "name" }, pathText(row.path) || make("span", { class: "dim" }, "outside of recorded functions"))));
    const head = ["time", "share", "", "state", "thread", "where"];
    clear(main, make("p", {}, "What the " + duration(answer.wall_ns) + " from begin to end depended on: from the last end back through each wait to what ended it. A click goes to where a row was longest."),
      rows.length === 0 ? make("p", {}, "No thread has time in this stretch.")
        : make("table", {}, make("thead", {}, make("tr", {}, head.map((text, i) => make("th", { scope: "col", class: i > 1 ? "name" : null }, text)))), make("tbody", {}, rows)));
  }
}

// The section of the summary, as the summary in a terminal has it: by name of the thread.
function dependsSection(answer) {
  if (!answer || !answer.is_explanation || answer.by_name.length === 0) return null;
  const all = answer.wall_ns;
  const rows = answer.by_name.filter((row, i) => i === 0 || row.ns >= all / 50).map((row) => make("tr", {},
    make("td", {}, duration(row.ns)), make("td", {}, share(row.ns, all)), make("td", { class: "name" }, pathMeter(row.ns, all, row.states[0][0] === "running")),
    make("td", { class: "name", title: row.path.slice(0, 500) }, plain(row.name), make("span", { class: "module" }, statesText(row.states))),
    make("td", { class: "name" }, row.path ? make("span", { class: "dim" }, (row.states.length > 1 ? "mostly in " : "in ") + plain(row.path)) : "")));
  return make("section", {}, make("h2", {}, "What the " + duration(all) + " depended on"),
    make("table", {}, make("tbody", {}, rows)),
    make("p", { class: "dim" }, "in all: " + statesText(answer.states) + ". ", make("button", { onclick: () => change({ tab: "critical" }) }, "the critical path")));
}
