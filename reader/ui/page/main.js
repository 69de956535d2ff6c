// Puts the page together.
const TABS = [
  { id: "summary", text: "Summary" }, { id: "flame", text: "Flame graph" }, { id: "functions", text: "Functions" },
  { id: "locks", text: "Locks" }, { id: "critical", text: "Critical path" }, { id: "details", text: "Details" },
];
const KEYS = [
  ["w  s", "zoom in and out"], ["a  d", "move left and right"], ["0", "all of the time"],
  ["↑ ↓ ← →", "choose the caller, the first callee, the call before, the one after"], ["Enter  f", "zoom to the chosen call"],
  ["shift ↑ ↓", "scroll the lanes"], ["drag", "move"], ["shift drag", "choose a range of time for summary, tables and flame graph"],
  ["r", "the range that is shown becomes that range"], ["Esc", "back to the whole time"],
  ["ctrl wheel, pinch", "zoom"], ["wheel", "scroll the lanes"], ["click on a thread", "fold and unfold it"], ["e", "all rows of deep threads, or the first ones"], ["n", "whole names of functions, or short ones"], ["p", "the critical path in the time line"],
  ["1 – 6", "the tabs"], ["/", "search"], ["t", "light or dark"], ["?", "this list"],
];
let timeLine = null;
const status = make("div", { class: "say", role: "status" });

// Shows a message that stays for a while; screen readers read it out.
let sayTimer = 0;
function say(text) {
  status.textContent = text;
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => { status.textContent = ""; }, 8000);
}

function setTheme() {
  const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  colors.clear();
}

function makeHeader(search) {
  const has = (number, one, many) => number ? count(number) + " " + (number === 1 ? one : many) : null;
  const words = [facts.end, duration(facts.wall_ns ?? facts.until_ns - facts.from_ns)];
  if (facts.has_cpu && facts.is_whole) words.push("on the CPU " + duration(facts.cpu_ns), offText(facts.off_ns, facts.ready_ns), facts.not_known_ns ? "not known " + duration(facts.not_known_ns) : null);
  words.push(has(facts.counts.processes, "process", "processes"), has(facts.counts.threads, "thread", "threads"));
  return make("header", {},
    make("div", { class: "head" },
      make("h1", { title: facts.command.slice(0, 1000) }, facts.command.slice(0, 500) || fileOf(facts.path || "arctrace")),
      make("div", { class: "facts", title: facts.records_text },
        make("b", {}, words.filter(Boolean).join(" · ")),
        !facts.is_whole ? [" · " + bytesText(facts.bytes) + " of records, losses not known yet · reading: ", make("span", { class: "reading" }, reading.text)]
          : facts.lost ? make("span", { class: "hot" }, " · ! " + facts.records_text) : make("span", { class: "whole" }, " · " + count(facts.records) + " records, none lost"))),
    search.element,
    make("button", { id: "theme", "aria-label": "Light or dark", title: "light or dark (t)",
      onclick: () => change({ theme: isDark() ? "light" : "dark" }) }, "◐"),
    make("button", { id: "help", "aria-label": "Keys", title: "keys (?)", onclick: () => document.querySelector("dialog").showModal() }, "?"));
}

function makeTabs(main, panes) {
  const buttons = TABS.map((tab) => make("button", { role: "tab", id: "tab-" + tab.id, "aria-controls": "pane", onclick: () => change({ tab: tab.id }) }, tab.text));
  const scope = make("span", { class: "scope" });
  const nav = make("nav", { role: "tablist", "aria-label": "Views" }, buttons, scope);
  nav.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.target.getAttribute("role") !== "tab") return;
    const next = (TABS.findIndex((tab) => tab.id === state.tab) + step + TABS.length) % TABS.length;
    change({ tab: TABS[next].id });
    buttons[next].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    TABS.forEach((tab, i) => {
      buttons[i].setAttribute("aria-selected", String(tab.id === state.tab));
      buttons[i].tabIndex = tab.id === state.tab ? 0 : -1;
    });
    main.setAttribute("aria-labelledby", "tab-" + state.tab);
    // What was there is of another tab, range or call. If the data are there already, this is
    // not painted.
    const focused = main.contains(document.activeElement) ? document.activeElement : null;
    main.classList.remove("fills");
    main.setAttribute("aria-busy", "true");
    clear(main, make("p", { class: "dim", role: "status" }, "reading…"));
    clear(scope, state.range
      ? [make("span", {}, "of " + moment(state.range.from, 1000) + " – " + moment(state.range.until, 1000) + " (" + duration(state.range.until - state.range.from) + ") "),
        make("button", { onclick: () => change({ range: null }) }, "whole time")]
      : source.canReadAgain ? [make("span", {}, "of the whole time "), make("button", { title: "r", onclick: shownRange }, "only what is shown")] : "of the whole time");
    try {
      await panes[state.tab].show(main, () => mine === turn);
    } catch (error) {
      if (mine !== turn) return;
      main.classList.remove("fills");
      clear(main, error.isEarly ? readingNote() : make("p", { class: "failure", role: "alert" }, "The server does not answer: " + error.message));
    }
    if (mine !== turn) return;
    main.removeAttribute("aria-busy");
    if (focused && main.contains(focused)) focused.focus();
  };
  return { nav, show };
}
function shownRange() { change({ range: { from: Math.floor(state.view.from), until: Math.ceil(state.view.until) } }); }

