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
  timeline(view, pixel, lanes, exact) {
    return this.ask("timeline", {
      from: Math.floor(view.from), until: Math.ceil(view.until), pixel: Math.max(1, Math.floor(pixel)),
      lanes: lanes.join(","), exact: exact ? 1 : 0,
    });
  }
  totals(range) { return this.ask("totals", range || {}); }
  flame(range, per) { return this.ask("flame", { ...(range || {}), per }); }
  locks(range) { return this.ask("locks", range || {}); }
  call(call) { return this.ask("call", { lane: call.lane, level: call.level, start: call.start, stop: call.stop }); }
  search(text) { return this.ask("search", { text }); }
}

class FileSource {
  constructor(packed) { this.packed = packed; this.canReadAgain = false; }
  async summary() {
    const bytes = Uint8Array.from(atob(this.packed.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    this.data = await new Response(stream).json();
    return this.data;
  }
  async timeline() { return this.data.timeline; }
  async totals() { return this.data; }
  async flame(range, per) { return this.data.flames[per]; }
  async locks() { return this.data; }
  async call() { return null; }
  async search() { return { found: [], is_cut: false }; }
}

function makeSource() {
  const packed = document.getElementById("data");
  return packed ? new FileSource(packed.textContent) : new ServedSource();
}
