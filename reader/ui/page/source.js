// Where the page's data comes from: the server that served the page, or what the file of
// `export --to=html` holds.
class ServedSource {
  constructor() { this.canReadAgain = true; }
  async ask(name, values) {
    const query = new URLSearchParams(values || {}).toString();
    const answer = await fetch("api/" + name + (query ? "?" + query : ""));
    if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
    return answer.json();
  }
  summary() { return this.ask("summary"); }
  // {from_ns, until_ns, pixel_ns, is_exact, lanes: [number, rows]}
  async timeline(view, pixel, lanes, exact) {
    const answer = await this.ask("timeline", {
      from: Math.floor(view.from), until: Math.ceil(view.until), pixel: Math.max(1, Math.floor(pixel)),
      lanes: lanes.join(","), exact: exact ? 1 : 0,
    });
    for (const lane of answer.lanes) lane[1] = lane[1].map((row) => unpackRow(row, answer.from_ns));
    return answer;
  }
  totals(range) { return this.ask("totals", range || {}); }
  flame(range, per) { return this.ask("flame", { ...(range || {}), per }); }
  locks(range) { return this.ask("locks", range || {}); }
  critical(range) { return this.ask("critical-path", range || {}); }
  call(call) { return this.ask("call", { lane: call.lane, level: call.level, start: call.start, stop: call.stop }); }
  source(id) { return this.ask("source", { function: id }); }
  search(text) { return this.ask("search", { text }); }
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
    const pixel = Math.max(timeline.pixel_ns, least);  // crowds are no finer
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
  async call() { return null; }
  async source() { return {}; }
  async search() { return { found: [], is_cut: false }; }
}

function makeSource() {
  const packed = document.getElementById("data");
  return packed ? new FileSource(packed.textContent) : new ServedSource();
}