function makeSplitter() {
  const splitter = make("div", { class: "splitter", role: "separator", "aria-orientation": "horizontal", "aria-label": "Height of the time line", tabindex: 0 });
  const set = (height) => { timeLine.element.style.flexBasis = Math.max(120, Math.min(height, window.innerHeight - 200)) + "px"; };
  splitter.addEventListener("pointerdown", (event) => {
    splitter.setPointerCapture(event.pointerId);
    splitter.onpointermove = (move) => set(move.clientY - timeLine.element.getBoundingClientRect().top);
  });
  splitter.addEventListener("pointerup", () => { splitter.onpointermove = null; });
  splitter.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -30, ArrowDown: 30 }[event.key];
    if (!step) return;
    set(timeLine.element.clientHeight + step);
    event.preventDefault();
    event.stopPropagation();
  });
  return splitter;
}

function listenToKeys(search) {
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (event.key === "/") search.input.focus();
    else if (event.key === "?") document.querySelector("dialog").showModal();
    else if (event.key === "t") change({ theme: isDark() ? "light" : "dark" });
    else if (event.key === "p" && facts.has_wake_ups) togglePath();
    else if (event.key === "n" && document.getElementById("names")) toggleNames();
    else if (event.key === "r" && source.canReadAgain) shownRange();
    else if (event.key === "Escape") { timeLine.spot = null; change({ range: null, call: null, func: null }); }
    else if (event.key >= "1" && event.key <= String(TABS.length)) change({ tab: TABS[Number(event.key) - 1].id });
    else if (target.tagName === "BUTTON" && ["Enter", " "].includes(event.key)) return;
    else if (target.tagName === "TR" || !timeLine.key(event)) return;
    event.preventDefault();
  });
}

async function start() {
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const app = document.getElementById("app");
  let refresh = null;  // once there is a page
  source = makeSource(() => refresh && refresh());
  try {
    facts = await source.summary();
  } catch (error) {
    clear(app, make("p", { class: "loading failure", role: "alert" }, "The trace could not be read: " + error.message));
    return;
  }
  readAddress();
  setTheme();
  document.title = (facts.command || "arctrace").slice(0, 80) + " – arctrace";
  timeLine = new TimeLine();
  const search = new Search();
  const flame = new FlameGraph(), table = new FunctionTable();
  const panes = { summary: new SummaryPane(), flame, functions: table, locks: new LockTable(), critical: new CriticalTable(), details: new Details() };
  const main = make("main", { id: "pane", role: "tabpanel", tabindex: -1 });
  const tabs = makeTabs(main, panes);
  const help = make("dialog", { "aria-label": "Keys" }, make("h2", {}, "Keys"),
    make("dl", {}, KEYS.map(([keys, what]) => [make("dt", {}, make("kbd", {}, keys)), make("dd", {}, what)])),
    make("h2", {}, "In the time line"),
    make("dl", {}, SIGNS.map(({ sign, what }) => [make("dt", {}, make("span", { class: "sign " + sign })), make("dd", {}, what)])),
    make("p", {}, make("button", { onclick: () => help.close() }, "close")));
  let header = makeHeader(search), legend = makeLegend(), isRefreshing = false;
  // Replaces the early facts by those of the whole trace.
  refresh = async () => {
    if (isRefreshing || facts.is_whole) return;
    isRefreshing = true;
    const before = facts;
    try {
      const made = await source.summary();
      const isAll = state.view.from === before.from_ns && state.view.until === Math.max(before.until_ns, before.from_ns + 1);
      const wanted = { call: state.call ? callText(state.call) : state.wanted.call, function: state.func === null ? state.wanted.function : shortNameOf(state.func) };
      const flags = state.call ? state.call.flags : 0;
      facts = made;
      Object.assign(state, { call: null, func: null, wanted });
      findWanted();
      if (state.call) state.call.flags = flags;
      if (isAll) state.view = { from: facts.from_ns, until: Math.max(facts.until_ns, facts.from_ns + 1) };
      colors.clear();
      forgetTotals();
      forgetCritical();
      flame.key = null;
      const next = makeHeader(search), nextLegend = makeLegend();
      header.replaceWith(next);
      legend.replaceWith(nextLegend);
      header = next;
      legend = nextLegend;
      timeLine.restart(before);
      await tabs.show();
      writeAddress();
      followCritical();
    } catch (error) {
      say("The server does not answer: " + error.message);
    } finally {
      isRefreshing = false;
    }
  };
  clear(app, busy.element, header, timeLine.element, legend, makeSplitter(), tabs.nav, main);
  document.body.append(tip, help, status);
  onChange((changed) => {
    if (changed.has("theme")) setTheme();
    const flames = ["weight", "per", "inverted", "flameSearch"].some((name) => changed.has(name));
    if (["tab", "range", "call", "func", "wholeNames"].some((name) => changed.has(name)) || changed.has("per")) tabs.show();
    else if (state.tab === "flame" && flames) flame.build();
    else if (state.tab === "functions" && ["sort", "up", "filter"].some((name) => changed.has(name))) table.fill();
    if (changed.has("theme")) flame.draw();
    if (changed.has("range")) followCritical();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { setTheme(); timeLine.draw(); flame.draw(); });
  window.addEventListener("hashchange", () => location.reload());  // by hand: all follows from the address
  listenToKeys(search);
  timeLine.fetch();  // it is asked for before the tab's data
  await tabs.show();
  followCritical();
  timeLine.ask();
  timeLine.draw();
  if (state.call) timeLine.show(state.call);
  document.documentElement.dataset.ready = "true";
  window.arctracePage = { state, change, critical, get facts() { return facts; }, timeLine, flame };
  followReading(refresh);
}
start();
