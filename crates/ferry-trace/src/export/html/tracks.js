// The tracks of each thread, from top to bottom, and the data that each is drawn from.

import { head, trace } from './data.js';
import { BEGAN, DIDS, ENDED, GAUGES, RING, roughly, RUN, SLEEP, TASK_WORK, threadName, WAKE } from './words.js';
import { Events, grouped, Most, Steps } from './steps.js';
import { Lanes, pick } from './lanes.js';
import { growTree, Layout, layOutDevices, layOutPool, layOutRequests, tree } from './layout.js';

const ROW = 16;
const HEIGHTS = { flight: 48, state: 12, submissions: 26, causes: 16, kernel: 14, gauge: 28, pool: 16 };
const GAP = 3;
const GROUP_GAP = 12;

/** Folded threads and scopes. */
const folds = { threads: new Set(), scopes: new Set() };

/** Lanes and tracks that the timeline is drawn from; filled by `prepareTracks` and `placeTracks`. */
const picture = {
  /** Rows of scopes, fibers and operations. */
  layout: null,
  /** Rows of requests. */
  requests: null,
  /** Rows of devices' requests. */
  devices: null,
  /** Operations of pool threads. */
  pool: null,
  /** Times when workers were idle, threads were in io_uring_enter, and threads slept according to the kernel. */
  rests: null,
  enters: null,
  sleeps: null,
  /** Visible tracks from top to bottom, and their height in pixels. */
  tracks: [],
  height: 0,
};
/** Beginning and end of each thread, as far as the kernel recorded them. */
const threadBegins = new Float64Array(head.threads.length);
const threadEnds = new Float64Array(head.threads.length).fill(Infinity);
/** Data of each thread's other tracks. */
const sources = head.threads.map(() => ({ flight: null, causes: null, kernel: null, submissions: null, gauges: [] }));

function threadsCount() {
  return head.threads.length;
}

function addFlights() {
  const { operations } = trace;
  const keys = new Int32Array(operations.count);
  for (let i = 0; i < keys.length; i++) {
    keys[i] = operations.thread[i] < threadsCount() ? operations.thread[i] * 4 + operations.route[i] : -1;
  }
  const groups = grouped(keys, 4 * threadsCount());
  sources.forEach((source, thread) => {
    source.flight = [0, 1, 2, 3].map((route) => {
      const key = thread * 4 + route;
      const items = groups.items.subarray(groups.first[key], groups.first[key + 1]);
      return Steps.ofIntervals(pick(operations.began, items), pick(operations.until, items));
    });
  });
  addRequestsInFlight(trace.requests);
  addRequestsInFlight(trace.devices);
}

/** Uses the requests of a thread, or of a device, where it has no operations. */
function addRequestsInFlight(table) {
  const groups = grouped(table.thread, threadsCount());
  sources.forEach((source, thread) => {
    const items = groups.items.subarray(groups.first[thread], groups.first[thread + 1]);
    if (items.length > 0 && source.flight.every((steps) => steps.times.length === 0)) {
      source.flight[RING] = Steps.ofIntervals(pick(table.began, items), pick(table.until, items));
    }
  });
}

function addSubmissions() {
  const { submissions } = trace;
  const groups = grouped(submissions.thread, threadsCount());
  sources.forEach((source, thread) => {
    const items = groups.items.subarray(groups.first[thread], groups.first[thread + 1]);
    if (items.length > 0) {
      source.submissions = new Events(items, pick(submissions.began, items), (i) => submissions.why[i], 3);
      source.submissions.most = new Most(pick(submissions.requests, items));
    }
  });
}

function addKernel() {
  const { kernel } = trace;
  const runs = grouped(kernel.thread.map((thread, i) => (kernel.did[i] === TASK_WORK ? thread : -1)), threadsCount());
  const others = grouped(kernel.thread.map((thread, i) => (kernel.did[i] === TASK_WORK ? -1 : thread)), threadsCount());
  const of = (groups, thread) => groups.items.subarray(groups.first[thread], groups.first[thread + 1]);
  sources.forEach((source, thread) => {
    const ran = of(runs, thread);
    if (ran.length > 0) {
      source.causes = new Events(ran, pick(kernel.began, ran), (i) => kernel.first[i], head.causes.length);
    }
    const did = of(others, thread);
    if (did.length > 0) {
      source.kernel = new Events(did, pick(kernel.began, did), (i) => kernel.did[i], DIDS.length);
    }
  });
}

function addGauges() {
  const { samples } = trace;
  const keys = samples.thread.map((thread, i) => (thread < threadsCount() ? thread * 3 + samples.gauge[i] : -1));
  const groups = grouped(keys, 3 * threadsCount());
  for (let key = 0; key < 3 * threadsCount(); key++) {
    const items = groups.items.subarray(groups.first[key], groups.first[key + 1]);
    if (items.length > 0) {
      const steps = new Steps(pick(samples.began, items), pick(samples.value, items));
      const source = { gauge: key % 3, items, steps, most: new Most(steps.levels) };
      sources[Math.floor(key / 3)].gauges.push(source);
    }
  }
}

/** One lane a thread. */
function threadLanes(table) {
  return new Lanes(threadsCount(), table.thread, table.began, table.ended, null, 1);
}

