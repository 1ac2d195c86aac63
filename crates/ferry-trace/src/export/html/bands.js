// Tracks without rows: operations in flight, states, marks, causes, counters.

import { HAND_OVER, POOL, TASK_ADD, WAKE } from './words.js';
import { boundFrom, lowerBound } from './steps.js';
import { view } from './view.js';
import { picture, sources, threadBegins, threadEnds } from './tracks.js';
import { colours, mixed } from './colours.js';
import { clipped, context, paintMarks, selection, Strip } from './draw.js';

/** Width of a column in pixels. */
const COLUMN = 2;

/** Draws the mean number of operations in flight in each column, stacked by route. Returns the maximum. */
function paintStack(routes, y, height, from = 0, to = view.width, most = 0) {
  const used = routes.map((steps, route) => ({ steps: steps.rewind(), route })).filter(({ steps }) => steps.times.length > 0);
  const columns = Math.max(1, Math.ceil((to - from) / COLUMN));
  const totals = new Float64Array(columns);
  const areas = used.map(({ steps, route }) => {
    let before = steps.upTo(view.time(from));
    const tops = new Float64Array(columns);
    const length = view.nanos(COLUMN);
    for (let column = 0; column < columns; column++) {
      const until = steps.upTo(view.time(from + (column + 1) * COLUMN));
      totals[column] += Math.max(0, (until - before) / length);
      tops[column] = totals[column];
      before = until;
    }
    return { tops, route };
  });
  const highest = Math.max(most, totals.reduce((a, b) => Math.max(a, b), 0));
  if (highest < 1e-6) {
    return 0;
  }
  for (const { tops, route } of areas.reverse()) {
    context.fillStyle = colours.routes[route];
    area(tops, from, y, height, highest);
  }
  return highest;
}

function area(tops, from, y, height, highest) {
  context.beginPath();
  context.moveTo(from, y + height);
  tops.forEach((top, column) => {
    const at = y + height - top / highest * height;
    context.lineTo(from + column * COLUMN, at);
    context.lineTo(from + (column + 1) * COLUMN, at);
  });
  context.lineTo(from + tops.length * COLUMN, y + height);
  context.fill();
}

/** Height of the line of text above a stack. */
const TITLE = 13;

function paintFlight(track, y) {
  context.fillStyle = colours.rule;
  context.fillRect(0, y + track.height, view.width, 1);
  const most = paintStack(sources[track.thread].flight, y + TITLE, track.height - TITLE);
  if (most > 0) {
    context.fillStyle = colours.faint;
    context.fillText(`in flight, up to ${most < 10 ? most.toFixed(1) : Math.round(most)}`, 3, y + 6);
  }
}

function paintState(track, y) {
  const [atWork, idle, entered] = colours.states;
  context.fillStyle = atWork;
  context.fillRect(0, y + 1, view.width, track.height - 2);
  const band = (lanes, colour, kind, at, height) => {
    const strip = new Strip(at, height);
    const tint = [0.25, 0.5, 0.75, 1].map((part) => mixed(colour, atWork, part));
    lanes.sweep(track.thread, (place, x0, x1) => {
      const [from, to] = clipped(x0, x1);
      context.fillStyle = colour;
      context.fillRect(from, at, to - from, height);
      paintMarks(kind, lanes.items[place], x0, x1, at, height);
    }, (x0, x1, low, high) => strip.add(x0, x1, tint[Math.min(3, Math.floor(lanes.share(low, high, 0) * 4))]));
    strip.flush();
  };
  band(picture.rests, idle, 'rest', y + 1, track.height - 6);
  band(picture.enters, entered, 'enter', y + track.height - 5, 4);
}

/** Draws each batch as a bar with the height of its requests and the colour of its reason. */
function paintSubmissions(track, y) {
  const { submissions } = sources[track.thread];
  const { highest } = track;
  context.fillStyle = colours.grid;
  context.fillRect(0, y + track.height - 1, view.width, 1);
  forColumns(submissions.times, (x, low, high) => {
    const size = submissions.most.in(low, high);
    const height = Math.max(2, size / highest * (track.height - 2));
    context.fillStyle = colours.whys[mostCommon(submissions, low, high)];
    context.fillRect(x, y + track.height - height, COLUMN, height);
    if (selection.current?.kind === 'submission' && isWithin(submissions.items, low, high, selection.current.index)) {
      paintMarks('submission', selection.current.index, x, x + COLUMN, y + 1, track.height - 2);
    }
  });
}

