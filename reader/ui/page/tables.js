// The tables: functions, locks.
const COLUMNS = [
  { id: "self", text: "self", of: (row) => row[2], show: duration, tip: "time in the function itself" },
  { id: "total", text: "total", of: (row) => row[3], show: duration, tip: "time with what it called" },
  { id: "off", text: "off the CPU", of: (row) => row[4], show: duration, tip: "part of the total that was not on a CPU", shown: () => facts.has_cpu && !facts.has_wake_ups },
  { id: "blocked", text: "blocked", of: (row) => row[4] - row[5], show: duration, tip: "part of the total in which the thread waited for something other than a CPU", shown: () => facts.has_wake_ups },
  { id: "ready", text: "no CPU", of: (row) => row[5], show: duration, tip: "part of the total in which the thread could run, and other threads had the CPUs", shown: () => facts.has_wake_ups },
  { id: "calls", text: "calls", of: (row) => row[1], show: count },
  { id: "avg", text: "average", of: (row) => row[7], show: duration },
  { id: "p50", text: "p50", of: (row) => row[9], show: duration, tip: "half of the calls took no longer" },
  { id: "p99", text: "p99", of: (row) => row[11], show: duration, tip: "99 % of the calls took no longer" },
  { id: "max", text: "longest", of: (row) => row[12], show: duration },
  { id: "shape", text: "distribution", tip: "calls by duration, a column for each power of two" },
  { id: "name", text: "function", of: (row) => nameOf(row[0]) },
];
const ROWS = 300;

// Totals of the present range. They stay in memory, because the detail of a call needs
// them, too.
const totals = { key: null, asked: null, rows: [], parts: [], ofAll: 0, busy: null, recording: [], serving: null, byFunction: new Map(),
  notes: new Map(), legend: [], marks: new Map(), marksLegend: [] };
const presentRange = () => state.range && { from: state.range.from, until: state.range.until };
function forgetTotals() { totals.key = totals.asked = null; }
// Reads the totals of the present range, also if another one is chosen meanwhile.
async function readTotals() {
  const key = pair(state.range);
  if (totals.key === key) return;
  if (totals.asked?.key !== key) totals.asked = { key, answer: source.totals(presentRange()) };
  const { asked } = totals;
  let answer = null;
  try {
    answer = await asked.answer;
  } catch (error) {
    if (totals.asked === asked) forgetTotals();
    throw error;
  }
  if (totals.asked !== asked) return readTotals();
  totals.key = key;
  totals.rows = answer.totals;
  totals.parts = answer.parts;
  totals.ofAll = answer.of_all_ns;
  totals.busy = answer.busy && { rows: answer.busy.totals, parts: answer.busy.parts, ofAll: answer.busy.of_all_ns };
  totals.recording = answer.recording;
  totals.serving = answer.serving;
  totals.byFunction = new Map(answer.totals.map((row) => [row[0], row]));
  totals.notes = new Map(answer.notes.map(([id, text]) => [id, micro(text)]));
  totals.legend = answer.notes_legend.map(micro);
  totals.marks = new Map(answer.marks.map(([id, text]) => [id, micro(text)]));
  totals.marksLegend = answer.marks_legend.map(micro);
}

// The note in a function's row if calls of it were left out; null: nothing.
const leftOutNote = (id) => totals.notes.has(id) ? make("span", { class: "hot" }, totals.notes.get(id)) : null;
// The marks in a function's row, as [recording]; and the lines that explain them.
const rowMarks = (id) => totals.marks.has(id) ? make("span", { class: "module" }, totals.marks.get(id)) : null;
const marksLegend = () => totals.marksLegend.map((line) => make("p", { class: "dim" }, line));
const leftOutText = (id) => totals.notes.get(id) || "";
const leftOutLegend = () => totals.legend.map((line) => make("p", { class: "dim" }, line));

// Reads the totals, and returns whether they are known.
async function hasTotals() {
  try {
    await readTotals();
    return true;
  } catch (error) {
    if (!error.isEarly) throw error;
    return false;
  }
}

