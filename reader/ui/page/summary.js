// The summary: the program, and what its time was spent on.
const PROCESSES = 16;  // rows at first

// The tree of processes; each row goes to the lane of its process.
function processTable(processes, all, limit) {
  const rows = processes.slice(0, limit).map((one) => {
    const name = make("td", { class: "name mono", title: (one.command || one.name).slice(0, 1000) }, (one.command || one.name).slice(0, 200), make("span", { class: "module" }, one.pid));
    name.style.paddingLeft = 10 + 16 * Math.min(one.depth, 20) + "px";
    return make("tr", one.lane === null ? {} : actionOf(() => timeLine.goLane(one.lane)),
      make("td", {}, duration(one.wall_ns)), facts.has_cpu && make("td", {}, duration(one.cpu_ns)), make("td", {}, count(one.threads)),
      make("td", { class: one.exit === "0" ? null : "hot" }, one.exit), name);
  });
  const head = ["time", ...(facts.has_cpu ? ["on the CPU"] : []), "threads", "exit", "command"];
  const table = make("div", {}, make("table", {},
    make("thead", {}, make("tr", {}, head.map((text) => make("th", { scope: "col", class: text === "command" ? "name" : null }, text)))), make("tbody", {}, rows)),
    processes.length > limit ? make("button", { onclick: () => table.replaceWith(processTable(processes, all, Infinity)) }, "show all " + count(processes.length))
      : processes.length < all && make("p", { class: "dim" }, "Of " + count(all) + " processes, those that lasted longest."));
  return table;
}

// Lines of the report, in whose columns they stand.
const said = (lines) => make("pre", { class: "said" }, micro(lines.join("\n")));

