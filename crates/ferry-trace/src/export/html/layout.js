// The row of each scope, fiber, operation and request: fibers within their scopes, scopes within the fibers that opened them.

import { head, trace } from './data.js';
import { DEVICE_READ } from './words.js';
import { grouped } from './steps.js';
import { Lanes, Packing, pick } from './lanes.js';

/** Maximum rows of a scope or of a thread's requests, and of a fiber's concurrent operations. */
const MOST_ROWS = 2000;
const MOST_AT_ONCE = 16;

/** Members of each scope, fiber and batch; filled by `growTree`. */
const tree = {};

function growTree() {
  const { scopes, fibers, operations } = trace;
  Object.assign(tree, {
    fibersOf: grouped(fibers.scope, scopes.count),
    scopesOf: grouped(scopes.fiber, fibers.count),
    operationsOf: grouped(operations.fiber, fibers.count),
    batch: grouped(operations.submission, trace.submissions.count),
  });
}

class Layout {
  /** Scopes in `folded` take one row. */
  constructor(folded) {
    const { scopes, fibers, operations } = trace;
    this.folded = folded;
    this.scopeHeight = new Uint32Array(scopes.count);
    this.scopeRow = new Int32Array(scopes.count).fill(-1);
    this.fiberHeight = new Uint32Array(fibers.count);
    /** Number of these rows that its own operations take. */
    this.fiberOwn = new Uint8Array(fibers.count);
    this.fiberRow = new Int32Array(fibers.count).fill(-1);
    this.operationRow = new Int32Array(operations.count).fill(-1);
    this.first = new Uint32Array(head.threads.length + 1);
    this.fiberPacking = new Packing(MOST_AT_ONCE);
    this.scopePacking = new Packing(MOST_ROWS);
    this.measure();
    this.place();
    const rows = this.first[head.threads.length];
    this.operations = new Lanes(rows, this.operationRow, operations.began, operations.until, operations.route, 4);
    this.fibers = new Lanes(rows, this.fiberRow, fibers.began, fibers.until, null, 1);
    this.scopes = new Lanes(rows, this.scopeRow, scopes.began, scopes.until, null, 1);
  }

  /** Computes heights, and rows relative to the parent. Inner scopes follow outer ones, so the loop goes backwards. */
  measure() {
    const { fibersOf } = tree;
    const { began, until } = trace.fibers;
    for (let s = trace.scopes.count - 1; s >= 0; s--) {
      const packing = this.scopePacking;
      packing.clear();
      for (let i = fibersOf.first[s]; i < fibersOf.first[s + 1]; i++) {
        const fiber = fibersOf.items[i];
        this.measureFiber(fiber);
      }
      packing.clear();
      for (let i = fibersOf.first[s]; i < fibersOf.first[s + 1]; i++) {
        const fiber = fibersOf.items[i];
        this.fiberRow[fiber] = 1 + packing.place(began[fiber], until[fiber], this.fiberHeight[fiber]);
      }
      this.scopeHeight[s] = this.folded.has(s) ? 1 : 1 + packing.height;
    }
  }

  /** Stacks a fiber's operations, with the scopes that it opened beneath them. */
  measureFiber(fiber) {
    const { operationsOf, scopesOf } = tree;
    const operations = trace.operations;
    this.fiberPacking.clear();
    for (let i = operationsOf.first[fiber]; i < operationsOf.first[fiber + 1]; i++) {
      const one = operationsOf.items[i];
      this.operationRow[one] = this.fiberPacking.place(operations.began[one], operations.until[one], 1);
    }
    const own = Math.max(1, this.fiberPacking.height);
    this.fiberOwn[fiber] = own;
    this.scopePacking.clear();
    for (let i = scopesOf.first[fiber]; i < scopesOf.first[fiber + 1]; i++) {
      const scope = scopesOf.items[i];
      const { began, until } = trace.scopes;
      this.scopeRow[scope] = own + this.scopePacking.place(began[scope], until[scope], this.scopeHeight[scope]);
    }
    this.fiberHeight[fiber] = own + this.scopePacking.height;
  }