class FunctionTable {
  constructor() {
    this.limit = ROWS;
    this.filter = make("input", { type: "search", placeholder: "function or module", "aria-label": "Show only functions that contain", value: state.filter,
      oninput: (event) => { this.limit = ROWS; change({ filter: event.target.value }); } });
    this.note = make("span", { role: "status" });
    this.bar = make("div", { class: "bar" }, make("label", {}, "only:", this.filter), this.note);
    this.place = make("div", {});
  }
  async show(main, isCurrent) {
    await readTotals();
    if (!isCurrent()) return;
    clear(main, this.bar, this.place);
    this.fill();
  }
  fill() {
    const wanted = state.filter.toLowerCase();
    const rows = totals.rows.filter((row) => !wanted || nameOf(row[0]).toLowerCase().includes(wanted) || moduleOf(row[0]).toLowerCase().includes(wanted));
    const column = COLUMNS.find((one) => one.id === state.sort) || COLUMNS[0];
    const value = column.of || COLUMNS[0].of;
    const sign = state.up ? 1 : -1;
    rows.sort((a, b) => {
      const left = value(a), right = value(b);
      if (typeof left === "string") return sign * left.localeCompare(right);
      return sign * ((left ?? -1) - (right ?? -1));
    });
    const all = totals.rows.reduce((sum, row) => sum + row[2], 0);
    const shown = rows.reduce((sum, row) => sum + row[2], 0);
    this.note.textContent = count(rows.length) + " functions, " + duration(shown) + " in themselves" + (wanted ? ", " + share(shown, all) : "");
    const columns = COLUMNS.filter((one) => !one.shown || one.shown());
    const head = columns.map((one) => make("th", {
      class: ["name", "shape"].includes(one.id) ? one.id : null, scope: "col", title: one.tip,
      "aria-sort": one.id === state.sort ? (state.up ? "ascending" : "descending") : null,
    }, one.of ? make("button", { onclick: () => change({ sort: one.id, up: one.id === state.sort ? !state.up : one.id === "name" }) }, one.text) : one.text));
    const body = rows.slice(0, this.limit).map((row) => make("tr", {
      class: state.func === row[0] ? "chosen" : null, ...actionOf(() => change({ func: row[0], call: null, tab: "details" })),
    }, columns.map((one) => this.cell(one, row))));
    clear(this.place, marksLegend(), leftOutLegend(), make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)),
      rows.length > this.limit && make("button", { onclick: () => { this.limit *= 4; this.fill(); } }, "show more of " + count(rows.length)));
  }
  cell(column, row) {
    if (column.id === "name") {
      return make("td", { class: "name", title: nameOf(row[0]).slice(0, 500) }, nameOf(row[0]).slice(0, 300), leftOutNote(row[0]), rowMarks(row[0]), make("span", { class: "module" }, moduleOf(row[0])));
    }
    if (column.id === "shape") return make("td", { class: "shape", title: row[13] ? "from " + duration(row[8]) + " to " + duration(row[12]) : null }, row[13] ? shapeOf(row[13]) : "-");
    return make("td", {}, column.show(column.of(row)));
  }
}

class LockTable {
  async show(main, isCurrent) {
    const answer = await source.locks(presentRange());
    if (!isCurrent()) return;
    const head = ["waited", "waits", "longest wait", "held", "holds", "longest hold", "lock", "held longest by"];
    const path = (span) => span ? (span.path || []).slice(-4).map(shortName).map(plain).join(" › ") || "no recorded function" : "-";
    const opened = (lock) => [[lock.open_waits, "wait"], [lock.open_holds, "hold"]].filter(([n]) => n).map(([n, what]) => count(n) + " " + what + (n === 1 ? "" : "s")).join(", ");
    const rows = answer.locks.map((lock) => make("tr", {},
      make("td", {}, duration(lock.waited_ns)), make("td", {}, count(lock.waits)), make("td", {}, duration(lock.longest_wait && lock.longest_wait.duration_ns)),
      make("td", {}, duration(lock.held_ns)), make("td", {}, count(lock.holds)), make("td", {}, duration(lock.longest_hold && lock.longest_hold.duration_ns)),
      make("td", { class: "name" }, plain(lock.kind + " " + lock.name), make("span", { class: "module" }, lock.pid),
        opened(lock) ? make("span", { class: "module", title: "It went on when its thread, the trace or the range ended, up to which it is counted." }, "[open: " + opened(lock) + "]") : null),
      make("td", { class: "name" }, path(lock.longest_hold))));
    clear(main,
      answer.deadlocks.map((ring) => make("p", { class: "hot" }, "Deadlock at the end: " + ring.map((one) => one.pid + "/" + one.tid + " waits for " + plain(one.lock)).join(", "))),
      answer.calls_without_lock
        ? make("p", {}, count(answer.calls_without_lock) + " calls of lock functions of which the lock is not known: with other arguments by -A, lost, or begun before this time.")
        : null,
      answer.locks.length === 0
        ? answer.calls_without_lock ? null : make("p", {}, "No call of a lock function is in this time.")
        : make("table", {}, make("thead", {}, make("tr", {}, head.map((text, i) => make("th", { scope: "col", class: i > 5 ? "name" : null }, text)))), make("tbody", {}, rows)),
      answer.holds_without_end ? make("p", { class: "dim" }, count(answer.holds_without_end) + " holds of which the end was not seen are not counted.") : null,
      make("p", { class: "dim" }, "Seen are calls of the program; locks inside libraries need arctrace record --nest-libcall."));
  }
}
