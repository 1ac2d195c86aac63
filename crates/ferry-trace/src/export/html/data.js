// The trace as columns, in the order in which `columns.rs` writes them. A missing time is NaN, a missing index -1.

const head = JSON.parse(document.getElementById('head').textContent);

/** Returns the compressed base64 bytes of an element, and removes the element. */
async function bytesOf(holder) {
  const packed = new Blob([decoded(holder.textContent)]);
  holder.remove();
  const stream = packed.stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function decoded(text) {
  if (Uint8Array.fromBase64) {
    return Uint8Array.fromBase64(text);
  }
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = binary.charCodeAt(i);
  }
  return bytes;
}

class Columns {
  constructor(bytes) {
    this.bytes = bytes;
    this.position = 0;
  }

  /** Seven bits a byte, least significant first. */
  number() {
    const bytes = this.bytes;
    let byte = bytes[this.position++];
    if (byte < 128) {
      return byte;
    }
    let number = byte & 127;
    for (let scale = 128; byte >= 128; scale *= 128) {
      byte = bytes[this.position++];
      number += (byte & 127) * scale;
    }
    return number;
  }

  plain(count, Type) {
    const column = new Type(count);
    for (let i = 0; i < count; i++) {
      column[i] = this.number();
    }
    return column;
  }

  /** Differences to the previous value. */
  near(count, Type) {
    const column = new Type(count);
    for (let i = 0, above = 0; i < count; i++) {
      above += unfolded(this.number());
      column[i] = above;
    }
    return column;
  }

  /** Indices; 0 stands for none. */
  nearIf(count) {
    return this.near(count, Int32Array).map((index) => index - 1);
  }

  /** Times as differences to the base; 0 stands for none. */
  after(base) {
    const column = new Float64Array(base.length);
    for (let i = 0; i < column.length; i++) {
      const number = this.number();
      column[i] = number === 0 ? NaN : base[i] + unfolded(number - 1);
    }
    return column;
  }
}

function unfolded(number) {
  return number % 2 === 0 ? number / 2 : -(number + 1) / 2;
}

function readOperations(from, count) {
  const table = { count, kind: from.plain(count, Uint8Array), thread: from.near(count, Int32Array) };
  table.fiber = from.nearIf(count);
  table.name = from.near(count, Uint32Array);
  table.size = from.plain(count, Float64Array);
  table.offset = from.plain(count, Float64Array).map((offset) => offset - 1);
  table.route = from.plain(count, Uint8Array);
  table.reason = from.plain(count, Uint8Array);
  table.began = from.near(count, Float64Array);
  table.submitted = from.after(table.began);
  table.started = from.after(table.began);
  table.completed = from.after(table.began);
  table.taken = from.after(table.began);
  table.result = from.plain(count, Float64Array);
  table.abandoned = from.plain(count, Uint8Array);
  table.ranOn = from.nearIf(count);
  table.submission = from.nearIf(count);
  table.request = from.nearIf(count);
  table.met = from.plain(count, Uint8Array);
  return table;
}

function readScopes(from, count) {
  const table = { count, kind: from.plain(count, Uint8Array), thread: from.near(count, Int32Array) };
  table.fiber = from.nearIf(count);
  table.name = from.near(count, Uint32Array);
  table.began = from.near(count, Float64Array);
  table.ended = from.after(table.began);
  table.cancelled = from.after(table.began);
  return table;
}

function readFibers(from, count) {
  const table = { count, scope: from.near(count, Int32Array), name: from.near(count, Uint32Array) };
  table.began = from.near(count, Float64Array);
  table.ended = from.after(table.began);
  return table;
}

function readSubmissions(from, count) {
  const table = { count, thread: from.near(count, Int32Array), began: from.near(count, Float64Array) };
  table.requests = from.plain(count, Uint32Array);
  table.why = from.plain(count, Uint8Array);
  table.inFlight = from.near(count, Uint32Array);
  return table;
}

function readEnters(from, count) {
  const table = { count, thread: from.near(count, Int32Array), began: from.near(count, Float64Array) };
  table.ended = from.after(table.began);
  table.submitted = from.plain(count, Uint32Array);
  table.how = from.plain(count, Uint8Array);
  table.found = from.plain(count, Uint32Array);
  table.taken = from.plain(count, Uint32Array);
  return table;
}