  /** Makes rows absolute, from the outermost scopes inwards. */
  place() {
    const { scopes, fibers, operations } = trace;
    const outermost = grouped(scopes.thread.map((thread, s) => (scopes.fiber[s] < 0 ? thread : -1)), head.threads.length);
    const alone = grouped(operations.thread.map((thread, i) => (this.isAlone(i) ? thread : -1)), head.threads.length);
    let row = 0;
    for (let thread = 0; thread < head.threads.length; thread++) {
      this.first[thread] = row;
      row += this.stack(outermost, thread, (s) => this.scopeHeight[s], scopes, this.scopeRow, row);
      row += this.stack(alone, thread, () => 1, operations, this.operationRow, row);
    }
    this.first[head.threads.length] = row;
    const fiberTop = new Int32Array(fibers.count).fill(-1);
    for (let s = 0; s < scopes.count; s++) {
      if (scopes.fiber[s] >= 0) {
        const top = fiberTop[scopes.fiber[s]] ?? -1;
        this.scopeRow[s] = top < 0 ? -1 : top + this.scopeRow[s];
      }
      this.placeFibers(s, fiberTop);
    }
    for (let fiber = 0; fiber < fibers.count; fiber++) {
      this.placeOperations(fiber, fiberTop[fiber]);
    }
    this.fiberRow = fiberTop;
  }

  placeFibers(scope, fiberTop) {
    const { first, items } = tree.fibersOf;
    const top = this.scopeRow[scope];
    if (top < 0 || this.folded.has(scope)) {
      return;
    }
    for (let i = first[scope]; i < first[scope + 1]; i++) {
      fiberTop[items[i]] = top + this.fiberRow[items[i]];
    }
  }

  placeOperations(fiber, top) {
    const { first, items } = tree.operationsOf;
    for (let i = first[fiber]; i < first[fiber + 1]; i++) {
      this.operationRow[items[i]] = top < 0 ? -1 : top + this.operationRow[items[i]];
    }
  }

  /** Returns true if an operation has no known fiber. */
  isAlone(operation) {
    const fiber = trace.operations.fiber[operation];
    return fiber < 0 || fiber >= trace.fibers.count;
  }

  /** Assigns rows to a thread's outermost things, and returns their number. */
  stack(groups, thread, height, table, rowOf, base) {
    const packing = new Packing(MOST_ROWS);
    for (let i = groups.first[thread]; i < groups.first[thread + 1]; i++) {
      const item = groups.items[i];
      rowOf[item] = base + packing.place(table.began[item], table.until[item], height(item));
    }
    return packing.height;
  }
}

/** Assigns overlapping requests of a thread, or of a device, to different rows. */
function layOutSpans(table, classOf) {
  const rowOf = new Int32Array(table.count).fill(-1);
  const first = new Uint32Array(head.threads.length + 1);
  const byThread = grouped(table.thread, head.threads.length);
  let row = 0;
  for (let thread = 0; thread < head.threads.length; thread++) {
    first[thread] = row;
    const packing = new Packing(MOST_ROWS);
    for (let i = byThread.first[thread]; i < byThread.first[thread + 1]; i++) {
      const one = byThread.items[i];
      rowOf[one] = row + packing.place(table.began[one], table.until[one], 1);
    }
    row += packing.height;
  }
  first[head.threads.length] = row;
  return { first, rowOf, lanes: new Lanes(row, rowOf, table.began, table.until, classOf, 2) };
}

/** Rows of rings' requests; those handed to a worker of the kernel are a class of their own. */
function layOutRequests() {
  return layOutSpans(trace.requests, trace.requests.handedOver.map((time) => (Number.isNaN(time) ? 0 : 1)));
}

/** Rows of devices' requests; those that do not read are a class of their own. */
function layOutDevices() {
  return layOutSpans(trace.devices, trace.devices.kind.map((kind) => (kind === DEVICE_READ ? 0 : 1)));
}

/** Operations of each pool thread in one row: they do not overlap. */
function layOutPool() {
  const { operations } = trace;
  const began = operations.started.map((time, i) => (Number.isNaN(time) ? operations.began[i] : time));
  const until = operations.completed.map((time, i) => (Number.isNaN(time) ? operations.until[i] : time));
  const ran = [...operations.ranOn.keys()].filter((i) => operations.ranOn[i] >= 0).sort((a, b) => began[a] - began[b]);
  const items = Uint32Array.from(ran);
  const rows = Int32Array.from(items, (i) => operations.ranOn[i]);
  const lanes = new Lanes(head.threads.length, rows, pick(began, items), pick(until, items), pick(operations.route, items), 4);
  lanes.items = lanes.items.map((i) => items[i]);
  lanes.classOf = operations.route;
  return { lanes };
}

export { growTree, Layout, layOutDevices, layOutPool, layOutRequests, MOST_AT_ONCE, tree };
