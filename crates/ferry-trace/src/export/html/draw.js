// Drawing on the timeline's canvas: grid, text, strips of pixels, and intervals in lanes.

import { view } from './view.js';
import { matches, subject } from './search.js';
import { colours } from './colours.js';

const canvas = document.getElementById('canvas');
const timeline = document.getElementById('timeline');
const context = canvas.getContext('2d');
const FONT = '10.5px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** Approximate width of a letter in pixels. */
const LETTER = 5.8;

/** The selected thing (`{ kind, index }`), and the pointer's position in the timeline. */
const selection = { current: null, pointer: null };

/** Distance of grid lines: 1, 2 or 5 times a power of ten, at least 110 pixels. */
function gridStep() {
  const wanted = view.nanos(110);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].map((part) => part * power).find((step) => step >= wanted) ?? 10 * power;
}

function forGrid(one) {
  const step = gridStep();
  for (let i = Math.ceil(view.begin / step); i * step <= view.end; i++) {
    one(i * step, Math.round(view.x(i * step)), step);
  }
}

function drawGrid(height) {
  context.fillStyle = colours.grid;
  forGrid((time, x) => context.fillRect(x, 0, 1, height));
}

/** Text, cut to its width; nothing if there is hardly any room. */
function drawLabel(text, x, width, y, how = 'fillText') {
  const letters = Math.floor((width - 4) / LETTER);
  if (letters >= 3 && text) {
    context[how](text.length > letters ? `${text.slice(0, letters - 1)}…` : text, x + 2, y);
  }
}

/** Merges neighbouring pixels of one colour into one rectangle. */
class Strip {
  constructor(y, height) {
    this.y = y;
    this.height = height;
    this.colour = null;
    this.x0 = this.x1 = 0;
  }

  add(x0, x1, colour) {
    if (colour === this.colour && x0 <= this.x1) {
      this.x1 = x1;
      return;
    }
    this.flush();
    this.colour = colour;
    this.x0 = x0;
    this.x1 = x1;
  }

  flush() {
    if (this.colour) {
      context.fillStyle = this.colour;
      context.fillRect(this.x0, this.y, this.x1 - this.x0, this.height);
    }
    this.colour = null;
  }
}

/** Merges neighbouring pixels that several classes share, each with a height in proportion to its time. */
class SharedStrip {
  constructor(lanes, y, height, shades) {
    Object.assign(this, { lanes, y, height, shades, x0: 0, x1: 0, key: 0, heights: [] });
  }

  add(x0, x1, low, high) {
    const heights = [];
    let key = 0;
    for (let c = 0; c < this.lanes.classes; c++) {
      const share = this.lanes.share(low, high, c);
      const pixels = share > 0 ? Math.max(1, Math.round(share * this.height)) : 0;
      heights.push(pixels);
      key = key * 32 + pixels;
    }
    if (key === this.key && x0 <= this.x1) {
      this.x1 = x1;
      return;
    }
    this.flush();
    Object.assign(this, { x0, x1, key, heights });
  }

  flush() {
    let bottom = this.y + this.height;
    for (let c = 0; c < this.heights.length && bottom > this.y; c++) {
      const height = Math.min(this.heights[c], bottom - this.y);
      if (height > 0) {
        bottom -= height;
        context.fillStyle = this.shades[c].solid;
        context.fillRect(this.x0, bottom, this.x1 - this.x0, height);
      }
    }
    this.heights = [];
    this.key = 0;
  }
}

/** Visible part of a span, with a margin that hides its ends if it continues. */
function clipped(x0, x1) {
  const from = Math.max(x0, -8);
  return [from, Math.max(Math.min(x1, view.width + 8), from)];
}

function fill(colour, began, ended, y, height) {
  const [x0, x1] = clipped(view.x(began), view.x(ended));
  if (x1 > x0) {
    context.fillStyle = colour;
    context.fillRect(x0, y, Math.max(x1 - x0, 0.75), height);
  }
}

/** Text on a bar; with an outline if the bar is not of one colour. */
function paintText(text, from, to, y, ink) {
  if (!ink) {
    context.strokeStyle = colours.paper;
    context.lineWidth = 2.5;
    drawLabel(text, from, to - from, y, 'strokeText');
  }
  context.fillStyle = ink ?? colours.ink;
  drawLabel(text, from, to - from, y);
}

/** Marks a match by a line above it, and the selection by a frame. */
function paintMarks(kind, i, x0, x1, y, height) {
  if (matches.list.length > 0 && kind === subject().kind && matches.has(i)) {
    context.fillStyle = colours.found;
    context.fillRect(x0, y - 2, Math.max(x1 - x0, 2), 3);
  }
  if (selection.current && selection.current.kind === kind && selection.current.index === i) {
    const [from, to] = clipped(x0, x1);
    context.strokeStyle = colours.focus;
    context.lineWidth = 2;
    context.strokeRect(from - 1, y - 1, Math.max(to - from, 2) + 2, height + 2);
  }
}

function paintLane(lanes, row, y, height, shades, one) {
  const strip = new SharedStrip(lanes, y, height, shades);
  lanes.sweep(row, (place, x0, x1) => one(lanes.items[place], x0, x1, y, height),
    (x0, x1, low, high) => strip.add(x0, x1, low, high));
  strip.flush();
}

/** Draws the selection even if it is too narrow to be drawn individually. */
function paintSelected(kind, lanes, row, y, height) {
  if (!selection.current || selection.current.kind !== kind) {
    return;
  }
  const place = lanes.placeIn(selection.current.index, row);
  if (place >= 0) {
    const x0 = view.x(lanes.starts[place]);
    paintMarks(kind, selection.current.index, x0, Math.max(view.x(lanes.ends[place]), x0 + 1), y, height);
  }
}

export {
  canvas, clipped, context, drawGrid, drawLabel, fill, FONT, forGrid, LETTER, paintLane, paintMarks, paintSelected,
  paintText, selection, Strip, timeline,
};
