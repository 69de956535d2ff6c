// The page while something is read: a bar says so. While the whole trace is read, the page
// shows how far that is, and then takes the result.
const reading = { text: "", isOver: false };

// The bar at the upper edge: how much of the whole trace has been read, or that the page
// waits for an answer.
const busy = { element: make("div", { id: "busy", role: "progressbar", "aria-label": "reading", hidden: true }), answers: 0, share: 1 };
function showBusy() {
  const isReading = !facts.is_whole && !reading.isOver;
  busy.element.hidden = !isReading && busy.answers === 0;
  busy.element.className = isReading ? "" : "waits";
  busy.element.style.width = isReading ? Math.max(1, 100 * busy.share) + "%" : "";
}
// Returns a promise as it is; the bar is there until it is fulfilled.
async function whileBusy(answer) {
  ++busy.answers;
  if (facts) showBusy();
  try {
    return await answer;
  } finally {
    --busy.answers;
    if (facts) showBusy();
  }
}

function showReading(progress) {
  reading.text = progress.problem ? "the whole trace could not be read: " + progress.problem
    : Math.floor(100 * progress.share) + " %" + (progress.records ? ", " + count(progress.records) + " records" : "") +
      (progress.seconds_left === null ? "" : ", " + duration(Math.max(1, Math.ceil(progress.seconds_left)) * 1e9) + " left");
  reading.isOver = Boolean(progress.problem);
  busy.share = progress.share;
  showBusy();
  for (const element of document.querySelectorAll(".reading")) element.textContent = reading.text;
}

// A note in the place of data that is not known yet.
function readingNote() {
  return make("p", { role: "status" }, "Not known before the whole trace has been read: ", make("span", { class: "reading" }, reading.text), ". ",
    state.range ? null : make("span", {}, "Zoom in to see calls; tables and flame graph can be of ",
      make("button", { title: "r", onclick: shownRange }, "only what is shown"), "."));
}

// Asks until the whole trace has been read, and makes the page take it.
async function followReading(refresh) {
  while (!facts.is_whole && !reading.isOver) {
    try {
      const progress = await source.progress();
      showReading(progress);
      if (progress.is_whole) await refresh();
    } catch (error) {
      say("The server does not answer: " + error.message);
    }
    await new Promise((go) => { setTimeout(go, 500); });
  }
}
