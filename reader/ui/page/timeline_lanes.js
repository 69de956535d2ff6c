// The lanes of the time line: their order, and where they are on the screen.
const GUTTER = 190, AXIS = 24, ROW = 15, STRIP = 6, PAD = 6;
const BLOCKED = 2, LEVELS = 4;  // levels of states; those of calls begin after them
const SHALLOW = 8;              // rows of calls that a deep lane shows until it is unfolded

// Gaps during which calls may be missing: not those of other classes of records.
let gapsOfCalls = [];
const isOfCalls = (gap) => !gap.reason.endsWith(" off") || /\b(functions|recording)\b/.test(gap.reason);
const isOf = (gap, lane) => gap.tid === lane.tid && gap.pid === lane.pid;
const gapText = (gap) => "records are missing: " + gap.reason + (gap.records ? ", " + count(gap.records) : "") +
  (gap.from_ns === null ? "" : "\nfor " + duration(gap.to_ns - gap.from_ns));

class TimeLineLanes {
  constructor() {
    this.scroll = 0;
    this.isDeep = false;  // all lanes show all of their rows
    this.arrange();
  }

  // The lanes that worked most come first: by CPU time, or by the time in calls that do
  // not wait; until calls are known, those with the most records.
  arrange() {
    this.order = facts.lanes.map((lane, index) => index).sort((a, b) => this.workOf(b) - this.workOf(a) || a - b);
    gapsOfCalls = (facts.gaps || []).filter(isOfCalls);
  }
  workOf(index) {
    const lane = facts.lanes[index];
    return (facts.has_cpu ? lane.cpu_ns : lane.work_ns) ?? lane.bytes ?? 0;
  }
  // If there are many lanes, the idle ones are folded.
  fold() {
    const most = Math.max(1, ...this.order.slice(0, 1).map((index) => this.workOf(index)));
    facts.lanes.forEach((lane, index) => {
      lane.folded = facts.is_whole && this.order.length > 6 && (this.workOf(index) < most / 1000 || lane.levels <= LEVELS);
    });
  }

  // The rows of calls that a lane shows; and how many are hidden below them.
  shownRows(lane) {
    const rows = lane.levels - LEVELS;
    if (lane.folded) return Math.min(rows, 1);
    return rows <= SHALLOW + 1 || lane.isDeep || this.isDeep ? rows : SHALLOW;
  }
  deeperRows(lane) { return lane.folded ? 0 : lane.levels - LEVELS - this.shownRows(lane); }
  topOf(y) { return y + PAD + (facts.has_cpu ? STRIP + 2 : 0); }
  laneHeight(lane) {
    const rows = this.shownRows(lane) + (this.deeperRows(lane) > 0 ? 1 : 0);
    return this.topOf(0) + Math.max(rows, 1) * ROW + PAD;
  }
  height() { return this.order.reduce((sum, index) => sum + this.laneHeight(facts.lanes[index]), AXIS); }
  // Where a lane begins, from the first one on.
  offsetOf(wanted) {
    let y = 0;
    for (const index of this.order) {
      if (index === wanted) break;
      y += this.laneHeight(facts.lanes[index]);
    }
    return y;
  }
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
  // Unfolds a lane as far as a level needs it.
  reveal(lane, level) {
    if (level > LEVELS) lane.folded = false;
    if (level >= LEVELS + this.shownRows(lane)) lane.isDeep = true;
  }
  // Changes what a click in the left column is on: the row below a deep lane, or its name.
  unfold(lane, y, laneY, height) {
    if (this.deeperRows(lane) > 0 && y > laneY + height - PAD - ROW) lane.isDeep = true;
    else if (lane.isDeep) lane.isDeep = false;
    else lane.folded = !lane.folded;
  }
}
