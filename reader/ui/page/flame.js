// The flame graph of a range of time: the outermost functions on top.
const WEIGHTS = { wall: "time", cpu: "time on the CPU", off: "time waiting", count: "calls" };
const GROUPINGS = { all: "all threads", process: "each process", thread: "each thread" };
const FLAME_ROW = 18;

// Makes a tree of the flat nodes: {what, own, total, name, children}.
function flameTree(groups, weight) {
  const own = (self, off, unknown, calls) => weight === "count" ? calls : weight === "off" ? off : weight === "cpu" ? self - off - unknown : self;
  const root = { what: -2, own: 0, total: 0, name: "all", children: [], parent: null };
  for (const group of groups) {
    const path = [root];
    const { nodes } = group;
    for (let i = 0; i < nodes.length; i += 6) {
      const depth = nodes[i];
      path.length = Math.min(path.length, depth + 1);
      const parent = path[path.length - 1];
      const node = {
        what: depth === 0 ? -2 : nodes[i + 1], own: own(nodes[i + 2], nodes[i + 3], nodes[i + 4], nodes[i + 5]), total: 0, children: [], parent,
        name: depth === 0 ? group.name + (group.pid ? " " + group.pid : "") + (group.tid ? "/" + group.tid : "") : undefined,
      };
      parent.children.push(node);
      path.push(node);
    }
  }
  return root;
}
// Lists all nodes; children come after their parents.
function flameOrder(root) {
  const order = [root];
  for (let i = 0; i < order.length; ++i) order.push(...order[i].children);
  return order;
}
function sumUp(root) {
  const order = flameOrder(root);
  for (const node of order) node.total = node.own;
  for (let i = order.length - 1; i > 0; --i) order[i].parent.total += order[i].total;
  for (const node of order) node.children.sort((a, b) => b.total - a.total);
  return root;
}
// Makes the same tree from the innermost function outwards.
function inverted(root) {
  const made = { what: -2, own: 0, total: 0, name: "all", children: [], parent: null, index: new Map() };
  for (const node of flameOrder(root)) {
    if (node.own <= 0 || node.what === -2) continue;
    let at = made, depth = 0;
    for (let from = node; from && from.what !== -2 && depth < 64; from = from.parent, ++depth) {
      let next = at.index.get(from.what);
      if (!next) {
        next = { what: from.what, own: 0, total: 0, children: [], parent: at, index: new Map() };
        at.index.set(from.what, next);
        at.children.push(next);
      }
      at = next;
    }
    at.own += node.own;
  }
  return made;
}
const labelOf = (node) => node.name !== undefined ? node.name : nameOf(node.what);