function readRests(from, count) {
  const table = { count, thread: from.near(count, Int32Array), began: from.near(count, Float64Array) };
  table.ended = from.after(table.began);
  return table;
}

function readSamples(from, count) {
  const table = { count, thread: from.near(count, Int32Array), began: from.near(count, Float64Array) };
  table.gauge = from.plain(count, Uint8Array);
  table.value = from.near(count, Float64Array);
  return table;
}

function readRequests(from, count) {
  const table = { count, thread: from.near(count, Int32Array), ring: from.near(count, Int32Array) };
  table.name = from.near(count, Uint32Array);
  table.high = from.near(count, Uint32Array);
  table.low = from.near(count, Uint32Array);
  table.began = from.near(count, Float64Array);
  table.completed = from.after(table.began);
  table.handedOver = from.after(table.began);
  table.result = from.plain(count, Float64Array);
  return table;
}

function readKernel(from, count) {
  const table = { count, thread: from.near(count, Int32Array), began: from.near(count, Float64Array) };
  table.processor = from.plain(count, Uint32Array);
  table.did = from.plain(count, Uint8Array);
  table.first = from.plain(count, Uint32Array);
  table.second = from.plain(count, Uint32Array);
  table.chain = from.nearIf(count);
  return table;
}

function readDevices(from, count) {
  const table = { count, thread: from.near(count, Int32Array), kind: from.plain(count, Uint8Array) };
  table.sector = from.near(count, Float64Array);
  table.bytes = from.plain(count, Float64Array);
  table.by = from.nearIf(count);
  table.began = from.near(count, Float64Array);
  table.completed = from.after(table.began);
  table.failed = from.plain(count, Uint8Array);
  return table;
}

/** Offset of each name, and of the end. */
function readNames(from, count) {
  const first = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) {
    first[i + 1] = first[i] + from.number();
  }
  return { count, first, bytes: from.bytes.subarray(from.position) };
}

/** The recording's tables; empty until `readTrace` has read them. */
const trace = {};

async function readTrace() {
  const from = new Columns(await bytesOf(document.getElementById('columns')));
  const counts = head.counts;
  trace.scopes = readScopes(from, counts.scopes);
  trace.fibers = readFibers(from, counts.fibers);
  trace.operations = readOperations(from, counts.operations);
  trace.submissions = readSubmissions(from, counts.submissions);
  trace.enters = readEnters(from, counts.enters);
  trace.rests = readRests(from, counts.rests);
  trace.samples = readSamples(from, counts.samples);
  trace.requests = readRequests(from, counts.requests);
  trace.kernel = readKernel(from, counts.kernel);
  trace.devices = readDevices(from, counts.devices);
  trace.names = readNames(from, counts.names);
  trace.end = endOf(trace);
  fillEnds(trace);
}

/** Time of the last event, or the end of the recording. */
function endOf(trace) {
  let end = Math.max(head.took, 1);
  for (const table of Object.values(trace)) {
    for (const name of ['began', 'ended', 'taken', 'completed']) {
      const column = table[name];
      for (let i = 0; column && i < column.length; i++) {
        if (column[i] > end) {
          end = column[i];
        }
      }
    }
  }
  return end;
}

/** Adds the column `until` for drawing, in which a missing end is the end of the recording. */
function fillEnds(trace) {
  const { operations, fibers, scopes, requests } = trace;
  const until = (table, ...columns) => {
    table.until = table.began.map((began, i) => {
      const known = columns.map((column) => column[i]).find((time) => !Number.isNaN(time));
      return Math.max(began, known === undefined ? trace.end : known);
    });
  };
  until(operations, operations.taken, operations.completed);
  until(fibers, fibers.ended);
  until(scopes, scopes.ended);
  until(requests, requests.completed);
  // Without a recorded completion, a device may have completed its request at any time.
  const { began, completed } = trace.devices;
  trace.devices.until = began.map((time, i) => (completed[i] > time ? completed[i] : time));
}

function firstKnown(a, b, c) {
  return !Number.isNaN(a) ? a : !Number.isNaN(b) ? b : c;
}

export { firstKnown, head, readTrace, trace };
