// The picture of the time line: the drawing of what is known of its lanes.
const PALE = 0.55;      // how much paler calls are while their thread is blocked
const CUT = 128 | 256;  // flags of a call that exceeds the time that was read

// The hatching has the same origin everywhere, so that neighbouring areas fit.
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

class TimeLinePicture extends TimeLineLanes {
  constructor() {
    super();
    this.canvas = make("canvas", {
      tabindex: 0, role: "application",
      "aria-label": "Time line. w and s zoom, a and d move, arrows choose calls, Enter zooms to the chosen call.",
    });
    this.parts = new Map();    // lane -> its data in the present view
    this.whole = new Map();    // lane -> its data of all the time
    this.frames = [];          // times to draw, which the tests read
    this.spot = null;          // {lane, from, until}: a place that was gone to
  }

  width() { return Math.max(50, this.canvas.clientWidth - GUTTER); }
  nsPerPixel() { return (state.view.until - state.view.from) / this.width(); }
  xOf(ns) { return GUTTER + (ns - state.view.from) / this.nsPerPixel(); }
  nsOf(x) { return state.view.from + (x - GUTTER) * this.nsPerPixel(); }
  dataOf(index) {
    const part = this.parts.get(index);
    const fits = part && part.from <= state.view.from && part.until >= state.view.until && part.asked <= this.nsPerPixel() * 4;
    return fits ? part : this.whole.get(index) || part;
  }

