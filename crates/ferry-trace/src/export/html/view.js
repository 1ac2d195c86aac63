// The visible part of the recording. Times are nanoseconds since its beginning.

import { redraw } from './frame.js';
import { trace } from './data.js';

/** Maximum width of a nanosecond in pixels. */
const MOST_PIXELS_A_NANO = 20;

const view = {
  begin: 0,
  end: 1,
  /** Destination of the move in progress, or null. */
  move: null,
  /** Width of the view in CSS pixels. */
  width: 1,
  x(time) {
    return (time - this.begin) * this.width / (this.end - this.begin);
  },
  time(x) {
    return this.begin + this.nanos(x);
  },
  /** Nanoseconds in a number of pixels. */
  nanos(pixels) {
    return pixels * (this.end - this.begin) / this.width;
  },
  /** Shows a part of the recording, within its bounds and the maximum zoom. */
  show(begin, end) {
    const shortest = this.width / MOST_PIXELS_A_NANO;
    const length = Math.min(Math.max(end - begin, Math.min(shortest, trace.end)), trace.end);
    const start = Math.min(Math.max((begin + end - length) / 2, 0), trace.end - length);
    this.begin = start;
    this.end = start + length;
    redraw();
  },
  /** Zooms by a factor while the time at `x` stays in place. */
  zoom(factor, x = this.width / 2) {
    const length = Math.min((this.end - this.begin) * factor, trace.end);
    const begin = Math.min(Math.max(this.time(x) - length * x / this.width, 0), trace.end - length);
    this.show(begin, begin + length);
  },
  /** Moves by a number of pixels. */
  pan(pixels) {
    const by = Math.min(Math.max(this.nanos(pixels), -this.begin), trace.end - this.end);
    this.show(this.begin + by, this.end + by);
  },
};

const wantsStill = matchMedia('(prefers-reduced-motion: reduce)');

/** Moves smoothly in a sixth of a second, or at once if the user prefers reduced motion. */
function glide(begin, end) {
  if (wantsStill.matches) {
    view.show(begin, end);
    return;
  }
  view.move = { begin, end, fromBegin: view.begin, fromEnd: view.end, since: performance.now() };
  requestAnimationFrame(glideOn);
}

function glideOn() {
  if (!view.move) {
    return;
  }
  const move = view.move;
  const part = Math.min(1, (performance.now() - move.since) / 160);
  const eased = 1 - (1 - part) ** 3;
  view.show(move.fromBegin + (move.begin - move.fromBegin) * eased, move.fromEnd + (move.end - move.fromEnd) * eased);
  if (part < 1) {
    requestAnimationFrame(glideOn);
  } else {
    view.move = null;
  }
}

/** Zooms about the middle, or pans by a part of the width. Consecutive keys add up. */
function glideBy(factor, part) {
  const { begin, end } = view.move ?? view;
  const middle = (begin + end) / 2 + part * (end - begin);
  const half = Math.min((end - begin) * factor, trace.end) / 2;
  const centre = Math.min(Math.max(middle, half), trace.end - half);
  glide(centre - half, centre + half);
}

export { glide, glideBy, MOST_PIXELS_A_NANO, view };
