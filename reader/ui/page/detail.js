// The detail of the chosen call or function.
function histogramTable(row, own) {
  const histogram = row[13];
  if (!histogram) return null;
  const first = histogram[0], columns = histogram.slice(1);
  const most = Math.max(...columns, 1);
  const from = (i) => first + i < 0 ? 0 : 2 ** (first + i);
  const lines = columns.map((calls, i) => {
    const here = own !== null && own >= from(i) && own < 2 ** (first + i + 1);
    const meter = make("span", { class: "meter", "aria-hidden": "true" });
    meter.style.width = Math.round(170 * calls / most) + "px";
    return make("tr", { class: here ? "here" : null },
      make("td", {}, duration(from(i)) + " – " + duration(2 ** (first + i + 1))),
      make("td", { class: "name" }, calls ? meter : ""), make("td", {}, count(calls)), make("td", {}, here ? "◂ this call" : ""));
  });
  return make("section", {}, make("h2", {}, "How long its calls took"), make("table", { class: "histogram" }, make("tbody", {}, lines)));
}

function functionLink(id) {
  return make("button", { class: "link mono", onclick: () => change({ func: id, call: null, tab: "details" }) }, nameOf(id).slice(0, 300));
}
// The slowest calls of a function; each row goes to its call. `own`: one that is marked.
function slowestSection(id, calls, own) {
  const rows = calls.map(([lane, level, start, stop, off, unknown, flags]) => {
    const call = { lane, level, start, stop, what: id, flags };
    const isOwn = own && own.lane === lane && own.level === level && own.start === start;
    return make("tr", { class: isOwn ? "chosen" : null, ...actionOf(() => { change({ call, func: null, tab: "details" }); timeLine.show(call); }) },
      make("td", {}, (flags & CUT ? "at least " : "") + duration(stop - start)), facts.has_cpu && make("td", {}, unknown ? "-" : duration(stop - start - off)),
      make("td", {}, moment(start, 1000)), make("td", { class: "name" }, laneTitle(facts.lanes[lane])));
  });
  const head = ["took", ...(facts.has_cpu ? ["on the CPU"] : []), "at", "thread"];
  return rows.length === 0 ? null : make("section", {}, make("h2", {}, "Slowest calls of " + shortName(nameOf(id)).slice(0, 60)), make("table", { class: "slowest" },
    make("thead", {}, make("tr", {}, head.map((text) => make("th", { scope: "col", class: text === "thread" ? "name" : null }, text)))), make("tbody", {}, rows)));
}
// Reads them; an empty list: they are not known yet.
async function slowestOf(id) {
  try {
    return (await source.slowest(id, presentRange())).slowest;
  } catch (error) {
    if (!error.isEarly) throw error;
    return [];
  }
}