  paint() {
    if (!this.canvas.isConnected || this.canvas.clientWidth === 0) return;
    const began = performance.now();
    const context = contextOf(this.canvas);
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.ink = { bg: cssColor("bg"), text: cssColor("text"), dim: cssColor("dim"), line: cssColor("line"), panel: cssColor("panel"),
      accent: cssColor("accent"), soft: cssColor("accent-soft"), gap: cssColor("gap"), path: cssColor("path"),
      states: [cssColor("running"), cssColor("ready"), cssColor("blocked"), cssColor("notknown")] };
    context.fillStyle = this.ink.bg;
    context.fillRect(0, 0, width, height);
    context.font = fonts;
    context.textBaseline = "middle";
    this.paintRange(context, height);
    for (const { index, y, height: laneHeight } of this.visible()) this.paintLane(context, index, y, laneHeight);
    this.paintGaps(context, height);
    paintPath(this, context);
    this.paintWakes(context);
    this.paintSpot(context);
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
  // Paints a scroll bar, if not all lanes fit.
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
    const top = this.topOf(y), rows = this.shownRows(lane);
    this.labels = [];
    this.paintParts(context, lane, top);
    if (data) {
      for (const row of data.rows) {
        if (row.level >= LEVELS && row.level < LEVELS + rows) this.paintRow(context, index, row, top + (row.level - LEVELS) * ROW, data.pixel);
      }
      for (const row of data.rows) {
        if (row.level === BLOCKED) this.paintWaiting(context, row, top, rows * ROW, data.pixel);
        if (row.level < LEVELS) this.paintState(context, row, y + PAD, data.pixel);
      }
    }
    for (const [text, x, at, ink] of this.labels) {
      context.fillStyle = ink;
      context.fillText(text, x, at);
    }
    if (data && data.density) this.paintDensity(context, data.density, top);
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
    const deeper = this.deeperRows(lane);
    if (deeper > 0) context.fillText("▾ " + deeper + " deeper", 22, y + height - PAD - ROW / 2);
    context.fillStyle = lane.calls || lane.bytes ? this.ink.text : this.ink.dim;
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
  // Paints how densely calls were recorded that have not been read.
  paintDensity(context, density, y) {
    const { from, until } = state.view, scale = 1 / this.nsPerPixel();
    context.fillStyle = this.ink.dim;
    context.globalAlpha = 0.45;
    for (let i = firstAfter(density.stop, from - 1); i < density.start.length && density.start[i] < until; ++i) {
      const left = GUTTER + (density.start[i] - from) * scale;
      const wide = Math.max(1, (density.stop[i] - density.start[i]) * scale);
      const rate = density.bytes[i] / Math.max(1, density.stop[i] - density.start[i]);
      const tall = Math.max(2, (ROW - 1) * Math.sqrt(Math.min(1, rate / density.most)));
      context.fillRect(left, y + ROW - 1 - tall, wide, tall);
    }
    context.globalAlpha = 1;
  }
  // Paints the parts of a process' lifetime, behind the calls in them.
  paintParts(context, lane, y) {
    for (const [what, start, stop] of lane.parts || []) {
      const left = Math.max(GUTTER, this.xOf(start)), right = Math.min(GUTTER + this.width(), this.xOf(stop));
      if (right - left < 0.3) continue;
      context.fillStyle = this.ink.line;
      context.fillRect(left, y, Math.max(1, right - left - 0.6), ROW - 1);
      if (right - left <= 24) continue;
      context.fillStyle = this.ink.dim;
      context.fillText(fitted(nameOf(what), right - left - 6), left + 3, y + ROW / 2);
    }
  }
  // Makes calls paler where their thread was blocked.
  paintWaiting(context, row, y, height, pixel) {
    const { from, until } = state.view, scale = 1 / this.nsPerPixel();
    context.fillStyle = this.ink.bg;
    context.globalAlpha = PALE;
    const last = firstAfter(row.start, until);
    for (let i = firstAfter(row.stop, from); i < last; ++i) {
      const x = Math.max(GUTTER, GUTTER + (row.start[i] - from) * scale);
      context.fillRect(x, y, GUTTER + (row.stop[i] - from) * scale - x, height);
    }
    for (let i = firstAfter(row.at, from - pixel); i < row.at.length && row.at[i] < until; ++i) {
      context.globalAlpha = PALE * Math.min(1, row.busy[i] / pixel);
      context.fillRect(GUTTER + (row.at[i] - from) * scale, y, pixel * scale, height);
    }
    context.globalAlpha = 1;
  }
  paintState(context, row, y, pixel) {
    const { from, until } = state.view, scale = 1 / this.nsPerPixel();
    const xOf = (ns) => GUTTER + (ns - from) * scale;
    context.fillStyle = this.ink.states[row.level];
    const last = firstAfter(row.start, until);
    for (let i = firstAfter(row.stop, from); i < last; ++i) {
      const x = Math.max(GUTTER, xOf(row.start[i]));
      context.fillRect(x, y, Math.max(0.6, xOf(row.stop[i]) - x), STRIP);
    }
    const wide = pixel * scale;
    for (let i = firstAfter(row.at, from - pixel); i < row.at.length && row.at[i] < until; ++i) {
      context.globalAlpha = Math.min(1, 0.15 + row.busy[i] / pixel);
      context.fillRect(xOf(row.at[i]), y, Math.max(1, wide), STRIP);
    }
    context.globalAlpha = 1;
  }
  paintRow(context, index, row, y, pixel) {
    if (y + ROW < AXIS || y > this.canvas.clientHeight) return;
    // Reading an element's size is expensive: it is read once, not for each of thousands
    // of calls.
    const { from, until } = state.view, scale = 1 / this.nsPerPixel(), end = GUTTER + this.width();
    const xOf = (ns) => GUTTER + (ns - from) * scale;
    const wide = Math.max(1, pixel * scale);
    for (let i = firstAfter(row.at, from - pixel); i < row.at.length && row.at[i] < until; ++i) {
      const full = Math.min(1, row.busy[i] / pixel);
      context.fillStyle = colorOf(row.most[i]);
      const tall = Math.max(2, (ROW - 1) * Math.sqrt(full));
      context.fillRect(xOf(row.at[i]), y + ROW - 1 - tall, wide + 0.3, tall);
    }
    const last = firstAfter(row.start, until);
    let painted = -1;
    for (let i = firstAfter(row.stop, from); i < last; ++i) {
      const left = Math.max(GUTTER, xOf(row.start[i]));
      const right = Math.min(end, xOf(row.stop[i]));
      if (right - left < 0.7 && left - painted < 0.7) continue;
      painted = left;
      const isOther = state.func !== null && row.what[i] !== state.func;
      context.globalAlpha = isOther ? 0.4 : 1;
      context.fillStyle = colorOf(row.what[i]);
      const shown = Math.max(0.8, right - left - (right - left > 3 ? 0.6 : 0));
      context.fillRect(left, y, shown, ROW - 1);
      if (right - left > 24) this.labels.push([fitted(shortName(nameOf(row.what[i])), right - left - 6), left + 3, y + ROW / 2, isOther ? this.ink.dim : this.ink.text]);
      context.globalAlpha = 1;
      const call = state.call;
      if (call && call.lane === index && call.level === row.level && call.start === row.start[i] && call.stop === row.stop[i]) {
        context.strokeStyle = this.ink.text;
        context.lineWidth = 2;
        context.strokeRect(left, y, Math.max(2, right - left), ROW - 1);
      }
    }
  }
  // Gaps of calls are hatched over their lanes, those of a CPU over the strips.
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
        // One of many gaps within a pixel is enough.
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
  // Paints a frame around the place that was gone to.
  paintSpot(context) {
    const lane = this.spot && this.visible().find(({ index }) => index === this.spot.lane);
    if (!lane) return;
    const left = Math.max(GUTTER, this.xOf(this.spot.from)), right = Math.min(GUTTER + this.width(), this.xOf(this.spot.until));
    if (right < left) return;
    context.strokeStyle = this.ink.path;
    context.lineWidth = 1.5;
    context.strokeRect(left, Math.max(AXIS, lane.y + 2), Math.max(3, right - left), lane.height - 5);
  }
  startOf(gap) { return gap.from_ns === null ? gap.to_ns - 2 * this.nsPerPixel() : gap.from_ns; }
  gapAt(lane, ns) {
    return gapsOfCalls.find((gap) => gap.cpu === null && ns >= this.startOf(gap) && ns <= gap.to_ns && (!gap.tid || isOf(gap, lane)));
  }
  // Paints which threads ended the waits of the chosen call.
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
}
