// The time line: a lane for each thread, drawn on a canvas from what the source has of it.
const GUTTER = 190, AXIS = 24, ROW = 15, STRIP = 6, PAD = 6, LEVELS = 3;

// Gaps during which calls may be missing: not those of other classes of records.
let gapsOfCalls = [];
const isOfCalls = (gap) => !gap.reason.endsWith(" off") || /\b(functions|recording)\b/.test(gap.reason);
const isOf = (gap, lane) => gap.tid === lane.tid && gap.pid === lane.pid;
const gapText = (gap) => "records are missing: " + gap.reason + (gap.records ? ", " + count(gap.records) : "") +
  (gap.from_ns === null ? "" : "\nfor " + duration(gap.to_ns - gap.from_ns));

// The same lines everywhere, so that neighbours fit.
function hatching(context, color) {
  const tile = make("canvas", { width: 8, height: 8 });
  const lines = tile.getContext("2d");
  lines.strokeStyle = color;
  lines.globalAlpha = 0.7;
  lines.lineWidth = 1.2;
  for (const at of [-8, 0, 8]) { lines.moveTo(at - 1, 9); lines.lineTo(at + 9, -1); }
  lines.stroke();
  return context.createPattern(tile, "repeat");
}

class TimeLine {
  constructor() {
    this.canvas = make("canvas", {
      tabindex: 0, role: "application",
      "aria-label": "Time line. w and s zoom, a and d move, arrows choose calls, Enter zooms to the chosen call.",
    });
    this.element = make("section", { class: "timeline", "aria-label": "Time line" }, this.canvas);
    this.scroll = 0;
    this.open = new Set();     // lanes that were unfolded or folded by hand
    this.parts = new Map();    // lane -> what is known of the present view
    this.whole = new Map();    // lane -> what is known of all the time
    this.frames = [];          // times to draw, of which the tests ask
    this.draw = inFrames(() => this.paint());
    this.asks = 0;
    this.order = facts.lanes.map((lane, index) => index)
      .sort((a, b) => facts.lanes[b].busy_ns - facts.lanes[a].busy_ns || a - b);
    gapsOfCalls = (facts.gaps || []).filter(isOfCalls);
    const busiest = Math.max(1, ...facts.lanes.map((lane) => lane.busy_ns));
    for (const lane of facts.lanes) lane.folded = this.order.length > 6 && (lane.busy_ns < busiest / 1000 || lane.levels <= LEVELS);
    this.listen();
    new ResizeObserver(() => { this.draw(); this.ask(); }).observe(this.element);
    onChange((changed) => {
      if (changed.has("theme")) colors.clear();
      if (changed.has("view")) this.ask();
      this.draw();
    });
  }

  width() { return Math.max(50, this.canvas.clientWidth - GUTTER); }
  nsPerPixel() { return (state.view.until - state.view.from) / this.width(); }
  xOf(ns) { return GUTTER + (ns - state.view.from) / this.nsPerPixel(); }
  nsOf(x) { return state.view.from + (x - GUTTER) * this.nsPerPixel(); }
  laneHeight(lane) {
    const rows = lane.folded ? (lane.levels > LEVELS ? 1 : 0) : lane.levels - LEVELS;
    return PAD + (facts.has_cpu ? STRIP + 2 : 0) + Math.max(rows, 1) * ROW + PAD;
  }
  height() { return this.order.reduce((sum, index) => sum + this.laneHeight(facts.lanes[index]), AXIS); }
  // The lanes on the screen, with where they begin.
  visible() {
    const lanes = [];
    let y = AXIS - this.scroll;
    for (const index of this.order) {
      const height = this.laneHeight(facts.lanes[index]);
      if (y + height > AXIS && y < this.canvas.clientHeight) lanes.push({ index, y, height });
      y += height;
    }
    return lanes;
  }
  setScroll(scroll) {
    this.scroll = Math.max(0, Math.min(scroll, this.height() - this.canvas.clientHeight + 20));
    this.ask();
    this.draw();
  }

  // ---- Data ----

