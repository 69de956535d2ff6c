// Rows of the time line: calls of one depth, or states of a thread. Unpacks a row into
// arrays with absolute times.
function unpackRow(row, from) {
  const [level, stretches, crowds] = row;
  const calls = stretches.length / 4, crowded = crowds.length / 4;
  const made = {
    level,
    start: new Float64Array(calls), stop: new Float64Array(calls), what: new Uint32Array(calls), flags: new Uint16Array(calls),
    at: new Float64Array(crowded), busy: new Float64Array(crowded), count: new Float64Array(crowded), most: new Uint32Array(crowded),
  };
  let last = from;
  for (let i = 0; i < calls; ++i) {
    last += stretches[4 * i];
    made.start[i] = last;
    made.stop[i] = last + stretches[4 * i + 1];
    made.what[i] = stretches[4 * i + 2];
    made.flags[i] = stretches[4 * i + 3];
  }
  last = from;
  for (let i = 0; i < crowded; ++i) {
    last += crowds[4 * i];
    made.at[i] = last;
    made.busy[i] = crowds[4 * i + 1];
    made.count[i] = crowds[4 * i + 2];
    made.most[i] = crowds[4 * i + 3];
  }
  return made;
}
// Unpacks how densely records were written: pieces of time, with the bytes of their
// records.
function unpackDensity(numbers, from) {
  const pieces = numbers.length / 3;
  const made = { start: new Float64Array(pieces), stop: new Float64Array(pieces), bytes: new Float64Array(pieces), most: 0 };
  let last = from;
  for (let i = 0; i < pieces; ++i) {
    last += numbers[3 * i];
    made.start[i] = last;
    made.stop[i] = last + numbers[3 * i + 1];
    made.bytes[i] = numbers[3 * i + 2];
    made.most = Math.max(made.most, made.bytes[i] / Math.max(1, numbers[3 * i + 1]));
  }
  return made;
}
// Returns the first index whose value is greater than `value`.
function firstAfter(list, value) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

// Returns how much of the time between two times a row of states takes; null: stretches
// that are too short to be drawn one by one are not known well enough.
function timeWithin(row, from, until, pixel) {
  let sum = 0;
  const last = firstAfter(row.start, until);
  for (let i = firstAfter(row.stop, from); i < last; ++i) sum += Math.min(row.stop[i], until) - Math.max(row.start[i], from);
  for (let i = firstAfter(row.at, from - pixel); i < row.at.length && row.at[i] < until; ++i) {
    if (pixel > (until - from) / 20) return null;
    sum += row.busy[i];
  }
  return Math.min(sum, until - from);
}

// Returns the visible part of a row between two times: calls of that duration at least,
// and the others as density buckets, one for each pixel of that length. The server does
// the same.
function seenOfRow(row, from, until, pixel, least) {
  const stretches = [], crowds = [];
  let busiest = 0;
  const addCrowd = (at, busy, count, what) => {
    const piece = Math.floor(at / pixel) * pixel;
    const last = crowds.length - 4;
    if (last < 0 || crowds[last] !== piece) {
      crowds.push(piece, busy, count, what);
      busiest = busy;
      return;
    }
    crowds[last + 1] += busy;
    crowds[last + 2] += count;
    if (busy > busiest) { busiest = busy; crowds[last + 3] = what; }
  };
  let k = firstAfter(row.at, from - pixel);
  const crowdsUpTo = (end) => {
    for (; k < row.at.length && row.at[k] <= end; ++k) addCrowd(row.at[k], row.busy[k], row.count[k], row.most[k]);
  };
  for (let i = firstAfter(row.stop, from); i < row.start.length && row.start[i] < until; ++i) {
    const long = row.stop[i] - row.start[i];
    if (long >= least || least === 1) { stretches.push(i); continue; }
    crowdsUpTo(Math.floor(row.start[i] / pixel) * pixel);
    addCrowd(row.start[i], long, 1, row.what[i]);
  }
  crowdsUpTo(until);
  const every = (kind, list, values) => kind.from(list, (i) => values[i]);
  const column = (kind, which) => { const made = new kind(crowds.length / 4); for (let i = 0; i < made.length; ++i) made[i] = crowds[4 * i + which]; return made; };
  return {
    level: row.level,
    start: every(Float64Array, stretches, row.start), stop: every(Float64Array, stretches, row.stop),
    what: every(Uint32Array, stretches, row.what), flags: every(Uint16Array, stretches, row.flags),
    at: column(Float64Array, 0), busy: column(Float64Array, 1), count: column(Float64Array, 2), most: column(Uint32Array, 3),
  };
}
