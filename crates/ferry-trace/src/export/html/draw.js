// The timeline's frame: whatever tracks are in view, and in them whatever is; what costs is pixels, not events.

const canvas = document.getElementById('canvas');
const timeline = document.getElementById('timeline');
const context = canvas.getContext('2d');
const FONT = '10.5px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** About the width of a letter of it. */
const LETTER = 5.8;

let selected = null;
let pointer = null;
let drawing = false;

/** How long the last frames took to draw, in milliseconds. */
const pace = [];
const MOST_PACES = 240;

/** Draws once before the next picture, however often it is asked for. */
function redraw() {
  if (!drawing) {
    drawing = true;
    requestAnimationFrame(drawFrame);
  }
}

function drawFrame() {
  drawing = false;
  const since = performance.now();
  drawTimeline();
  drawAxis();
  drawOverview();
  pace.push(performance.now() - since);
  if (pace.length > MOST_PACES) {
    pace.shift();
  }
}

function drawTimeline() {
  const height = canvas.clientHeight;
  const top = timeline.scrollTop;
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, view.width, height);
  drawGrid(height);
  context.font = FONT;
  context.textBaseline = 'middle';
  context.lineJoin = 'round';
  for (const track of tracks) {
    const y = track.y - top;
    if (y < height && y + track.height > 0) {
      PAINT[track.kind](track, y, height);
    }
  }
  drawFlow(top);
  if (pointer) {
    context.fillStyle = colours.faint;
    context.fillRect(Math.round(pointer.x), 0, 1, height);
  }
  if (tracks.length === 0) {
    context.fillStyle = colours.faint;
    context.fillText('Nothing was recorded.', 12, 20);
  }
}

/** From the batch to the operation that is selected, and from there to when its answer was taken. */
function drawFlow(top) {
  if (selected?.kind !== 'operation') {
    return;
  }
  const { submission, submitted } = trace.operations;
  const from = placeOf({ kind: 'submission', index: submission[selected.index] });
  const to = placeOf(selected);
  if (submission[selected.index] < 0 || !from || !to) {
    return;
  }
  const x0 = view.x(trace.submissions.began[submission[selected.index]]);
  const x1 = view.x(submitted[selected.index]);
  const y0 = from.y + from.height - top;
  const y1 = to.y + 4 - top;
  context.strokeStyle = colours.focus;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + 18, (y0 + y1) / 2, x1 - 18, (y0 + y1) / 2, x1, y1);
  context.stroke();
}