  knows(index) {
    const part = this.parts.get(index);
    return Boolean(part) && part.from <= state.view.from && part.until >= state.view.until && part.asked <= this.nsPerPixel() * 1.5 && part.exact;
  }
  ask() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetch(), 40);
  }
  async fetch() {
    if (this.asking) return;
    const wanted = this.visible().map((lane) => lane.index).filter((index) => !this.knows(index));
    if (wanted.length === 0) return;
    this.asking = true;
    try {
      const width = state.view.until - state.view.from;
      const view = { from: state.view.from - width / 2, until: state.view.until + width / 2 };
      const first = wanted.filter((index) => !this.whole.has(index)).slice(0, 300);
      if (first.length > 0) {
        const coarse = (facts.until_ns - facts.from_ns) / 1600;
        this.take(await source.timeline({ from: facts.from_ns, until: Math.max(facts.until_ns, facts.from_ns + 1) }, coarse, first, false), coarse, this.whole);
      }
      const pixel = this.nsPerPixel();
      this.take(await source.timeline(view, pixel, wanted.slice(0, 300), false), pixel, this.parts);
      this.draw();
      const rough = wanted.filter((index) => !this.knows(index));
      if (rough.length > 0 && source.canReadAgain && state.view.from >= view.from && state.view.until <= view.until) {
        this.element.setAttribute("aria-busy", "true");
        this.take(await source.timeline(view, pixel, rough.slice(0, 300), true), pixel, this.parts);
      }
      this.failures = 0;
    } catch (error) {
      this.failures = (this.failures || 0) + 1;
      say("The server does not answer: " + error.message);
    } finally {
      this.asking = false;
      this.element.removeAttribute("aria-busy");
    }
    ++this.asks;
    this.draw();
    if ((this.failures || 0) < 3) this.ask();
  }
  take(answer, asked, into) {
    for (const [index, rows] of answer.lanes) {
      into.set(index, {
        from: answer.from_ns, until: answer.until_ns, pixel: answer.pixel_ns, asked, exact: answer.is_exact,
        rows,
      });
    }
    if (into === this.parts && into.size > 600) into.delete(into.keys().next().value);
  }
  dataOf(index) {
    const part = this.parts.get(index);
    const fits = part && part.from <= state.view.from && part.until >= state.view.until && part.asked <= this.nsPerPixel() * 4;
    return fits ? part : this.whole.get(index) || part;
  }

  // ---- Drawing ----

  paint() {
    if (!this.canvas.isConnected || this.canvas.clientWidth === 0) return;
    const began = performance.now();
    const context = contextOf(this.canvas);
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.ink = { bg: cssColor("bg"), text: cssColor("text"), dim: cssColor("dim"), line: cssColor("line"), panel: cssColor("panel"),
      accent: cssColor("accent"), soft: cssColor("accent-soft"), gap: cssColor("gap"),
      states: [cssColor("running"), cssColor("ready"), cssColor("blocked")] };
    context.fillStyle = this.ink.bg;
    context.fillRect(0, 0, width, height);
    context.font = fonts;
    context.textBaseline = "middle";
    this.paintRange(context, height);
    for (const { index, y, height: laneHeight } of this.visible()) this.paintLane(context, index, y, laneHeight);
    this.paintGaps(context, height);
    this.paintWakes(context);
    this.paintAxis(context, width, height);
    this.paintScroll(context, width, height);
    if (!this.isShown && this.whole.size > 0) {
      this.isShown = true;
      performance.mark("time line");
    }
    this.frames.push(performance.now() - began);
    if (this.frames.length > 500) this.frames.shift();
  }
  paintRange(context, height) {
    const range = this.dragged || state.range;
    if (!range) return;
    const left = Math.max(GUTTER, this.xOf(range.from)), right = this.xOf(range.until);
    if (right <= left) return;
    context.fillStyle = this.ink.soft;
    context.fillRect(left, AXIS, right - left, height);
  }
  paintAxis(context, width, height) {
    context.fillStyle = this.ink.panel;
    context.fillRect(0, 0, width, AXIS);
    context.fillStyle = this.ink.line;
    context.fillRect(0, AXIS - 1, width, 1);
    context.fillRect(GUTTER - 1, 0, 1, height);
    const rough = this.nsPerPixel() * 110;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : 2);
    context.fillStyle = this.ink.dim;
    for (let at = Math.ceil(state.view.from / step) * step; at < state.view.until; at += step) {
      const x = Math.round(this.xOf(at));
      context.fillStyle = this.ink.line;
      context.fillRect(x, AXIS - 6, 1, 6);
      context.fillStyle = this.ink.dim;
      context.fillText(moment(at, step), x + 4, AXIS / 2);
    }
    context.fillStyle = this.ink.panel;
    context.fillRect(0, 0, GUTTER - 1, AXIS - 1);
    context.fillStyle = this.ink.text;
    context.fillText("shown: " + duration(state.view.until - state.view.from), 10, AXIS / 2);
  }
  // Where one is among the lanes, if they are more than fit.
  paintScroll(context, width, height) {
    const room = height - AXIS, all = this.height() - AXIS;
    if (all <= room) return;
    context.fillStyle = this.ink.dim;
    context.globalAlpha = 0.6;
    context.fillRect(width - 6, AXIS + 2 + (room - 4) * this.scroll / (all + 20), 4, Math.max(12, (room - 4) * room / (all + 20)));
    context.globalAlpha = 1;
  }
  paintLane(context, index, y, height) {
    const lane = facts.lanes[index];
    const data = this.dataOf(index);
    context.save();
    context.beginPath();
    context.rect(GUTTER, AXIS, this.width(), this.canvas.clientHeight - AXIS);
    context.clip();
    const top = y + PAD + (facts.has_cpu ? STRIP + 2 : 0);
    if (data) {
      for (const row of data.rows) {
        if (row.level < LEVELS) this.paintState(context, row, y + PAD, data.pixel);
        else if (!lane.folded || row.level === LEVELS) this.paintRow(context, index, row, top + (row.level - LEVELS) * ROW, data.pixel);
      }
    }
    context.restore();
    const middle = y + Math.min(height, 36) / 2;
    context.save();
    context.beginPath();
    context.rect(0, AXIS, GUTTER - 1, this.canvas.clientHeight);
    context.clip();
    context.fillStyle = this.ink.bg;
    context.fillRect(0, y, GUTTER - 1, height);
    context.fillStyle = this.ink.dim;
    if (lane.levels > LEVELS + 1) context.fillText(lane.folded ? "▸" : "▾", 8, middle);
    context.fillStyle = lane.calls ? this.ink.text : this.ink.dim;
    const ids = (lane.coroutine ? "co " + lane.coroutine : lane.adopted ? "before" : lane.pid + "/" + lane.tid);
    context.fillText(fitted(lane.name, GUTTER - 40 - ids.length * 6), 22, middle);
    context.fillStyle = this.ink.dim;
    context.textAlign = "right";
    context.fillText(ids, GUTTER - 9, middle);
    context.textAlign = "left";
    context.restore();
    context.fillStyle = this.ink.line;
    context.fillRect(0, y + height - 1, this.canvas.clientWidth, 1);
  }
  paintState(context, row, y, pixel) {
    context.fillStyle = this.ink.states[row.level];
    const last = firstAfter(row.start, state.view.until);
    for (let i = firstAfter(row.stop, state.view.from); i < last; ++i) {
      const x = Math.max(GUTTER, this.xOf(row.start[i]));
      context.fillRect(x, y, Math.max(0.6, this.xOf(row.stop[i]) - x), STRIP);
    }
    const wide = pixel / this.nsPerPixel();
    for (let i = firstAfter(row.at, state.view.from - pixel); i < row.at.length && row.at[i] < state.view.until; ++i) {
      context.globalAlpha = Math.min(1, 0.15 + row.busy[i] / pixel);
      context.fillRect(this.xOf(row.at[i]), y, Math.max(1, wide), STRIP);
    }
    context.globalAlpha = 1;
  }
  paintRow(context, index, row, y, pixel) {
    if (y + ROW < AXIS || y > this.canvas.clientHeight) return;
    const scale = 1 / this.nsPerPixel();
    const wide = Math.max(1, pixel * scale);
    for (let i = firstAfter(row.at, state.view.from - pixel); i < row.at.length && row.at[i] < state.view.until; ++i) {
      const full = Math.min(1, row.busy[i] / pixel);
      context.fillStyle = colorOf(row.most[i]);
      const tall = Math.max(2, (ROW - 1) * Math.sqrt(full));
      context.fillRect(this.xOf(row.at[i]), y + ROW - 1 - tall, wide + 0.3, tall);
    }
    const last = firstAfter(row.start, state.view.until);
    let painted = -1;
    for (let i = firstAfter(row.stop, state.view.from); i < last; ++i) {
      const left = Math.max(GUTTER, GUTTER + (row.start[i] - state.view.from) * scale);
      const right = Math.min(GUTTER + this.width(), GUTTER + (row.stop[i] - state.view.from) * scale);
      if (right - left < 0.7 && left - painted < 0.7) continue;
      painted = left;
      const isOther = state.func !== null && row.what[i] !== state.func;
      context.globalAlpha = isOther ? 0.4 : 1;
      context.fillStyle = colorOf(row.what[i]);
      const shown = Math.max(0.8, right - left - (right - left > 3 ? 0.6 : 0));
      context.fillRect(left, y, shown, ROW - 1);
      if (right - left > 24) {
        context.globalAlpha = 1;
        context.fillStyle = isOther ? this.ink.dim : this.ink.text;
        context.fillText(fitted(shortName(nameOf(row.what[i])), right - left - 6), left + 3, y + ROW / 2);
      }
      context.globalAlpha = 1;
      const call = state.call;
      if (call && call.lane === index && call.level === row.level && call.start === row.start[i] && call.stop === row.stop[i]) {
        context.strokeStyle = this.ink.text;
        context.lineWidth = 2;
        context.strokeRect(left, y, Math.max(2, right - left), ROW - 1);
      }
    }
  }
  // Gaps of calls are hatched over the lanes that they are of, those of a CPU over the strips.
  paintGaps(context, height) {
    if (gapsOfCalls.length === 0) return;
    context.fillStyle = hatching(context, this.ink.gap);
    const lanes = this.visible();
    const painted = new Map();
    for (const gap of gapsOfCalls) {
      const from = this.startOf(gap);
      if (gap.to_ns < state.view.from || from > state.view.until) continue;
      const left = Math.max(GUTTER, this.xOf(from));
      const right = Math.min(GUTTER + this.width(), Math.max(this.xOf(gap.to_ns), this.xOf(from) + 2));
      if (right <= left) continue;
      const paint = (key, top, tall) => {
        // Of many within one pixel one is enough.
        const at = Math.max(left, painted.get(key) ?? 0);
        if (right - at < 0.5) return;
        painted.set(key, right);
        const begin = Math.max(AXIS, top);
        context.fillRect(at, begin, right - at, top + tall - begin);
      };
      if (gap.cpu !== null) for (const { index, y } of lanes) paint("cpu" + index, y + PAD, STRIP);
      else if (!gap.tid) paint("all", AXIS, height - AXIS);
      else for (const { index, y, height: tall } of lanes) if (isOf(gap, facts.lanes[index])) paint("lane" + index, y, tall - 1);
    }
  }
  startOf(gap) { return gap.from_ns === null ? gap.to_ns - 2 * this.nsPerPixel() : gap.from_ns; }
  gapAt(lane, ns) {
    return gapsOfCalls.find((gap) => gap.cpu === null && ns >= this.startOf(gap) && ns <= gap.to_ns && (!gap.tid || isOf(gap, lane)));
  }
  // Who ended the waits of the chosen call.
  paintWakes(context) {
    const call = state.call;
    if (!call || !this.wakes) return;
    const target = this.visible().find(({ index }) => index === call.lane);
    if (!target) return;
    context.strokeStyle = context.fillStyle = this.ink.accent;
    context.lineWidth = 1.2;
    for (const [, stop, , waker] of this.wakes.slice(0, 60)) {
      const from = this.visible().find(({ index }) => waker.endsWith(" " + facts.lanes[index].pid + "/" + facts.lanes[index].tid));
      const x = this.xOf(stop);
      if (!from || x < GUTTER) continue;
      const start = from.y + PAD + 3, end = target.y + PAD + 3;
      context.beginPath();
      context.moveTo(x, start);
      context.lineTo(x, end);
      context.stroke();
      const up = end < start ? 5 : -5;
      context.beginPath();
      context.moveTo(x, end); context.lineTo(x - 3.5, end + up); context.lineTo(x + 3.5, end + up);
      context.fill();
    }
  }

  // ---- What is where ----

  at(x, y) {
    const lane = this.visible().find((one) => y >= one.y && y < one.y + one.height);
    if (!lane || y < AXIS) return null;
    const facts_ = facts.lanes[lane.index];
    const found = { lane: lane.index, lane_y: lane.y };
    if (x < GUTTER) return found;
    found.gap = this.gapAt(facts_, this.nsOf(x));
    const data = this.dataOf(lane.index);
    if (!data) return found;
    const ns = this.nsOf(x), slack = this.nsPerPixel();
    const top = lane.y + PAD + (facts.has_cpu ? STRIP + 2 : 0);
    if (facts.has_cpu && y < top) {
      for (const row of data.rows.filter((one) => one.level < LEVELS)) {
        const i = firstAfter(row.stop, ns);
        if (i < row.start.length && row.start[i] <= ns) return { ...found, state: row.level, start: row.start[i], stop: row.stop[i] };
      }
      return found;
    }
    const level = LEVELS + Math.floor((y - top) / ROW);
    const row = data.rows.find((one) => one.level === level && (!facts_.folded || level === LEVELS));
    if (!row) return found;
    const i = firstAfter(row.stop, ns - slack);
    if (i < row.start.length && row.start[i] <= ns + slack) {
      return { ...found, level, start: row.start[i], stop: row.stop[i], what: row.what[i], flags: row.flags[i] };
    }
    const k = firstAfter(row.at, ns) - 1;
    if (k >= 0 && ns < row.at[k] + Math.max(data.pixel, slack)) {
      return { ...found, level, crowd: row.count[k], busy: row.busy[k], start: row.at[k], stop: row.at[k] + data.pixel, most: row.most[k] };
    }
    return found;
  }
  tipOf(hit) {
    if (!hit) return "";
    const gap = hit.gap ? gapText(hit.gap) : "";
    if (hit.start === undefined) return gap || laneTitle(facts.lanes[hit.lane]);
    return this.tipOfStretch(hit) + (gap ? "\n" + gap : "");
  }
  tipOfStretch(hit) {
    if (hit.state !== undefined) return ["on the CPU", "ready to run, waits for a CPU", "blocked"][hit.state] + " for " + duration(hit.stop - hit.start);
    if (hit.crowd) return count(hit.crowd) + " calls in " + duration(hit.stop - hit.start) + ", " + duration(hit.busy) + " of it\nthe longest: " + nameOf(hit.most) + "\nzoom in to see each";
    return nameOf(hit.what) + "\n" + duration(hit.stop - hit.start) + (moduleOf(hit.what) ? "  " + moduleOf(hit.what) : "");
  }

  // ---- Moving ----

  look(from, until) {
    const whole = facts.until_ns - facts.from_ns;
    let width = Math.min(Math.max(until - from, 20), whole * 1.2 + 20);
    const middle = (from + until) / 2;
    from = Math.max(facts.from_ns - width * 0.5, Math.min(middle - width / 2, facts.until_ns - width * 0.5));
    change({ view: { from, until: from + width } });
  }
  zoom(factor, x = GUTTER + this.width() / 2) {
    const at = this.nsOf(Math.max(GUTTER, x));
    this.look(at - (at - state.view.from) * factor, at + (state.view.until - at) * factor);
  }
  pan(pixels) { this.look(state.view.from + pixels * this.nsPerPixel(), state.view.until + pixels * this.nsPerPixel()); }
  choose(hit) {
    if (hit && hit.what !== undefined) {
      change({ call: { lane: hit.lane, level: hit.level, start: hit.start, stop: hit.stop, what: hit.what, flags: hit.flags || 0 },
        func: null, tab: "chosen" });
    }
  }
  show(call) {
    const lane = facts.lanes[call.lane];
    if (call.level > LEVELS) lane.folded = false;
    let y = 0;
    for (const index of this.order) {
      if (index === call.lane) break;
      y += this.laneHeight(facts.lanes[index]);
    }
    y += (call.level - LEVELS) * ROW;
    const inside = this.canvas.clientHeight - AXIS - 60;
    if (y < this.scroll || y > this.scroll + inside) this.setScroll(y - inside / 3);
    const long = Math.max(call.stop - call.start, 10);
    this.look(call.start - long, call.stop + long);
  }
  // The neighbour of the chosen call: its caller, its first callee, the call before or after.
  neighbour(step) {
    const call = state.call;
    const data = call && this.dataOf(call.lane);
    if (!data) {
      for (const { index } of this.visible()) {
        const row = this.dataOf(index)?.rows.find((one) => one.level === LEVELS);
        const i = row ? firstAfter(row.stop, state.view.from) : 0;
        if (row && i < row.start.length) return this.choose({ lane: index, level: LEVELS, start: row.start[i], stop: row.stop[i], what: row.what[i] });
      }
      return;
    }
    const level = call.level + (step === "up" ? -1 : step === "down" ? 1 : 0);
    const row = data.rows.find((one) => one.level === level && level >= LEVELS);
    if (!row) return;
    let i = firstAfter(row.start, call.start) - 1;
    if (step === "right") ++i;
    if (step === "left") --i;
    if (step === "down") i = firstAfter(row.stop, call.start);
    if (i < 0 || i >= row.start.length || (step === "down" && row.start[i] > call.stop)) return;
    this.choose({ lane: call.lane, level, start: row.start[i], stop: row.stop[i], what: row.what[i], flags: row.flags[i] });
    if (row.start[i] > state.view.until || row.stop[i] < state.view.from) {
      const width = state.view.until - state.view.from;
      this.look(row.start[i] - width / 2, row.start[i] + width / 2);
    }
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const arrow = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" }[event.key];
    if (arrow && event.shiftKey) this.setScroll(this.scroll + (arrow === "up" ? -40 : arrow === "down" ? 40 : 0));
    else if (arrow) this.neighbour(arrow);
    else if (event.key === "w" || event.key === "+") this.zoom(0.7, this.pointer);
    else if (event.key === "s" || event.key === "-") this.zoom(1 / 0.7, this.pointer);
    else if (event.key === "a") this.pan(-this.width() / 6);
    else if (event.key === "d") this.pan(this.width() / 6);
    else if (event.key === "0" || event.key === "Home") this.look(facts.from_ns, facts.until_ns);
    else if (event.key === "Enter" && state.call) this.show(state.call);
    else if (event.key === "f" && state.call) this.show(state.call);
    else return false;
    event.preventDefault();
    return true;
  }
  listen() {
    const canvas = this.canvas;
    const where = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const touches = new Map();
    let drag = null;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x] = where(event);
      const turn = event.deltaMode === 1 ? 30 : 1;
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY * turn * 0.004), x);
      else if (event.shiftKey) this.pan((event.deltaY || event.deltaX) * turn);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX * turn);
      else this.setScroll(this.scroll + event.deltaY * turn);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = where(event);
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      touches.set(event.pointerId, [x, y]);
      drag = { x, y, scroll: this.scroll, view: state.view, moved: false, selects: event.shiftKey && source.canReadAgain };
      if (touches.size === 2) {
        const [a, b] = [...touches.values()];
        drag.pinch = Math.abs(a[0] - b[0]) || 1;
        drag.middle = this.nsOf((a[0] + b[0]) / 2);
      }
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = where(event);
      this.pointer = x;
      if (!drag) return showTip(this.tipOf(this.at(x, y)), event.clientX, event.clientY);
      showTip("");
      touches.set(event.pointerId, [x, y]);
      drag.moved = drag.moved || Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4;
      if (touches.size === 2) {
        const [a, b] = [...touches.values()];
        const width = (drag.view.until - drag.view.from) * drag.pinch / (Math.abs(a[0] - b[0]) || 1);
        const part = ((a[0] + b[0]) / 2 - GUTTER) / this.width();
        this.look(drag.middle - width * part, drag.middle + width * (1 - part));
      } else if (drag.selects) {
        const ends = [this.nsOf(Math.max(GUTTER, drag.x)), this.nsOf(Math.max(GUTTER, x))].sort((a, b) => a - b);
        this.dragged = { from: Math.floor(ends[0]), until: Math.ceil(ends[1]) };
        this.draw();
      } else if (drag.moved) {
        const moved = (drag.x - x) * (drag.view.until - drag.view.from) / this.width();
        this.look(drag.view.from + moved, drag.view.until + moved);
        this.setScroll(drag.scroll + drag.y - y);
      }
    });
    const end = (event) => {
      touches.delete(event.pointerId);
      if (!drag) return;
      const { moved } = drag;
      const selects = drag.selects && this.dragged;
      drag = null;
      if (selects) {
        const range = this.dragged;
        this.dragged = null;
        if (moved && range.until > range.from) change({ range, tab: ["flame", "functions", "locks", "critical"].includes(state.tab) ? state.tab : "functions" });
        return;
      }
      if (moved || event.type === "pointercancel") return;
      const hit = this.at(...where(event));
      if (!hit) return;
      if (where(event)[0] < GUTTER) {
        facts.lanes[hit.lane].folded = !facts.lanes[hit.lane].folded;
        this.setScroll(this.scroll);
      } else this.choose(hit);
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => showTip(""));
    canvas.addEventListener("dblclick", (event) => {
      const hit = this.at(...where(event));
      if (hit && hit.start !== undefined) this.look(hit.start - (hit.stop - hit.start) * 0.1, hit.stop + (hit.stop - hit.start) * 0.1);
    });
  }
}
