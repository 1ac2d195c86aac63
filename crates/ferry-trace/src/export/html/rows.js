// Tracks with rows: scopes, fibers, operations, requests of rings and devices, and what pool threads ran.

import { firstKnown, trace } from './data.js';
import { DEVICE_READ, deviceTitle, errnoOf, fiberTitle, operationTitle, requestTitle, RING, scopeTitle } from './words.js';
import { lowerBound } from './steps.js';
import { view } from './view.js';
import { MOST_AT_ONCE } from './layout.js';
import { folds, picture, ROW, scopeFlight } from './tracks.js';
import { colours } from './colours.js';
import {
  clipped, context, drawLabel, fill, LETTER, paintLane, paintMarks, paintSelected, paintText, Strip,
} from './draw.js';
import { paintStack } from './bands.js';

/** Draws an operation: waiting to begin, running or at the device, and completed but not yet taken. */
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
    // A seam between two operations.
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

function paintRows(track, y, height) {
  const first = picture.layout.first[track.thread];
  const from = Math.max(0, Math.floor(-y / ROW));
  const to = Math.min(track.rows, Math.ceil((height - y) / ROW));
  for (let row = Math.max(0, from - MOST_AT_ONCE); row < to; row++) {
    paintFibers(first + row, y + row * ROW);
  }
  for (let row = from; row < to; row++) {
    const at = y + row * ROW;
    paintScopes(first + row, at, y + track.height);
    paintLane(picture.layout.operations, first + row, at + 4, ROW - 5, colours.routeShades, paintOperation);
    paintSelected('operation', picture.layout.operations, first + row, at + 4, ROW - 5);
  }
}

/** Draws a fiber as a line above its operations. */
function paintFibers(row, y) {
  const strip = new Strip(y + 1, 2);
  picture.layout.fibers.sweep(row, (place, x0, x1) => {
    const i = picture.layout.fibers.items[place];
    const [from, to] = clipped(x0, x1);
    const height = picture.layout.fiberOwn[i] * ROW - 2;
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

/** Puts a fiber's name in one of the first gaps between its visible operations. */
function labelFiber(fiber, row, from, to, y) {
  const { starts, ends, first } = picture.layout.operations;
  const title = fiberTitle(fiber);
  const last = first[row + 1];
  let place = lowerBound(ends, view.time(from), first[row], last);
  for (let gaps = 0, x = from; gaps < 4 && x < to; gaps++, place++) {
    const until = place < last ? Math.min(view.x(starts[place]), to) : to;
    if (until - x > Math.min(90, title.length * LETTER + 6)) {
      context.fillStyle = colours.faint;
      drawLabel(title, x, until - x, y);
      return;
    }
    x = place < last ? view.x(ends[place]) : to;
  }
}

/** Draws a scope as a bracket around the rows beneath it; a folded one as a band. */
function paintScopes(row, y, bottom) {
  const strip = new Strip(y + ROW - 5, 2);
  picture.layout.scopes.sweep(row, (place, x0, x1) => {
    const i = picture.layout.scopes.items[place];
    const [from, to] = clipped(x0, x1);
    const folded = folds.scopes.has(i);
    if (folded) {
      paintStack(scopeFlight(i), y + 1, ROW - 2, Math.max(from, 0), Math.min(to, view.width));
    }
    context.fillStyle = colours.scope;
    context.fillRect(from, y + ROW - 3, to - from, 2);
    const height = folded ? ROW : Math.min(picture.layout.scopeHeight[i] * ROW, bottom - y);
    context.fillRect(from, y + ROW - 3, 1, height - ROW + 3);
    context.fillRect(to - 1, y + ROW - 3, 1, height - ROW + 3);
    context.fillStyle = colours.ink;
    drawLabel(`${folded ? '▸' : '▾'} ${scopeTitle(i)}`, Math.max(from, 0), to - Math.max(from, 0), y + ROW / 2 - 1);
    paintMarks('scope', i, x0, x1, y + 1, ROW - 2);
  }, (x0, x1) => strip.add(x0, x1, colours.scope));
  strip.flush();
}

function paintRequests(track, y, height) {
  paintSpans(picture.requests, 'request', paintRequest, track, y, height);
}

function paintDevices(track, y, height) {
  paintSpans(picture.devices, 'device', paintDevice, track, y, height);
}

/** Draws the visible rows of requests. */
function paintSpans(placed, kind, one, track, y, height) {
  const first = placed.first[track.thread];
  const from = Math.max(0, Math.floor(-y / ROW));
  const to = Math.min(track.rows, Math.ceil((height - y) / ROW));
  for (let row = from; row < to; row++) {
    const at = y + row * ROW + 1;
    paintLane(placed.lanes, first + row, at, ROW - 3, colours.requestShades, one);
    paintSelected(kind, placed.lanes, first + row, at, ROW - 3);
  }
}

/** Draws a request at the device, or from its hand-over on with a worker of the kernel. */
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

/** Draws a request of a device. */
function paintDevice(i, x0, x1, y, height) {
  const shades = colours.requestShades[trace.devices.kind[i] === DEVICE_READ ? 0 : 1];
  const [from, to] = clipped(x0, x1);
  context.fillStyle = shades.solid;
  context.fillRect(from, y, Math.max(to - from - 0.5, 1), height);
  paintMarks('device', i, x0, x1, y, height);
  if (to - from > 26) {
    paintText(deviceTitle(i), Math.max(from, 0), to, y + height / 2, shades.ink);
  }
}

/** Draws the operations of a pool thread. */
function paintPool(track, y) {
  paintLane(picture.pool.lanes, track.thread, y + 1, track.height - 2, colours.routeShades, (i, x0, x1, at, height) => {
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

export { paintDevices, paintPool, paintRequests, paintRows };
