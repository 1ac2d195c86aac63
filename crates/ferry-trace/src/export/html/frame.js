// Frames: any change of the picture requests one, and all painters draw it.

/** Durations of the last frames, in milliseconds. */
const pace = [];
const MOST_PACES = 240;

const frame = {
  isDue: false,
  /** Functions that draw the parts of the page, in order; set by `main.js`. */
  painters: [],
};

/** Draws once before the browser's next frame, however often it is called. */
function redraw() {
  if (!frame.isDue) {
    frame.isDue = true;
    requestAnimationFrame(drawFrame);
  }
}

function drawFrame() {
  frame.isDue = false;
  const since = performance.now();
  frame.painters.forEach((paint) => paint());
  pace.push(performance.now() - since);
  if (pace.length > MOST_PACES) {
    pace.shift();
  }
}

export { frame, pace, redraw };