class FlameGraph {
  constructor() {
    this.canvas = make("canvas", { tabindex: 0, role: "application", "aria-label": "Flame graph. Arrows move, Enter zooms in, Escape zooms out." });
    this.crumbs = make("span", { class: "crumbs", "aria-label": "Zoomed to" });
    this.sum = make("span", { role: "status" });
    const weights = { ...WEIGHTS };
    if (!facts.has_cpu) { delete weights.cpu; delete weights.off; }
    // Time that threads wait is mostly of those that have nothing to do.
    if (!weights[state.weight]) state.weight = facts.has_cpu ? "cpu" : "wall";
    const choice = (name, choices) => make("select", { onchange: (event) => change({ [name]: event.target.value }) },
      Object.entries(choices).map(([value, text]) => make("option", { value, selected: state[name] === value }, text)));
    this.find = make("input", { type: "search", placeholder: "highlight", "aria-label": "Highlight functions", value: state.flameSearch,
      oninput: (event) => change({ flameSearch: event.target.value }) });
    this.bar = make("div", { class: "bar" },
      make("label", {}, "width:", choice("weight", weights)), make("label", {}, "of", choice("per", GROUPINGS)),
      make("label", {}, make("input", { type: "checkbox", checked: state.inverted, onchange: (event) => change({ inverted: event.target.checked }) }), "from the innermost function"),
      this.find, this.sum, this.crumbs);
    this.legend = make("div", {});
    this.draw = inFrames(() => this.paint());
    this.box = make("div", { class: "flame" }, this.canvas);
    new ResizeObserver(this.draw).observe(this.box);
    this.scroll = 0;
    this.listen();
  }
  async show(main, isCurrent) {
    const key = state.per + pair(state.range);
    if (this.key !== key) {
      const { groups } = await source.flame(presentRange(), state.per);
      await readTotals();  // it tells of which functions calls were left out
      if (!isCurrent()) return;
      this.key = key;
      this.groups = groups;
      this.built = null;
      clear(this.legend, leftOutLegend());
    }
    main.classList.add("fills");
    clear(main, this.bar, this.legend, this.box);
    this.build();
  }
  build() {
    const key = [this.key, state.weight, state.inverted].join();
    if (this.built !== key && this.groups) {
      this.built = key;
      const tree = flameTree(this.groups, state.weight);
      this.root = sumUp(state.inverted ? inverted(tree) : tree);
      while (this.root.children.length === 1 && this.root.own === 0 && this.root.children[0].what === -2) {
        this.root = this.root.children[0];
        this.root.parent = null;
      }
      this.top = this.chosen = this.root;
      this.scroll = 0;
    }
    this.mark();
    this.draw();
  }
  textOf(value) { return state.weight === "count" ? count(value) + " calls" : duration(value); }
  mark() {
    const wanted = state.flameSearch.toLowerCase();
    this.matches = null;
    if (!this.root) return;
    if (wanted) {
      this.matches = new Set();
      let sum = 0;
      const walk = [[this.root, false]];
      while (walk.length > 0) {
        const [node, inside] = walk.pop();
        const hit = labelOf(node).toLowerCase().includes(wanted);
        if (hit) this.matches.add(node);
        if (hit && !inside) sum += node.total;
        for (const child of node.children) walk.push([child, inside || hit]);
      }
      this.sum.textContent = this.matches.size ? share(sum, this.root.total) + " in what matches" : "nothing matches";
    } else this.sum.textContent = this.textOf(this.root.total);
    const path = [];
    for (let node = this.top; node; node = node.parent) path.unshift(node);
    clear(this.crumbs, path.length < 2 ? [] : path.map((node) => [make("button", { onclick: () => this.zoomTo(node) }, shortName(labelOf(node)).slice(0, 60)), node === this.top ? "" : "›"]).flat());
  }
  zoomTo(node) { this.top = this.chosen = node; this.scroll = 0; this.mark(); this.draw(); }
  paint() {
    if (!this.root || !this.canvas.isConnected) return;
    const context = contextOf(this.canvas);
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const ink = { bg: cssColor("bg"), text: cssColor("text"), dim: cssColor("dim") };
    context.fillStyle = ink.bg;
    context.fillRect(0, 0, width, height);
    context.font = fonts;
    context.textBaseline = "middle";
    this.boxes = [];
    const above = [];
    for (let node = this.top.parent; node; node = node.parent) above.unshift(node);
    let y = 4 - this.scroll;
    for (const node of above) { this.box_(context, node, 0, y, width, ink, true); y += FLAME_ROW; }
    const walk = [[this.top, 0, y, width]];
    let lowest = 0;
    while (walk.length > 0) {
      const [node, x, top, wide] = walk.pop();
      this.box_(context, node, x, top, wide, ink, false);
      lowest = Math.max(lowest, top + FLAME_ROW);
      let at = x;
      for (const child of node.children) {
        const part = node.total > 0 ? wide * child.total / node.total : 0;
        if (part < 0.5) break;
        walk.push([child, at, top + FLAME_ROW, part]);
        at += part;
      }
    }
    this.deepest = lowest + this.scroll;
    if (this.root.total === 0) {
      context.fillStyle = ink.dim;
      context.fillText("Nothing of this kind was recorded in this time.", 14, 50);
    }
  }
  box_(context, node, x, y, wide, ink, isAbove) {
    if (y + FLAME_ROW < 0 || y > this.canvas.clientHeight) return;
    this.boxes.push([node, x, y, wide]);
    const dim = isAbove || (this.matches && !this.matches.has(node));
    context.globalAlpha = dim ? 0.35 : 1;
    context.fillStyle = node.what === -2 ? cssColor("line") : colorOf(node.what);
    context.fillRect(x, y, Math.max(0.5, wide - 0.7), FLAME_ROW - 1);
    context.globalAlpha = 1;
    if (wide > 26) {
      context.fillStyle = dim ? ink.dim : ink.text;
      context.fillText(fitted(shortName(labelOf(node)) + leftOutText(node.what), wide - 8), x + 4, y + FLAME_ROW / 2);
    }
    if (node === this.chosen && document.activeElement === this.canvas) {
      context.strokeStyle = ink.text;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(2, wide - 2), FLAME_ROW - 3);
    }
  }
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const hit = (this.boxes || []).find(([, left, top, wide]) => x >= left && x < left + wide && y >= top && y < top + FLAME_ROW);
    return hit ? hit[0] : null;
  }
  tipOf(node) {
    return labelOf(node) + leftOutText(node.what) + "\n" + this.textOf(node.total) + ", " + share(node.total, this.root.total) + " of all; itself " +
      this.textOf(node.own) + (moduleOf(node.what) ? "\n" + moduleOf(node.what) : "");
  }
  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => {
      const node = this.at(event);
      showTip(node ? this.tipOf(node) : "", event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => showTip(""));
    canvas.addEventListener("click", (event) => {
      const node = this.at(event);
      if (!node) return;
      showTip("");
      this.zoomTo(node);
    });
    canvas.addEventListener("dblclick", () => { if (this.chosen && this.chosen.what >= 0) change({ func: this.chosen.what, call: null, tab: "details" }); });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.scroll = Math.max(0, Math.min(this.scroll + event.deltaY, (this.deepest || 0) - canvas.clientHeight + 30));
      this.draw();
    }, { passive: false });
    canvas.addEventListener("focus", this.draw);
    canvas.addEventListener("keydown", (event) => {
      const node = this.chosen;
      if (!node) return;
      const siblings = node.parent ? node.parent.children : [node];
      const i = siblings.indexOf(node);
      const next = { ArrowUp: node.parent, ArrowDown: node.children[0], ArrowLeft: siblings[i - 1], ArrowRight: siblings[i + 1] }[event.key];
      if (next) { this.chosen = next; say(this.tipOf(next)); this.draw(); }
      else if (event.key === "Enter") this.zoomTo(node);
      else if (event.key === "Escape" && this.top.parent) this.zoomTo(this.top.parent);
      else if (event.key === " " && node.what >= 0) change({ func: node.what, call: null, tab: "details" });
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
}