class SummaryPane {
  // The facts that are known before the trace has been read.
  early() {
    const lanes = facts.lanes.filter((lane) => lane.bytes > 0).sort((a, b) => b.bytes - a.bytes);
    const rows = lanes.slice(0, 12).map((lane) => make("tr", {}, make("td", {}, bytesText(lane.bytes)), make("td", {}, share(lane.bytes, facts.bytes)), make("td", { class: "name" }, laneTitle(lane))));
    return make("div", { class: "columns" },
      lanes.length > 0 && make("section", {}, make("h2", {}, "Who wrote the " + bytesText(facts.bytes) + " of records"), make("table", {}, make("tbody", {}, rows))),
      make("section", {}, make("h2", {}, "The recording"), this.recording()));
  }
  recording() {
    return make("dl", {}, (facts.facts || []).map((line) => {
      const at = line.indexOf(":");
      return [make("dt", {}, at > 0 ? line.slice(0, at) : ""), make("dd", { class: "mono" }, at > 0 ? line.slice(at + 1).trim() : line)];
    }));
  }
  async show(main, isCurrent) {
    if (!facts.is_whole && !state.range) return clear(main, readingNote(), this.early());
    await readTotals();
    const { processes, process_count } = await source.processes(presentRange());
    if (!isCurrent()) return;
    // The critical path may take longer than the rest.
    const depends = facts.has_wake_ups && make("section", {}, make("p", { class: "dim", role: "status" }, "reading the critical path…"));
    // A server's threads mostly wait for work: that is left out, as in arctrace report.
    const seen = totals.busy || totals;
    const rows = seen.rows.slice().sort((a, b) => b[2] - a[2]).slice(0, 12);
    const bar = (own, off, unknown, most) => {
      const piece = (kind, ns) => {
        const span = make("span", { class: "meter " + kind });
        span.style.width = Math.max(0, 110 * ns / most) + "px";
        return span;
      };
      return make("span", { "aria-hidden": "true" }, piece("", own - off - unknown), piece("off", off), piece("notknown", unknown));
    };
    const most = Math.max(1, ...seen.parts.map((part) => part.self_ns));
    const shown = seen.parts.filter((part) => part.self_ns > 0), others = shown.splice(14);
    const sumOf = (key) => others.reduce((sum, part) => sum + (part[key] || 0), 0);
    if (others.length > 0) {
      shown.push({ name: "others (" + count(others.length) + ")", self_ns: sumOf("self_ns"), off_ns: sumOf("off_ns"), ready_ns: sumOf("ready_ns"), not_known_ns: sumOf("not_known_ns"), calls: sumOf("calls") });
    }
    const parts = shown.map((part) => make("tr", {},
      make("td", {}, duration(part.self_ns)), make("td", {}, share(part.self_ns, seen.ofAll)),
      facts.has_wake_ups && [make("td", {}, duration(part.off_ns - part.ready_ns)), make("td", {}, duration(part.ready_ns))], make("td", { class: "name" }, bar(part.self_ns, facts.has_cpu ? part.off_ns : 0, facts.has_cpu ? part.not_known_ns : 0, most)), make("td", {}, count(part.calls)), make("td", { class: "name" }, part.name)));
    const hot = rows.map((row) => make("tr", actionOf(() => change({ func: row[0], call: null, tab: "details" })),
      make("td", {}, duration(row[2])), make("td", {}, count(row[1])), make("td", {}, duration(row[7])), make("td", {}, duration(row[12])),
      make("td", { class: "name" }, nameOf(row[0]).slice(0, 300), leftOutNote(row[0]), rowMarks(row[0]), make("span", { class: "module" }, moduleOf(row[0])))));
    const head = (...texts) => make("thead", {}, make("tr", {}, texts.map((text, i) => make("th", { scope: "col", class: i === texts.length - 1 ? "name" : null }, text))));
    const gaps = (facts.gaps || []).slice(0, 12).map((gap) => make("li", {}, gap.reason +
      (gap.from_ns !== null ? " for " + duration(gap.to_ns - gap.from_ns) : "") + " until " + moment(gap.to_ns, 1000) +
      (gap.records ? ", " + count(gap.records) + " records" : "") + (gap.tid ? ", thread " + gap.pid + "/" + gap.tid : "")));
    const crashes = state.range ? [] : [facts.crash, facts.other_crashes].filter(Boolean);
    clear(main, facts.left_out && make("p", { class: "dim" }, micro(facts.left_out)),
      make("div", { class: "said" }, totals.recording.map((line) => make("p", {}, micro(line)))),
      ...crashes.map((crash) =>
        make("section", { class: "crash" }, make("h2", { class: "hot" }, crash.head), said(crash.lines))),
      totals.serving && make("section", { class: "serving" }, said([totals.serving.head, ...totals.serving.lines])),
      make("div", { class: "columns" },
        depends,
        make("section", {}, make("h2", {}, "What the time of all threads was spent on"), make("table", {}, head("time", "share", ...(facts.has_wake_ups ? ["blocked", "no CPU"] : []), "", "calls", ""), make("tbody", {}, parts)),
          facts.has_cpu ? make("p", { class: "dim" }, "Blue: on the CPU. Grey: off it" + (facts.has_wake_ups ? ": blocked, or without a CPU because other threads had them." : ".") + (facts.not_known_ns ? " Purple: not known, because records of the kernel are missing." : "")) : make("p", { class: "dim" }, "Time on the CPU and off it are not told apart: arctrace record --kernel does.")),
        make("section", {}, make("h2", {}, "Hottest functions"), make("table", {}, head("self", "calls", "average", "longest", ""), make("tbody", {}, hot)), marksLegend(), leftOutLegend()),
        processes.length > 1 && make("section", {}, make("h2", {}, "Processes"), processTable(processes, process_count, PROCESSES)),
        gaps.length > 0 && make("section", {}, make("h2", { class: "hot" }, "Times without records"), make("ol", {}, gaps), facts.gaps_left_out ? make("p", {}, count(facts.gaps_left_out) + " more") : null),
        make("section", {}, make("h2", {}, "The recording"), this.recording())));
    if (!depends) return;
    const section = dependsSection(await readCritical());
    if (!isCurrent()) return;
    if (section) depends.replaceWith(section);
    else depends.remove();
  }
}