/** Calls `one` for each column that contains anything. */
function forColumns(times, one) {
  let low = lowerBound(times, view.begin - view.nanos(COLUMN));
  while (low < times.length && times[low] < view.end) {
    const x = Math.floor(view.x(times[low]) / COLUMN) * COLUMN;
    const high = Math.max(low + 1, boundFrom(times, view.time(x + COLUMN), low));
    one(x, low, high);
    low = high;
  }
}

/** Items ascend because all tables are sorted by time. */
function isWithin(items, low, high, index) {
  const place = lowerBound(items, index, low, high);
  return place < high && items[place] === index;
}

function mostCommon(events, low, high) {
  let best = 0;
  for (let c = 1; c < events.classes; c++) {
    if (events.count(low, high, c) > events.count(low, high, best)) {
      best = c;
    }
  }
  return best;
}

/** Divides each column by the causes of task work. */
function paintCauses(track, y) {
  const { causes } = sources[track.thread];
  const height = track.height - 2;
  context.fillStyle = colours.grid;
  context.fillRect(0, y + 1, view.width, height);
  forColumns(causes.times, (x, low, high) => {
    let at = y + 1;
    for (let cause = 0; cause < causes.classes; cause++) {
      const part = causes.count(low, high, cause) / (high - low) * height;
      if (part > 0) {
        context.fillStyle = colours.causes[cause];
        context.fillRect(x, at, COLUMN, part);
        at += part;
      }
    }
    paintEventMark(causes, low, high, x, y + 1, height);
  });
}

function paintEventMark(events, low, high, x, y, height) {
  if (selection.current?.kind === 'event' && isWithin(events.items, low, high, selection.current.index)) {
    paintMarks('event', selection.current.index, x, x + COLUMN, y, height);
  }
}

/** Draws sleep as the kernel saw it, with marks for wake-ups, added task work, and hand-overs. */
function paintKernel(track, y) {
  const { kernel } = sources[track.thread];
  const height = track.height - 2;
  const [awake, asleep] = colours.states;
  context.fillStyle = awake;
  const from = Math.max(view.x(threadBegins[track.thread]), 0);
  context.fillRect(from, y + 1, Math.max(Math.min(view.x(threadEnds[track.thread]), view.width) - from, 0), height);
  const strip = new Strip(y + 1, height);
  picture.sleeps.sweep(track.thread, (place, x0, x1) => {
    const [from, to] = clipped(x0, x1);
    context.fillStyle = asleep;
    context.fillRect(from, y + 1, to - from, height);
  }, (x0, x1, low, high) => strip.add(x0, x1, mixed(asleep, awake, Math.ceil(picture.sleeps.share(low, high, 0) * 4) / 4)));
  strip.flush();
  const marks = [[TASK_ADD, colours.faint, 0.4], [WAKE, colours.routes[POOL], 0.7], [HAND_OVER, colours.causes[3], 1]];
  forColumns(kernel.times, (x, low, high) => {
    for (const [did, colour, part] of marks) {
      if (kernel.count(low, high, did) > 0) {
        context.fillStyle = colour;
        context.fillRect(x, y + 1 + height * (1 - part), COLUMN, height * part);
      }
    }
    paintEventMark(kernel, low, high, x, y + 1, height);
  });
}

/** Draws a counter as steps with the maximum in each column. */
function paintGauge(track, y) {
  const { steps, most, gauge } = track.source;
  const { highest } = track;
  const columns = Math.ceil(view.width / COLUMN);
  const tops = new Float64Array(columns);
  let low = lowerBound(steps.times, view.begin);
  for (let column = 0; column < columns; column++) {
    const high = boundFrom(steps.times, view.time((column + 1) * COLUMN), low);
    tops[column] = Math.max(low > 0 ? steps.levels[low - 1] : 0, most.in(low, high));
    low = high;
  }
  context.fillStyle = mixed(colours.gauges[gauge], colours.paper, 0.35);
  area(tops, 0, y + 2, track.height - 3, highest);
  context.strokeStyle = colours.gauges[gauge];
  context.lineWidth = 1;
  context.stroke();
}

export { COLUMN, paintCauses, paintFlight, paintGauge, paintKernel, paintStack, paintState, paintSubmissions };
