// What is at a place of the time line, and the tip that tells it.
class TimeLineTips extends TimeLinePicture {
  constructor() {
    super();
    this.argsOf = new Map();  // texts of calls that were pointed at, by callText()
    this.isSlow = false;      // reading arguments takes long
  }

  at(x, y) {
    const lane = this.visible().find((one) => y >= one.y && y < one.y + one.height);
    if (!lane || y < AXIS) return null;
    const facts_ = facts.lanes[lane.index];
    const found = { lane: lane.index, lane_y: lane.y, height: lane.height };
    if (x < GUTTER) return found;
    found.gap = this.gapAt(facts_, this.nsOf(x));
    const data = this.dataOf(lane.index);
    if (!data) return found;
    const ns = this.nsOf(x), slack = this.nsPerPixel();
    const top = this.topOf(lane.y);
    if (facts.has_cpu && y < top) {
      for (const row of data.rows.filter((one) => one.level < LEVELS)) {
        const i = firstAfter(row.stop, ns);
        if (i < row.start.length && row.start[i] <= ns) return { ...found, state: row.level, start: row.start[i], stop: row.stop[i] };
      }
      return found;
    }
    if (data.density) {
      const { density } = data;
      const i = firstAfter(density.stop, ns - slack);
      if (i < density.start.length && density.start[i] <= ns + slack) found.written = { bytes: density.bytes[i], ns: density.stop[i] - density.start[i] };
      return found;
    }
    const level = LEVELS + Math.floor((y - top) / ROW);
    if (level >= LEVELS + Math.max(1, this.shownRows(facts_))) return found;
    if (level === LEVELS) found.part = (facts_.parts || []).find(([, start, stop]) => start <= ns && ns < stop);
    const row = data.rows.find((one) => one.level === level);
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
  // Shows the tip of a place; null: none. The arguments of a call follow after a while.
  pointAt(hit, x, y) {
    clearTimeout(this.argsTimer);
    showTip(this.tipOf(hit), x, y);
    const key = this.pointed = this.keyOf(hit);
    if (!key || this.argsOf.has(key) || this.isSlow || !source.canReadAgain) return;
    this.argsTimer = setTimeout(async () => {
      await this.readArgs(hit, key);
      if (!tip.hidden && this.pointed === key) showTip(this.tipOf(hit), x, y);
    }, 150);
  }
  keyOf(hit) { return hit && hit.what !== undefined && !(hit.flags & CUT) && !facts.lanes[hit.lane].adopted ? callText(hit) : null; }
  async readArgs(hit, key) {
    const began = performance.now();
    let text = "";
    try {
      text = (await source.args(hit)).args;
    } catch (error) {
      // The call may be of a part that is not read yet: the tip goes without them.
    }
    this.isSlow = performance.now() - began > 500;
    if (this.argsOf.size > 500) this.argsOf.clear();
    this.argsOf.set(key, text);
  }

  tipOf(hit) {
    if (!hit) return "";
    const gap = hit.gap ? gapText(hit.gap) : "";
    if (hit.written) return bytesText(hit.written.bytes) + " of records in " + duration(hit.written.ns) + "\nnot read yet: zoom in to see the calls";
    if (hit.start !== undefined) return this.tipOfStretch(hit) + (gap ? "\n" + gap : "");
    if (hit.part) return nameOf(hit.part[0]) + "\n" + duration(hit.part[2] - hit.part[1]) + "\n" + laneTitle(facts.lanes[hit.lane]);
    return gap || laneTitle(facts.lanes[hit.lane]);
  }
  tipOfStretch(hit) {
    if (hit.state !== undefined) return ["on the CPU", "ready to run, waits for a CPU", "blocked", "state not known"][hit.state] + " for " + duration(hit.stop - hit.start);
    if (hit.crowd) return count(hit.crowd) + " calls in " + duration(hit.stop - hit.start) + ", " + duration(hit.busy) + " of it\nthe longest: " + nameOf(hit.most) + "\nzoom in to see each";
    const cpu = this.cpuOf(hit), args = this.argsOf.get(this.keyOf(hit));
    return [
      nameOf(hit.what),
      args ? args.slice(0, 300) : null,
      (hit.flags & CUT ? "at least " : "") + duration(hit.stop - hit.start) + (cpu === null ? "" : ", on the CPU " + share(cpu, hit.stop - hit.start)),
      moduleOf(hit.what) ? "in " + moduleOf(hit.what) : null,
      "thread " + laneTitle(facts.lanes[hit.lane]),
    ].filter(Boolean).join("\n");
  }
  // The time of a call on the CPU, by what is known of its thread's states; null: too
  // little is.
  cpuOf(call) {
    const lane = facts.lanes[call.lane];
    if (!facts.has_cpu || lane.coroutine || lane.adopted || call.flags & CUT) return null;
    const data = [this.parts.get(call.lane), this.whole.get(call.lane)].find((one) => one && one.from <= call.start && one.until >= call.stop);
    if (!data) return null;
    const times = data.rows.filter((row) => row.level < LEVELS).map((row) => [row.level, timeWithin(row, call.start, call.stop, data.pixel)]);
    if (times.length === 0 || times.some(([level, ns]) => ns === null || (level === 3 && ns > 0))) return null;
    return times.reduce((sum, [level, ns]) => level === 0 ? sum + ns : sum, 0);
  }
}
