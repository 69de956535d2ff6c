// Writes numbers and times as text: three significant digits, a dash for what is not known.
const UNITS = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];

function threeDigits(value) {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}
function duration(ns) {
  if (!isKnown(ns)) return "-";
  if (ns === 0) return "0";
  let unit = UNITS[0];
  for (const next of UNITS) if (ns >= next[1] * 0.9995) unit = next;
  const value = ns / unit[1];
  return (unit[1] === 1 && Number.isInteger(value) ? String(value) : threeDigits(value)) + " " + unit[0];
}
// The time off the CPU, in its two parts if they are known.
function offText(off, ready) {
  return facts.has_wake_ups ? "blocked " + duration(off - ready) + ", without a CPU " + duration(ready) : "off the CPU " + duration(off);
}
function bytesText(bytes) {
  const units = ["bytes", "KB", "MB", "GB"];
  let unit = 0;
  for (; bytes >= 1000 && unit < 3; ++unit) bytes /= 1000;
  return (unit ? threeDigits(bytes) : bytes) + " " + units[unit];
}
const isKnown = (number) => number !== null && number !== undefined;
const count = (number) => isKnown(number) ? number.toLocaleString("en-US") : "-";
// Returns a text of arctrace's with the page's sign for microseconds.
const micro = (text) => text.replace(/(\d) us\b/g, "$1 µs");
function share(part, all) {
  if (!isKnown(part) || !(all > 0)) return "-";
  if (part === 0) return "0";
  return part / all < 0.0005 ? "< 0.1 %" : (100 * part / all).toFixed(part / all < 0.0995 ? 1 : 0) + " %";
}

// Returns a time, with as many digits as tell neighbours `step` apart.
function moment(ns, step) {
  const unit = Math.abs(ns) >= 1e9 || step >= 1e8 ? UNITS[3] : Math.abs(ns) >= 1e6 || step >= 1e5 ? UNITS[2] : UNITS[1];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit[1] / Math.max(step, 1)))));
  return (ns / unit[1]).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + " " + unit[0];
}

// Returns a name without its parameters and, of templates, its result, which tell least:
// the name is that of a function as C++ writes it.
function shortName(name) {
  const [suffix] = name.match(/( const| volatile| &{1,2}| noexcept)*( \[clone [^\]]*\])*$/);
  const whole = name.slice(0, name.length - suffix.length);
  const at = whole.endsWith(")") ? openedAt(whole, whole.length - 1) : -1;
  // such as "operator()", "PROGRAM (deleted)", a function that returns a pointer to one
  if (at < 1 || /(^|\W)operator$| $|[^r(]\)$/.test(whole.slice(0, at))) return name;
  const head = whole.slice(0, at), clone = suffix.slice(suffix.includes("[") ? suffix.indexOf(" [") : suffix.length);
  if (/ (to|for) /.test(head)) return head + clone;  // such as "virtual thunk to ..."
  const operator = head.match(/(^|[\s:*&])operator(\W.*|)$/);
  let from = operator ? operator.index + operator[1].length : head.length;
  while (from > 0 && head[from - 1] !== " ") {
    from = ")>}]".includes(head[from - 1]) ? openedAt(head, from - 1) : from - 1;
    if (from < 0) return head + clone;
  }
  return head.slice(from) + clone;
}
// Returns where the bracket that is closed at `end` is opened, or -1.
function openedAt(text, end) {
  let depth = 0;
  for (let i = end; i >= 0; --i) {
    if (")>}]".includes(text[i]) && text.slice(i - 1, i + 1) !== "->") ++depth;
    else if ("(<{[".includes(text[i]) && --depth === 0) return i;
  }
  return -1;
}
const fileOf = (path) => path.slice(path.lastIndexOf("/") + 1);

// Returns a name of the trace, cut, and without characters that a browser would obey.
const plain = (text) => String(text).slice(0, 300).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (letter) => "\\u{" + letter.codePointAt(0).toString(16) + "}");

function hash(text) {
  let value = 2166136261;
  const end = Math.min(text.length, 200);
  for (let i = 0; i < end; ++i) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

const BLOCKS = "▁▂▃▄▅▆▇█";
// Returns the columns of a histogram as one word, on a square root's scale.
function shapeOf(histogram) {
  const columns = histogram.slice(1);
  const most = Math.max(...columns, 1);
  return columns.map((n) => n === 0 ? "·" : BLOCKS[Math.min(7, Math.floor(8 * Math.sqrt(n / most)))]).join("");
}
