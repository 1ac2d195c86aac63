// The thing under the pointer, and the tip beside it.

import { head, trace } from './data.js';
import { element, named } from './dom.js';
import {
  deviceTitle, DIDS, fiberTitle, GAUGES, many, moment, operationPlace, operationTitle, requestTitle, resultText, scopeTitle, span, TASK_WORK,
  threadName, WHYS,
} from './words.js';
import { lowerBound } from './steps.js';
import { view } from './view.js';
import { NARROW } from './lanes.js';
import { tree } from './layout.js';
import { picture, ROW, sources } from './tracks.js';
import { spanOf } from './places.js';
import { timesOf } from './story.js';

/** Maximum distance between a thing and the pointer, in pixels. */
const SLACK = 3;

function trackAt(y) {
  return picture.tracks.find((track) => y >= track.y && y < track.y + track.height);
}

/** Returns the thing at a position of the timeline, or lines of text about the position. */
function hit(x, y) {
  const track = trackAt(y);
  return track ? HIT[track.kind](track, x, y - track.y) : null;
}

function laneHit(kind, lanes, row, x) {
  const place = lanes.at(row, view.time(x), view.nanos(SLACK));
  if (place < 0) {
    return null;
  }
  const width = view.x(lanes.ends[place]) - view.x(lanes.starts[place]);
  const among = width < NARROW ? lanes.within(row, view.time(x - 1), view.time(x + 1)) : 1;
  return { kind, index: lanes.items[place], among };
}

function hitRows(track, x, y) {
  const row = picture.layout.first[track.thread] + Math.floor(y / ROW);
  const within = y % ROW;
  const scope = laneHit('scope', picture.layout.scopes, row, x);
  if (scope) {
    return scope;
  }
  const operation = within >= 3 ? laneHit('operation', picture.layout.operations, row, x) : null;
  return operation ?? laneHit('fiber', picture.layout.fibers, row, x);
}

function eventHit(kind, events, x) {
  const low = lowerBound(events.times, view.time(x - SLACK));
  const high = lowerBound(events.times, view.time(x + SLACK), low);
  if (high === low) {
    return null;
  }
  const middle = Math.min(lowerBound(events.times, view.time(x), low, high), high - 1);
  return { kind, index: events.items[middle], among: high - low };
}

function hitFlight(track, x) {
  const parts = sources[track.thread].flight
    .map((steps, route) => [head.routes[route], steps.levelAt(view.time(x))])
    .filter(([, level]) => level > 0);
  const isDevice = head.threads[track.thread][1] === 'device';
  const levels = parts.map(([name, level]) => `${isDevice ? 'requests' : name} ${level}`).join(', ');
  return { lines: [threadName(track.thread), levels || 'nothing in flight'] };
}

function hitGauge(track, x) {
  const level = track.source.steps.levelAt(view.time(x));
  return { lines: [`${GAUGES[track.source.gauge]}: ${level.toLocaleString('en')}`, threadName(track.thread)] };
}

const HIT = {
  flight: hitFlight,
  state: (track, x, y) => (y < track.height - 5 ? laneHit('rest', picture.rests, track.thread, x) : null)
    ?? laneHit('enter', picture.enters, track.thread, x) ?? { lines: ['awake'] },
  submissions: (track, x) => eventHit('submission', sources[track.thread].submissions, x),
  causes: (track, x) => eventHit('event', sources[track.thread].causes, x),
  kernel: (track, x) => eventHit('event', sources[track.thread].kernel, x),
  gauge: hitGauge,
  pool: (track, x) => laneHit('operation', picture.pool.lanes, track.thread, x),
  rows: hitRows,
  requests: (track, x, y) => laneHit('request', picture.requests.lanes, picture.requests.first[track.thread] + Math.floor(y / ROW), x),
  devices: (track, x, y) => laneHit('device', picture.devices.lanes, picture.devices.first[track.thread] + Math.floor(y / ROW), x),
};

/** Lines of text about a thing or position. */
function tipLines(found) {
  if (found.lines) {
    return found.lines;
  }
  const [begin, end] = spanOf(found);
  const lines = TIP[found.kind](found.index);
  lines.push(end > begin ? `${span(end - begin)} from ${moment(begin, view.nanos(1))}` : `at ${moment(begin, view.nanos(1))}`);
  if (found.among > 1) {
    lines.push(`one of ${found.among.toLocaleString('en')} here; zoom in to separate them`);
  }
  return lines;
}

const TIP = {
  operation: (i) => {
    const o = trace.operations;
    return [operationTitle(i), operationPlace(i), `${head.routes[o.route[i]]}: ${head.reasons[o.reason[i]]}`, ...timesOf(i).slice(0, -1).map((pair) => pair.join(' ')),
      resultText(o.result[i], o.size[i] > 0)].filter(Boolean);
  },
  fiber: (i) => [fiberTitle(i), many(tree.operationsOf.first[i + 1] - tree.operationsOf.first[i], 'operation')],
  scope: (i) => [scopeTitle(i), many(tree.fibersOf.first[i + 1] - tree.fibersOf.first[i], 'fiber'), 'double-click to fold'],
  submission: (i) => [`batch of ${trace.submissions.requests[i]}`, WHYS[trace.submissions.why[i]], `${trace.submissions.inFlight[i]} in flight`],
  request: (i) => {
    const { handedOver, result } = trace.requests;
    const handed = Number.isNaN(handedOver[i]) ? '' : 'handed to a worker of the kernel';
    return [requestTitle(i), handed, resultText(result[i], false)].filter(Boolean);
  },
  device: (i) => [deviceTitle(i), threadName(trace.devices.thread[i]), Number.isNaN(trace.devices.completed[i]) ? 'completion not recorded' : '',
    trace.devices.failed[i] ? 'it failed' : ''].filter(Boolean),
  event: (i) => {
    const k = trace.kernel;
    return k.did[i] === TASK_WORK ? [`task work: ${head.causes[k.first[i]]}`, many(k.second[i], 'unit')] : [DIDS[k.did[i]]];
  },
  rest: () => [head.idle],
  enter: (i) => ['in io_uring_enter', `${trace.enters.submitted[i]} submitted, ${trace.enters.taken[i]} completions in the queue at its end`],
};

const tip = document.getElementById('tip');

/** Shows the tip beside a position, within the window. */
function showTip(found, clientX, clientY) {
  tip.hidden = !found;
  if (!found) {
    return;
  }
  tip.replaceChildren(...tipLines(found).map((line) => element('div', named(line))));
  const { width, height } = tip.getBoundingClientRect();
  const x = clientX + 14 + width > innerWidth ? clientX - 14 - width : clientX + 14;
  const y = clientY + 18 + height > innerHeight ? clientY - 12 - height : clientY + 18;
  tip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}

export { hit, showTip, tipLines };
