// Makes elements. All text is added as text: nothing of a trace is ever parsed as HTML.
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}
// The properties of a row that does something when it is chosen.
const actionOf = (action) => ({ tabindex: 0, onclick: action, onkeydown: (event) => { if (event.key === "Enter") action(); } });
const clear = (element, ...children) => { element.replaceChildren(...children.flat(Infinity).filter((child) => child)); return element; };
const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// Calls `draw` once in the next frame, however often it is asked for.
function inFrames(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}

// Fits a canvas to its element, and returns its context in CSS pixels.
function contextOf(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d", { alpha: false });
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

const tip = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
function showTip(text, x, y) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text.slice(0, 700);
  const left = Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = y + 18 + tip.offsetHeight < window.innerHeight;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = (below ? y + 18 : y - tip.offsetHeight - 10) + "px";
}

const fonts = "11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
// Returns the part of a text that fits a width, in a font of 11 pixels.
function fitted(text, width) {
  if (text.length * 6.1 <= width) return text;
  const room = Math.floor((width - 11) / 6.4);
  return room < 2 ? "" : text.slice(0, room) + "…";
}
