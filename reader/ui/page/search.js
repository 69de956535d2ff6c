// The one search field: it finds functions and threads while one types, and arguments on
// request.
class Search {
  constructor() {
    this.list = make("ul", { class: "found", id: "found", role: "listbox", hidden: true, "aria-label": "Found" });
    this.input = make("input", {
      type: "search", placeholder: "Search  ( / )", role: "combobox", "aria-controls": "found", "aria-expanded": "false",
      "aria-label": "Search functions, threads and arguments", autocomplete: "off", spellcheck: "false",
      oninput: () => this.find(), onfocus: () => this.find(), onkeydown: (event) => this.key(event),
      onblur: () => setTimeout(() => this.close(), 150),
    });
    this.element = make("div", { class: "search", role: "search" }, this.input, this.list);
    this.items = [];
  }
  // The texts that are searched, one for each function. There are more and more while a
  // trace is read.
  index() {
    if (this.indexed !== facts.functions || this.texts.length !== facts.functions.length) {
      this.indexed = facts.functions;
      this.texts = facts.functions.map((entry) => [entry[0], entry[3], fileOf(entry[1])].filter(Boolean).join(" ").toLowerCase());
    }
    return this.texts;
  }
  find() {
    const wanted = this.input.value.trim().toLowerCase();
    if (!wanted) return this.close();
    const items = [], texts = this.index();
    for (let id = 1; id < texts.length && items.length < 40; ++id) {
      if (!texts[id].includes(wanted)) continue;
      items.push({ kind: "function", text: nameOf(id), rank: nameOf(id).toLowerCase().startsWith(wanted) ? 0 : 1,
        go: () => change({ func: id, call: null, tab: "details" }) });
    }
    items.sort((a, b) => a.rank - b.rank);
    items.length = Math.min(items.length, 20);
    facts.lanes.forEach((lane, index) => {
      if (items.length < 40 && laneTitle(lane).toLowerCase().includes(wanted)) items.push({ kind: "thread", text: laneTitle(lane), go: () => timeLine.goLane(index) });
    });
    if (source.canReadAgain && wanted.length > 1) items.push({ kind: "arguments", text: "calls whose arguments contain “" + this.input.value.trim() + "”", stays: true, go: () => this.findArguments() });
    this.show(items.length ? items : [{ kind: "", text: facts.is_whole ? "nothing has this name" : "nothing that has been read so far has this name", go: () => {} }], 0);
  }
  async findArguments() {
    this.show([{ kind: "", text: "reading the trace…", go: () => {}, stays: true }], 0);
    try {
      const answer = await source.search(this.input.value.trim());
      const items = answer.found.map(([lane, level, start, stop, what, text]) => ({
        kind: duration(stop - start), text: shortName(nameOf(what)) + "  " + text,
        go: () => { const call = { lane, level, start, stop, what, flags: 0 }; change({ call, func: null, tab: "details" }); timeLine.show(call); },
      }));
      if (answer.is_cut) items.push({ kind: "", text: "there are more", go: () => {} });
      this.show(items.length ? items : [{ kind: "", text: "no argument contains it", go: () => {} }], 0);
    } catch (error) {
      this.show([{ kind: "", text: error.message, go: () => {} }], 0);
    }
  }
  show(items, chosen) {
    this.items = items;
    this.list.hidden = items.length === 0;
    this.input.setAttribute("aria-expanded", String(items.length > 0));
    clear(this.list, items.map((item, i) => make("li", {
      role: "option", id: "found" + i, onmousedown: (event) => { event.preventDefault(); this.go(i); },
    }, make("span", { class: "kind" }, item.kind), item.text.slice(0, 300))));
    this.choose(chosen);
  }
  choose(i) {
    this.chosen = i;
    [...this.list.children].forEach((element, k) => element.setAttribute("aria-selected", String(k === i)));
    if (this.items.length) { this.input.setAttribute("aria-activedescendant", "found" + i); this.list.children[i].scrollIntoView({ block: "nearest" }); }
  }
  go(i) {
    const item = this.items[i];
    if (!item) return;
    if (!item.stays) this.close();
    item.go();
  }
  close() { this.items = []; this.list.hidden = true; this.input.setAttribute("aria-expanded", "false"); }
  key(event) {
    const length = this.items.length;
    if (event.key === "ArrowDown" && length) this.choose((this.chosen + 1) % length);
    else if (event.key === "ArrowUp" && length) this.choose((this.chosen + length - 1) % length);
    else if (event.key === "Enter") this.go(this.chosen);
    else if (event.key === "Escape") { this.close(); this.input.blur(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