const facts_ = (pairs) => make("dl", {}, pairs.filter((entry) => entry && entry[1]).map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

// The file and line of a function's source, and its lines if they are available.
function sourceSection(answer) {
  if (!answer.file) return null;
  const lines = answer.text.map((text, i) => make("tr", { class: answer.first + i === answer.line ? "here" : null },
    make("td", { class: "dim" }, answer.first + i), make("td", { class: "code" }, text)));
  return make("section", { class: "source" }, make("h2", {}, "Source"), make("p", { class: "mono" }, answer.file + ":" + answer.line),
    lines.length > 0 ? make("table", { class: "lines" }, make("tbody", {}, lines)) : make("p", { class: "dim" }, "The file is not on this machine."));
}

class Details {
  async show(main, isCurrent) {
    if (state.call) return this.showCall(main, isCurrent, state.call);
    timeLine.wakes = null;
    if (state.func !== null) return this.showFunction(main, isCurrent, state.func);
    clear(main, make("p", { class: "dim" }, "Click on a call in the time line, or a function in one of the tables."));
  }
  async showFunction(main, isCurrent, id) {
    const areKnown = await hasTotals(), slowest = await slowestOf(id);
    if (!isCurrent()) return;
    const row = totals.byFunction.get(id);
    clear(main, make("h2", { class: "mono" }, nameOf(id)), make("div", { class: "columns" },
      make("section", {}, facts_([
        ["whole name", !state.wholeNames && wholeNameOf(id) && make("span", { class: "mono" }, wholeNameOf(id))],
        ["module", facts.functions[id][1]],
        ["calls", !areKnown ? readingNote() : row ? [count(row[1]), leftOutNote(id)] : "none in this time"],
        row && ["in itself", duration(row[2]) + (facts.thread_ns ? ", " + share(row[2], facts.thread_ns) + " of all threads" : "")],
        row && ["with what it called", duration(row[3])],
        row && facts.has_cpu && ["of that off the CPU", offText(row[4], row[5])],
        row && row[6] && ["average", duration(row[7])],
        row && row[6] && ["p50 · p90 · p99", [row[9], row[10], row[11]].map(duration).join(" · ")],
        row && row[6] && ["shortest · longest", duration(row[8]) + " · " + duration(row[12])],
      ]), make("p", {}, make("button", { onclick: () => change({ tab: "flame", flameSearch: nameOf(id).slice(0, 200) }) }, "show in the flame graph")), totals.notes.has(id) && leftOutLegend()),
      slowestSection(id, slowest, null),
      row && histogramTable(row, null)));
    const found = sourceSection(await source.source(id));
    if (found && isCurrent()) main.querySelector(".columns").append(found);
  }
  async showCall(main, isCurrent, call) {
    const lane = facts.lanes[call.lane];
    const own = call.stop - call.start;
    await hasTotals();
    if (!isCurrent()) return;
    const row = totals.byFunction.get(call.what);
    const isCut = Boolean(call.flags & CUT);
    const head = () => [
      ["in", laneTitle(lane) + (lane.program && lane.program !== lane.name ? " of " + lane.program : "")],
      ["at", moment(call.start, Math.max(1, own / 100)) + " – " + moment(call.stop, Math.max(1, own / 100))],
      ["took", isCut ? "at least " + duration(own) + ": it goes on where the trace has not been read yet. " : duration(own)],
    ];
    const title = make("h2", {}, functionLink(call.what));
    clear(main, title, make("div", { class: "columns" }, make("section", {}, facts_(head())), row && histogramTable(row, isCut ? null : own)));
    if (isCut) return main.append(readingNote());
    let more = null;
    try {
      if (!lane.adopted) more = await source.call(call);
    } catch (error) {
      main.append(make("p", { class: "dim" }, error.message));
    }
    if (!more || !isCurrent()) return;
    const waits = more.waits.map(([start, stop, , waker, path]) => make("li", {}, duration(stop - start) + " at " + moment(start, 1000) +
      (waker ? ", ended by " + waker : "") + (path.length ? " in " + path.slice(-3).map((id) => shortName(nameOf(id))).join(" › ") : "")));
    const slowest = await slowestOf(call.what);
    if (!isCurrent()) return;
    const callees = more.callees.map(([id, calls, ns]) => make("tr", {}, make("td", {}, duration(ns)), make("td", {}, share(ns, own)), make("td", {}, count(calls)), make("td", { class: "name" }, functionLink(id))));
    clear(main, title, make("div", { class: "columns" },
      make("section", {}, facts_([
        ...head(),
        ["in itself", duration(more.self_ns)],
        facts.has_cpu && ["on the CPU", duration(own - more.off_ns - more.not_known_ns)],
        facts.has_cpu && ["off the CPU", offText(more.off_ns, more.ready_ns)],
        facts.has_cpu && more.not_known_ns > 0 && ["on the CPU or not: not known", duration(more.not_known_ns)],
        ["arguments", more.args && make("span", { class: "mono" }, more.args)],
        ["returned", more.retval && make("span", { class: "mono" }, more.retval)],
        ["marks", (more.flags || []).join(", ")],
        ["module", facts.functions[call.what][1]],
        ["called by", more.path.length > 1 && make("span", { class: "path" }, more.path.slice(0, -1).map((id, i) => [i ? " › " : "", functionLink(id)]).flat())],
      ])),
      waits.length > 0 && make("section", {}, make("h2", {}, "Its waits"), make("ol", {}, waits), more.waits_left_out ? make("p", { class: "dim" }, count(more.waits_left_out) + " more") : null),
      slowestSection(call.what, slowest, call),
      row && histogramTable(row, own),
      callees.length > 0 && make("section", {}, make("h2", {}, "What it called"), make("table", {}, make("tbody", {}, callees)))));
    timeLine.wakes = more.waits;
    timeLine.draw();
    const found = sourceSection(await source.source(call.what));
    if (found && isCurrent()) main.querySelector(".columns").append(found);
  }
}