/** Sleeps according to the kernel: each ends with the wake-up, or else when the thread runs again or ends. */
function kernelSleeps() {
  const { kernel } = trace;
  const found = { thread: [], began: [], ended: [] };
  threadBegins.fill(NaN);
  threadEnds.fill(Infinity);
  const since = new Map();
  const close = (thread, ended) => {
    if (since.has(thread)) {
      found.thread.push(thread);
      found.began.push(since.get(thread));
      found.ended.push(ended);
      since.delete(thread);
    }
  };
  for (let i = 0; i < kernel.count; i++) {
    if (kernel.did[i] === SLEEP) {
      close(kernel.thread[i], kernel.began[i]);
      since.set(kernel.thread[i], kernel.began[i]);
    } else if ([WAKE, RUN, ENDED].includes(kernel.did[i])) {
      close(kernel.thread[i], kernel.began[i]);
    }
    if (Number.isNaN(threadBegins[kernel.thread[i]])) {
      threadBegins[kernel.thread[i]] = kernel.did[i] === BEGAN ? kernel.began[i] : 0;
    }
    // The number of an ended thread may be reused.
    threadEnds[kernel.thread[i]] = kernel.did[i] === ENDED ? kernel.began[i] : Infinity;
  }
  for (const thread of [...since.keys()]) {
    close(thread, trace.end);
  }
  return found;
}

/** Prepares everything that the tracks are drawn from. */
function prepareTracks() {
  growTree();
  picture.layout = new Layout(folds.scopes);
  picture.requests = layOutRequests();
  picture.devices = layOutDevices();
  picture.pool = layOutPool();
  picture.rests = threadLanes(trace.rests);
  picture.enters = threadLanes(trace.enters);
  picture.sleeps = threadLanes(kernelSleeps());
  addFlights();
  addSubmissions();
  addKernel();
  addGauges();
}

/** Tracks of a thread with their labels. */
function tracksOf(thread) {
  const source = sources[thread];
  const role = head.threads[thread][1];
  const list = [];
  const add = (kind, label, more = {}) => list.push({ kind, label, thread, height: HEIGHTS[kind], ...more });
  const has = (lanes) => lanes.first[thread + 1] > lanes.first[thread];
  if (has(picture.rests) || has(picture.enters)) {
    add('state', `at work, ${head.idle}`);
  }
  if (source.submissions) {
    const highest = Math.max(1, source.submissions.most.in(0, source.submissions.items.length));
    add('submissions', `batches ≤ ${roughly(highest)}`, { highest });
  }
  if (source.causes) {
    add('causes', 'task work causes');
  }
  if (source.kernel) {
    add('kernel', 'sleep, wake-ups');
  }
  for (const gauge of source.gauges) {
    const highest = Math.max(1, gauge.most.in(0, gauge.items.length));
    add('gauge', `${GAUGES[gauge.gauge]} ≤ ${roughly(highest)}`, { source: gauge, highest });
  }
  if (has(picture.pool.lanes)) {
    add('pool', 'executed');
  }
  const rows = picture.layout.first[thread + 1] - picture.layout.first[thread];
  if (rows > 0) {
    add('rows', role === 'worker' ? 'fibers in scopes' : 'operations', { height: rows * ROW, rows });
  }
  const requests = picture.requests.first[thread + 1] - picture.requests.first[thread];
  if (requests > 0) {
    add('requests', 'requests', { height: requests * ROW, rows: requests });
  }
  const ofDevice = picture.devices.first[thread + 1] - picture.devices.first[thread];
  if (ofDevice > 0) {
    add('devices', 'requests', { height: ofDevice * ROW, rows: ofDevice });
  }
  return list;
}

/** Places all tracks that are not folded. */
function placeTracks() {
  picture.tracks = [];
  let y = 0;
  for (let thread = 0; thread < threadsCount(); thread++) {
    const own = tracksOf(thread);
    if (own.length === 0) {
      continue;
    }
    const busy = source => source.flight.some((steps) => steps.times.length > 0);
    const headHeight = busy(sources[thread]) ? HEIGHTS.flight : 18;
    for (const track of [{ kind: 'flight', thread, label: threadName(thread), height: headHeight }, ...own]) {
      if (track.kind === 'flight' || !folds.threads.has(thread)) {
        picture.tracks.push({ ...track, y });
        y += track.height + GAP;
      }
    }
    y += GROUP_GAP;
  }
  picture.height = y;
}

/** Operations in a folded scope by route, computed when it is first drawn. */
const scopeFlights = new Map();

function scopeFlight(scope) {
  if (!scopeFlights.has(scope)) {
    const { operations } = trace;
    const inside = operationsIn(scope);
    scopeFlights.set(scope, [0, 1, 2, 3].map((route) => {
      const items = inside.filter((i) => operations.route[i] === route);
      return Steps.ofIntervals(pick(operations.began, items), pick(operations.until, items));
    }));
  }
  return scopeFlights.get(scope);
}

/** All operations of a scope's fibers, and of the scopes within. */
function operationsIn(scope) {
  const { fibersOf, scopesOf, operationsOf } = tree;
  const found = [];
  const waiting = [scope];
  while (waiting.length > 0) {
    const s = waiting.pop();
    for (let i = fibersOf.first[s]; i < fibersOf.first[s + 1]; i++) {
      const fiber = fibersOf.items[i];
      for (let k = operationsOf.first[fiber]; k < operationsOf.first[fiber + 1]; k++) {
        found.push(operationsOf.items[k]);
      }
      for (let k = scopesOf.first[fiber]; k < scopesOf.first[fiber + 1]; k++) {
        waiting.push(scopesOf.items[k]);
      }
    }
  }
  return found.sort((a, b) => a - b);
}

export {
  folds, operationsIn, picture, placeTracks, prepareTracks, ROW, scopeFlight, sources, threadBegins, threadEnds,
};
