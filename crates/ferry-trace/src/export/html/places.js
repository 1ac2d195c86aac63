// Times and places of things in the timeline.

import { trace } from './data.js';
import { TASK_WORK } from './words.js';
import { picture, ROW } from './tracks.js';

const TABLES = {
  operation: 'operations', fiber: 'fibers', scope: 'scopes', submission: 'submissions', request: 'requests',
  event: 'kernel', rest: 'rests', enter: 'enters', device: 'devices',
};

/** Beginning and end of a thing. */
function spanOf({ kind, index }) {
  const table = trace[TABLES[kind]];
  const end = table.until?.[index] ?? table.ended?.[index] ?? table.began[index];
  return [table.began[index], end];
}

/** Kind of track by kind of thing; that of an event depends on its type. */
const TRACK_OF = {
  operation: 'rows', fiber: 'rows', scope: 'rows', submission: 'submissions', request: 'requests', rest: 'state', enter: 'state',
  device: 'devices',
};

function threadOf(kind, index) {
  return kind === 'fiber' ? trace.scopes.thread[trace.fibers.scope[index]] : trace[TABLES[kind]].thread[index];
}

/** Position of a thing in the content. */
function placeOf({ kind, index }) {
  const rows = { operation: picture.layout.operationRow, fiber: picture.layout.fiberRow, scope: picture.layout.scopeRow }[kind];
  const thread = threadOf(kind, index);
  const wanted = TRACK_OF[kind] ?? (trace.kernel.did[index] === TASK_WORK ? 'causes' : 'kernel');
  const track = picture.tracks.find((one) => one.thread === thread && one.kind === wanted);
  if (!track) {
    return null;
  }
  const placed = { request: picture.requests, device: picture.devices }[kind];
  const row = rows ? rows[index] - picture.layout.first[thread] : placed ? placed.rowOf[index] - placed.first[thread] : 0;
  return row < 0 ? null : { y: track.y + row * ROW, height: rows || placed ? ROW : track.height };
}

export { placeOf, spanOf, TABLES, threadOf };
