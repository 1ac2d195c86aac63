// The whole recording in one strip, and the axis below it.

import { trace } from './data.js';
import { moment, span } from './words.js';
import { grouped, Steps } from './steps.js';
import { glide, view } from './view.js';
import { pick } from './lanes.js';
import { matches, subject } from './search.js';
import { colours } from './colours.js';
import { FONT, forGrid } from './draw.js';
import { COLUMN } from './bands.js';

const overview = document.getElementById('overview');
const overviewContext = overview.getContext('2d');
const axis = document.getElementById('axis');
const axisContext = axis.getContext('2d');

/** Operations in flight of all threads by route; for another program, its requests. */
let everything = [];

function addEverything() {
  const { operations, requests } = trace;
  if (operations.count === 0) {
    const none = new Steps(new Float64Array(0), new Float64Array(0));
    everything = [none, Steps.ofIntervals(requests.began.slice(), requests.until.slice()), none, none];
    return;
  }
  const groups = grouped(operations.route, 4);
  everything = [0, 1, 2, 3].map((route) => {
    const items = groups.items.subarray(groups.first[route], groups.first[route + 1]);
    return Steps.ofIntervals(pick(operations.began, items), pick(operations.until, items));
  });
}

/** The strip without the window, drawn again only after a change of size or colours. */
let overviewPicture = null;

/** Draws the strip anew in the next frame. */
function forgetOverview() {
  overviewPicture = null;
}

function drawOverviewPicture() {
  overviewPicture = document.createElement('canvas');
  overviewPicture.width = overview.width;
  overviewPicture.height = overview.height;
  const on = overviewPicture.getContext('2d');
  on.setTransform(overviewContext.getTransform());
  const { clientWidth: width, clientHeight: height } = overview;
  const highest = new Float64Array(Math.max(1, Math.ceil(width / COLUMN)));
  const columns = highest.length;
  on.fillStyle = colours.raised;
  on.fillRect(0, 0, width, height);
  const areas = everything.map((steps) => {
    steps.rewind();
    const tops = new Float64Array(columns);
    for (let column = 0, before = 0; column < columns; column++) {
      const until = steps.upTo((column + 1) * trace.end / columns);
      highest[column] += until - before;
      tops[column] = highest[column];
      before = until;
    }
    return tops;
  });
  const most = highest.reduce((a, b) => Math.max(a, b), 0) || 1;
  for (let route = 3; route >= 0; route--) {
    on.fillStyle = colours.routes[route];
    for (let column = 0; column < columns; column++) {
      const top = areas[route][column] / most * (height - 4);
      on.fillRect(column * width / columns, height - top, width / columns + 0.5, top);
    }
  }
}

function drawOverview() {
  const { clientWidth: width, clientHeight: height } = overview;
  if (!overviewPicture) {
    drawOverviewPicture();
  }
  overviewContext.drawImage(overviewPicture, 0, 0, width, height);
  const x0 = view.begin / trace.end * width;
  const x1 = Math.max(view.end / trace.end * width, x0 + 2);
  overviewContext.globalAlpha = 0.72;
  overviewContext.fillStyle = colours.paper;
  overviewContext.fillRect(0, 0, x0, height);
  overviewContext.fillRect(x1, 0, width - x1, height);
  overviewContext.globalAlpha = 1;
  overviewContext.strokeStyle = colours.focus;
  overviewContext.lineWidth = 1.5;
  overviewContext.strokeRect(x0 + 0.75, 0.75, Math.max(x1 - x0 - 1.5, 1), height - 1.5);
  if (matches.list.length > 0) {
    drawFound(width, height);
  }
}

/** Marks the matches, at most once a pixel. */
function drawFound(width, height) {
  const began = subject().table.began;
  overviewContext.fillStyle = colours.found;
  let last = -1;
  for (let i = 0; i < matches.list.length;) {
    const x = Math.floor(began[matches.list[i]] / trace.end * width);
    if (x > last) {
      overviewContext.fillRect(x, height - 5, 1, 5);
      last = x;
    }
    i = matches.after((x + 1) / width * trace.end, i + 1);
  }
}

function drawAxis() {
  const height = axis.clientHeight;
  axisContext.fillStyle = colours.paper;
  axisContext.fillRect(0, 0, view.width, height);
  axisContext.font = FONT;
  axisContext.textBaseline = 'middle';
  let free = 0;
  forGrid((time, x, step) => {
    axisContext.fillStyle = colours.rule;
    axisContext.fillRect(x, height - 6, 1, 6);
    axisContext.fillStyle = colours.faint;
    const text = moment(time, step);
    const { width } = axisContext.measureText(text);
    // At the right edge the text is to the left of its line, if there is room.
    const at = x + 4 + width <= view.width ? x + 4 : x - 4 - width;
    if (at >= free) {
      axisContext.fillText(text, at, height / 2);
      free = at + width + 6;
    }
  });
  document.getElementById('range').textContent = span(view.end - view.begin);
}

/** Dragging over the strip selects a part, dragging the selected part moves it, and a click goes there. */
function brush() {
  let from = null;
  let moving = 0;
  const timeAt = (event) => {
    const box = overview.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * trace.end;
  };
  overview.addEventListener('pointerdown', (event) => {
    overview.setPointerCapture(event.pointerId);
    from = timeAt(event);
    const inside = from >= view.begin && from <= view.end && view.end - view.begin < trace.end * 0.98;
    moving = inside && !event.shiftKey ? view.begin - from : NaN;
  });
  overview.addEventListener('pointermove', (event) => {
    if (from === null) {
      return;
    }
    const time = timeAt(event);
    if (!Number.isNaN(moving)) {
      view.show(time + moving, time + moving + view.end - view.begin);
    } else if (Math.abs(time - from) / trace.end * overview.clientWidth > 3) {
      view.show(Math.min(from, time), Math.max(from, time));
    }
  });
  overview.addEventListener('pointerup', (event) => {
    const time = timeAt(event);
    const half = (view.end - view.begin) / 2;
    if (from !== null && time === from && half < trace.end * 0.49) {
      glide(time - half, time + half);
    }
    from = null;
  });
  overview.addEventListener('pointercancel', () => {
    from = null;
  });
}

export { addEverything, axis, axisContext, brush, drawAxis, drawOverview, forgetOverview, overview, overviewContext };