/** Times at which to draw lines: 1, 2 or 5 of some power of ten apart, some 110 pixels. */
function gridStep() {
  const wanted = view.span(110);
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

/** Text that is cut where its place ends; nothing where there is hardly any. */
function label(text, x, width, y, how = 'fillText') {
  const letters = Math.floor((width - 4) / LETTER);
  if (letters >= 3 && text) {
    context[how](text.length > letters ? `${text.slice(0, letters - 1)}…` : text, x + 2, y);
  }
}

/** Joins neighbours of one colour, as most are where there is much. */
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

/** The same for pixels that several classes share: each as high as the part of the time that it takes. */
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

/** The part of a span that is in view, with a margin so that its ends are not seen where it goes on. */
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

/** One operation: waiting to be begun, running or at the device, and done but not yet taken. */
function paintOperation(i, x0, x1, y, height) {
  const { route, began, submitted, started, completed, until } = trace.operations;
  const shades = colours.routeShades[route[i]];
  const isRing = route[i] === RING;
  const start = firstKnown(isRing ? submitted[i] : started[i], submitted[i], began[i]);
  const end = firstKnown(completed[i], until[i], until[i]);
  if (x1 - x0 < 5) {
    context.fillStyle = isRing ? shades.light : shades.solid;
    context.fillRect(x0, y, x1 - x0, height);
  } else {
    fill(shades.queue, began[i], until[i], y, height);
    fill(isRing ? shades.device : shades.solid, start, end, y, height);
    // Between two operations there is a seam.
    context.fillStyle = shades.solid;
    context.fillRect(x0, y, 1, height);
  }
  if (errnoOf(trace.operations.result[i]) >= 0) {
    context.fillStyle = colours.ink;
    context.fillRect(x0, y + height - 2, Math.max(x1 - x0, 2), 2);
  }
  paintMarks('operation', i, x0, x1, y, height);
  const from = Math.max(x0, 0);
  const to = Math.min(x1, view.width);
  if (to - from > 26) {
    const text = operationTitle(i);
    const width = Math.min(text.length * LETTER, to - from - 8);
    const isSolid = !isRing && view.x(start) <= from + 3 && view.x(end) >= from + width;
    paintText(text, from, to, y + height / 2, isSolid ? shades.ink : null);
  }
}

/** Text upon a bar; where that is not of one colour, with a rim of paper. */
function paintText(text, from, to, y, ink) {
  if (!ink) {
    context.strokeStyle = colours.paper;
    context.lineWidth = 2.5;
    label(text, from, to - from, y, 'strokeText');
  }
  context.fillStyle = ink ?? colours.ink;
  label(text, from, to - from, y);
}

function firstKnown(a, b, c) {
  return !Number.isNaN(a) ? a : !Number.isNaN(b) ? b : c;
}

/** What was found has a line above it, what is selected a frame. */
function paintMarks(kind, i, x0, x1, y, height) {
  if (matches.list.length > 0 && kind === subject().kind && matches.has(i)) {
    context.fillStyle = colours.found;
    context.fillRect(x0, y - 2, Math.max(x1 - x0, 2), 3);
  }
  if (selected && selected.kind === kind && selected.index === i) {
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

/** What is selected is seen even where it is narrower than what is told apart. */
function paintSelected(kind, lanes, row, y, height) {
  if (!selected || selected.kind !== kind) {
    return;
  }
  const place = lanes.placeOf(selected.index, row);
  if (place >= 0) {
    const x0 = view.x(lanes.starts[place]);
    paintMarks(kind, selected.index, x0, Math.max(view.x(lanes.ends[place]), x0 + 1), y, height);
  }
}

function paintRows(track, y, height) {
  const first = layout.first[track.thread];
  const from = Math.max(0, Math.floor(-y / ROW));
  const to = Math.min(track.rows, Math.ceil((height - y) / ROW));
  for (let row = Math.max(0, from - MOST_AT_ONCE); row < to; row++) {
    paintFibers(first + row, y + row * ROW);
  }
  for (let row = from; row < to; row++) {
    const at = y + row * ROW;
    paintScopes(first + row, at, y + track.height);
    paintLane(layout.operations, first + row, at + 4, ROW - 5, colours.routeShades, paintOperation);
    paintSelected('operation', layout.operations, first + row, at + 4, ROW - 5);
  }
}

/** A fiber is a line above its operations, and its name where it has not asked for anything. */
function paintFibers(row, y) {
  const strip = new Strip(y + 1, 2);
  layout.fibers.sweep(row, (place, x0, x1) => {
    const i = layout.fibers.items[place];
    const [from, to] = clipped(x0, x1);
    const height = layout.fiberOwn[i] * ROW - 2;
    context.fillStyle = colours.raised;
    context.fillRect(from, y + 1, to - from, height);
    context.fillStyle = colours.fiber;
    context.fillRect(from, y + 1, to - from - 0.5, 2);
    if (to - from > 60) {
      labelFiber(i, row, Math.max(from, 0), Math.min(to, view.width), y + ROW / 2 + 2);
    }
    paintMarks('fiber', i, x0, x1, y + 1, height);
  }, (x0, x1) => strip.add(x0, x1, colours.fiber));
  strip.flush();
}

/** A fiber's name goes where none of its operations is, if there is room among the first few in view. */
function labelFiber(fiber, row, from, to, y) {
  const { starts, ends, first } = layout.operations;
  const title = fiberTitle(fiber);
  const last = first[row + 1];
  let place = lowerBound(ends, view.time(from), first[row], last);
  for (let gaps = 0, x = from; gaps < 4 && x < to; gaps++, place++) {
    const until = place < last ? Math.min(view.x(starts[place]), to) : to;
    if (until - x > Math.min(90, title.length * LETTER + 6)) {
      context.fillStyle = colours.faint;
      label(title, x, until - x, y);
      return;
    }
    x = place < last ? view.x(ends[place]) : to;
  }
}

/** A scope is a bracket around the rows below it; folded, what is in it is one band. */
function paintScopes(row, y, bottom) {
  const strip = new Strip(y + ROW - 5, 2);
  layout.scopes.sweep(row, (place, x0, x1) => {
    const i = layout.scopes.items[place];
    const [from, to] = clipped(x0, x1);
    const folded = folds.scopes.has(i);
    if (folded) {
      paintStack(scopeFlight(i), y + 1, ROW - 2, Math.max(from, 0), Math.min(to, view.width));
    }
    context.fillStyle = colours.scope;
    context.fillRect(from, y + ROW - 3, to - from, 2);
    const height = folded ? ROW : Math.min(layout.scopeHeight[i] * ROW, bottom - y);
    context.fillRect(from, y + ROW - 3, 1, height - ROW + 3);
    context.fillRect(to - 1, y + ROW - 3, 1, height - ROW + 3);
    context.fillStyle = colours.ink;
    label(`${folded ? '▸' : '▾'} ${scopeTitle(i)}`, Math.max(from, 0), to - Math.max(from, 0), y + ROW / 2 - 1);
    paintMarks('scope', i, x0, x1, y + 1, ROW - 2);
  }, (x0, x1) => strip.add(x0, x1, colours.scope));
  strip.flush();
}

function paintRequests(track, y, height) {
  const first = requestRows.first[track.thread];
  const from = Math.max(0, Math.floor(-y / ROW));
  const to = Math.min(track.rows, Math.ceil((height - y) / ROW));
  for (let row = from; row < to; row++) {
    const at = y + row * ROW + 1;
    paintLane(requestRows.lanes, first + row, at, ROW - 3, colours.requestShades, paintRequest);
    paintSelected('request', requestRows.lanes, first + row, at, ROW - 3);
  }
}

/** A request is at the device, or with a worker of the kernel from when it was handed over. */
function paintRequest(i, x0, x1, y, height) {
  const { began, handedOver, until } = trace.requests;
  const [ring, worker] = colours.requestShades;
  const isHandedOver = !Number.isNaN(handedOver[i]);
  if (x1 - x0 < 5) {
    context.fillStyle = (isHandedOver ? worker : ring).light;
    context.fillRect(x0, y, x1 - x0, height);
  } else {
    fill(ring.device, began[i], isHandedOver ? handedOver[i] : until[i], y, height);
    if (isHandedOver) {
      fill(worker.solid, handedOver[i], until[i], y, height);
    }
    context.fillStyle = ring.solid;
    context.fillRect(x0, y, 1, height);
  }
  paintMarks('request', i, x0, x1, y, height);
  const [from, to] = clipped(x0, x1);
  if (to - from > 26) {
    paintText(requestTitle(i), Math.max(from, 0), to, y + height / 2, null);
  }
}

/** What a thread of the pool ran, from begin to end. */
function paintPool(track, y) {
  paintLane(pool.lanes, track.thread, y + 1, track.height - 2, colours.routeShades, (i, x0, x1, at, height) => {
    const [from, to] = clipped(x0, x1);
    const shades = colours.routeShades[trace.operations.route[i]];
    context.fillStyle = shades.solid;
    context.fillRect(from, at, Math.max(to - from - 0.5, 1), height);
    paintMarks('operation', i, x0, x1, at, height);
    if (to - from > 26) {
      paintText(operationTitle(i), Math.max(from, 0), to, at + height / 2, shades.ink);
    }
  });
}
