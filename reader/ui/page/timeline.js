// The time line: a lane for each thread, whose visible part it asks from the source; and
// the actions of keys and the pointer in it.
class TimeLine extends TimeLineTips {
  constructor() {
    super();
    this.element = make("section", { class: "timeline", "aria-label": "Time line" }, this.canvas);
    this.draw = inFrames(() => this.paint());
    this.asks = 0;
    this.fold();
    this.listen();
    new ResizeObserver(() => { this.draw(); this.ask(); }).observe(this.element);
    onChange((changed) => {
      if (changed.has("theme")) colors.clear();
      if (changed.has("view")) this.ask();
      this.draw();
    });
  }

  // Starts again with the facts of the whole trace in the place of `before`.
  restart(before) {
    const folded = new Map(before.lanes.map((lane) => [lane.key, lane.folded]));
    this.parts.clear();
    this.whole.clear();
    this.arrange();
    this.fold();
    for (const lane of facts.lanes) lane.folded = folded.get(lane.key) || lane.folded;
    this.ask();
    this.draw();
  }

  // Shows all rows of deep lanes, or only the first ones again.
  unfoldAll() {
    this.isDeep = !this.isDeep;
    document.getElementById("depth").setAttribute("aria-pressed", String(this.isDeep));
    for (const lane of facts.lanes) lane.isDeep = false;
    this.setScroll(this.scroll);
  }

  setScroll(scroll) {
    this.scroll = Math.max(0, Math.min(scroll, this.height() - this.canvas.clientHeight + 20));
    this.ask();
    this.draw();
  }

  // ---- Data ----

  knows(index) {
    const part = this.parts.get(index);
    if (!part || part.from > state.view.from || part.until < state.view.until) return false;
    return part.exact ? part.asked <= this.nsPerPixel() * 1.5 : part.tooLong && part.asked <= this.nsPerPixel() * 1.01;
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
    const page = facts;
    const read = async (view, pixel, lanes, exact, into) => {
      const answer = await source.timeline(view, pixel, lanes.slice(0, 300), exact);
      if (facts === page) this.take(answer, pixel, into);
    };
    try {
      const width = state.view.until - state.view.from;
      const view = { from: state.view.from - width / 2, until: state.view.until + width / 2 };
      const first = wanted.filter((index) => !this.whole.has(index));
      if (first.length > 0) {
        const all = { from: facts.from_ns, until: Math.max(facts.until_ns, facts.from_ns + 1) };
        await read(all, (all.until - all.from) / 1600, first, false, this.whole);
      }
      const pixel = this.nsPerPixel();
      await read(view, pixel, wanted, false, this.parts);
      this.draw();
      const rough = wanted.filter((index) => !this.knows(index));
      if (rough.length > 0 && source.canReadAgain && state.view.from >= view.from && state.view.until <= view.until) {
        this.element.setAttribute("aria-busy", "true");
        await read(view, pixel, rough, true, this.parts);
      }
      this.failures = 0;
    } catch (error) {
      if (!error.isEarly) {
        this.failures = (this.failures || 0) + 1;
        say("The server does not answer: " + error.message);
      }
    } finally {
      this.asking = false;
      this.element.removeAttribute("aria-busy");
    }
    ++this.asks;
    this.draw();
    if ((this.failures || 0) < 3) this.ask();
  }
  take(answer, asked, into) {
    for (const [index, rows, density] of answer.lanes) {
      into.set(index, {
        from: answer.from_ns, until: answer.until_ns, pixel: answer.pixel_ns, asked, exact: answer.is_exact,
        tooLong: answer.is_too_long, rows, density,
      });
      const lane = facts.lanes[index];
      for (const row of rows) lane.levels = Math.max(lane.levels, row.level + 1);
    }
    if (this.order.length !== facts.lanes.length) this.arrange();
    this.findCut();
    if (into === this.parts && into.size > 600) into.delete(into.keys().next().value);
  }

  // Completes the chosen call if its ends were not known when it was chosen.
  findCut() {
    const call = state.call;
    if (!call || !facts.is_whole || !(call.flags & CUT)) return;
    const row = this.dataOf(call.lane)?.rows.find((one) => one.level === call.level);
    const i = row ? firstAfter(row.stop, call.start) : 0;
    if (!row || !(row.start[i] <= call.start)) return;
    change({ call: { ...call, start: row.start[i], stop: row.stop[i], what: row.what[i], flags: row.flags[i] } });
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
        func: null, tab: "details" });
    }
  }
  show(call) {
    this.reveal(facts.lanes[call.lane], call.level);
    this.scrollTo(this.offsetOf(call.lane) + (call.level - LEVELS) * ROW);
    const long = Math.max(call.stop - call.start, 10);
    this.look(call.start - long, call.stop + long);
    this.findCut();
  }
  // Scrolls so that this place of the lanes can be seen.
  scrollTo(y) {
    const inside = this.canvas.clientHeight - AXIS - 60;
    if (y < this.scroll || y > this.scroll + inside) this.setScroll(y - inside / 3);
  }
  goLane(index) {
    facts.lanes[index].folded = false;
    this.scrollTo(this.offsetOf(index));
    this.canvas.focus();
    this.draw();
  }
  // Goes to a stretch of a lane's time, and marks it.
  goTo(lane, from, until) {
    this.spot = { lane, from, until };
    this.goLane(lane);
    const long = Math.max(until - from, 10);
    this.look(from - long / 2, until + long / 2);
  }
  // Returns the neighbour of the chosen call: its caller, its first callee, the call
  // before or after.
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
    this.reveal(facts.lanes[call.lane], level);
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
    else if (event.key === "e") this.unfoldAll();
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
      if (!drag) return this.pointAt(this.at(x, y), event.clientX, event.clientY);
      this.pointAt(null);
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
        if (moved && range.until > range.from) change({ range, tab: state.tab === "details" ? "functions" : state.tab });
        return;
      }
      if (moved || event.type === "pointercancel") return;
      const hit = this.at(...where(event));
      if (!hit) return;
      if (where(event)[0] < GUTTER) {
        this.unfold(facts.lanes[hit.lane], where(event)[1], hit.lane_y, hit.height);
        this.setScroll(this.scroll);
      } else this.choose(hit);
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.pointAt(null));
    canvas.addEventListener("dblclick", (event) => {
      const hit = this.at(...where(event));
      if (hit && hit.start !== undefined) this.look(hit.start - (hit.stop - hit.start) * 0.1, hit.stop + (hit.stop - hit.start) * 0.1);
    });
  }
}
