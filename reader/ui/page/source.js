// The source of the page's data: the server that served the page, or the data in the file
// of `export --to=html`.
class ServedSource {
  // `stale`: called when the whole trace has been read, so that functions and lanes have other numbers.
  constructor(stale) { this.canReadAgain = true; this.stale = stale; }
  // An error is `isEarly` if the whole trace has not been read yet, or the page has not
  // taken it yet.
  ask(name, values, page = facts) { return whileBusy(this.answerOf(name, values, page)); }
  async answerOf(name, values, page) {
    const query = new URLSearchParams({ ...(values || {}), ...(page ? { whole: page.is_whole ? 1 : 0 } : {}) }).toString();
    const answer = await fetch("api/" + name + (query ? "?" + query : ""));
    if (answer.ok) return answer.json();
    const error = new Error((await answer.text()).trim() || answer.statusText);
    error.isEarly = answer.status === 409;
    if (answer.status === 409) this.stale();
    throw error;
  }
  // Asks, and also gets the functions and lanes that are new in the answer.
  async read(name, values) {
    const page = facts;
    const answer = await this.ask(name, values, page);
    const functions = page.functions.length, lanes = page.lanes.length;
    if (answer.function_count <= functions && answer.lane_count <= lanes) return answer;
    const more = await this.ask("names", { function: functions, lane: lanes }, page);
    more.functions.forEach((entry, i) => { page.functions[functions + i] = entry; });
    more.lanes.forEach((lane, i) => { page.lanes[lanes + i] = lane; });
    return answer;
  }
  summary() { return this.ask("summary", {}, null); }
  progress() { return this.answerOf("progress", {}, null); }
  // Reads data that may be of the whole trace: the server does not know that before it is
  // read.
  async readOf(range, name, values) {
    if (range || facts.is_whole) return this.read(name, { ...(range || {}), ...(values || {}) });
    const error = new Error("not known before the whole trace has been read");
    error.isEarly = true;
    throw error;
  }
  // {from_ns, until_ns, pixel_ns, is_exact, lanes: [number, rows]}
  async timeline(view, pixel, lanes, exact) {
    const answer = await this.read("timeline", {
      from: Math.floor(view.from), until: Math.ceil(view.until), pixel: Math.max(1, Math.floor(pixel)),
      lanes: lanes.join(","), exact: exact ? 1 : 0,
    });
    for (const lane of answer.lanes) {
      lane[1] = lane[1].map((row) => unpackRow(row, answer.from_ns));
      if (lane[2]) lane[2] = unpackDensity(lane[2], answer.from_ns);
    }
    return answer;
  }
  totals(range) { return this.readOf(range, "totals"); }
  flame(range, per) { return this.readOf(range, "flame", { per }); }
  locks(range) { return this.readOf(range, "locks"); }
  critical(range) { return this.readOf(range, "critical-path"); }
  processes(range) { return this.readOf(range, "processes"); }
  slowest(id, range) { return this.readOf(range, "slowest", { function: id }); }
  args(call) { return this.answerOf("args", { lane: call.lane, level: call.level, start: call.start }, facts); }
  call(call) { return this.read("call", { lane: call.lane, level: call.level, start: call.start, stop: call.stop }); }
  source(id) { return this.ask("source", { function: id }); }
  search(text) { return this.readOf(null, "search", { text }); }
}

class FileSource {
  constructor(packed) { this.packed = packed; this.canReadAgain = false; this.rows = new Map(); }
  async summary() {
    const letters = atob(this.packed.trim());
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; ++i) bytes[i] = letters.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    this.data = await new Response(stream).json();
    return this.data;
  }
  async timeline(view, wanted, lanes) {
    const { timeline } = this.data;
    const from = Math.floor(view.from), until = Math.ceil(view.until);
    const least = Math.max(1, Math.floor(wanted));
    const pixel = Math.max(timeline.pixel_ns, least);  // density buckets are no finer
    return {
      from_ns: from, until_ns: until, pixel_ns: pixel, is_exact: true,
      lanes: lanes.map((index) => [index, this.rowsOf(index).map((row) => seenOfRow(row, from, until, pixel, least))]),
    };
  }
  rowsOf(index) {
    const lane = this.data.timeline.lanes[index];
    if (!this.rows.has(index)) this.rows.set(index, lane[1].map((row) => unpackRow(row, this.data.timeline.from_ns)));
    return this.rows.get(index);
  }
  async totals() { return this.data; }
  async flame(range, per) { return this.data.flames[per]; }
  async locks() { return this.data; }
  async critical() { return this.data.critical; }
  async processes() { return this.data; }
  async slowest(id) { return { slowest: this.data.slowest[id] || [] }; }
  async call() { return null; }
  async source() { return {}; }
  async search() { return { found: [], is_cut: false }; }
}

function makeSource(stale) {
  const packed = document.getElementById("data");
  return packed ? new FileSource(packed.textContent) : new ServedSource(stale);
}
