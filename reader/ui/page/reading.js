// The page while the whole trace is read: it shows how far that is, and then takes the
// result.
const reading = { text: "", isOver: false };

function showReading(progress) {
  reading.text = progress.problem ? "the whole trace could not be read: " + progress.problem
    : Math.floor(100 * progress.share) + " %" + (progress.records ? ", " + count(progress.records) + " records" : "") +
      (progress.seconds_left === null ? "" : ", " + duration(Math.max(1, Math.ceil(progress.seconds_left)) * 1e9) + " left");
  reading.isOver = Boolean(progress.problem);
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
