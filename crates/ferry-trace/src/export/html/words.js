// Names, numbers and times in words.

import { head, trace } from './data.js';

const SCOPE_KINDS = ['run', 'scope', 'for_each', 'both or first'];
const WHYS = ['ring full', 'nothing could run', 'early'];
const WHYS_IN_FULL = [
  'because the ring was full',
  'because no fiber could run and the worker was about to sleep',
  'early: a batch begun early, a long series of inline calls, or a cancellation',
];
const GAUGES = ['in flight', 'blocks', 'descriptors'];
const METS = ['unknown', 'already there', 'found without sleeping', 'found after sleeping'];
const DIDS = ['task work', 'task work added', 'handed over', 'asleep', 'made ready', 'ended', 'began', 'ran again'];
const TASK_WORK = 0, TASK_ADD = 1, HAND_OVER = 2, SLEEP = 3, WAKE = 4, ENDED = 5, BEGAN = 6, RUN = 7;
const INLINE = 0, RING = 1, POOL = 2;
const DEVICE_READ = 0;

/** Names of common errors; others are shown by number and message. */
const ERRNO_NAMES = new Map([
  [1, 'EPERM'], [2, 'ENOENT'], [4, 'EINTR'], [5, 'EIO'], [6, 'ENXIO'], [7, 'E2BIG'], [9, 'EBADF'], [11, 'EAGAIN'],
  [12, 'ENOMEM'], [13, 'EACCES'], [14, 'EFAULT'], [16, 'EBUSY'], [17, 'EEXIST'], [18, 'EXDEV'], [19, 'ENODEV'],
  [20, 'ENOTDIR'], [21, 'EISDIR'], [22, 'EINVAL'], [23, 'ENFILE'], [24, 'EMFILE'], [25, 'ENOTTY'], [26, 'ETXTBSY'],
  [27, 'EFBIG'], [28, 'ENOSPC'], [29, 'ESPIPE'], [30, 'EROFS'], [31, 'EMLINK'], [32, 'EPIPE'], [34, 'ERANGE'],
  [36, 'ENAMETOOLONG'], [38, 'ENOSYS'], [39, 'ENOTEMPTY'], [40, 'ELOOP'], [61, 'ENODATA'], [62, 'ETIME'],
  [75, 'EOVERFLOW'], [95, 'EOPNOTSUPP'], [110, 'ETIMEDOUT'], [116, 'ESTALE'], [122, 'EDQUOT'], [125, 'ECANCELED'],
]);
const ERROR_MESSAGES = new Map(head.errors);

const decoder = new TextDecoder();

/** Replaces characters that move or hide others by their code points. */
function shown(text) {
  return text.replace(/[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu, (character) =>
    `\\u{${character.codePointAt(0).toString(16)}}`);
}

function nameAt(index) {
  const { first, bytes, count } = trace.names;
  return index > 0 && index < count ? shown(decoder.decode(bytes.subarray(first[index], first[index + 1]))) : '';
}

function errorText(errno) {
  const name = ERRNO_NAMES.get(errno);
  const message = ERROR_MESSAGES.get(errno);
  return `${name ? `${name}, ` : ''}errno ${errno}${message ? `: ${message}` : ''}`;
}

/** Error number in a column of results, or -1. */
function errnoOf(result) {
  return result >= 2 && result % 2 === 0 ? result / 2 - 1 : -1;
}

function resultText(result, isBytes) {
  if (result === 0) {
    return '';
  }
  const errno = errnoOf(result);
  if (errno >= 0) {
    return errorText(errno);
  }
  const count = (result - 1) / 2;
  return isBytes ? bytesText(count) : count.toLocaleString('en');
}

const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

/** A duration with three digits. */
function span(nanos) {
  const [scale, unit] = UNITS.find(([scale]) => Math.abs(nanos) >= scale) ?? UNITS[3];
  const number = nanos / scale;
  const digits = unit === 'ns' || Math.abs(number) >= 100 ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return `${number.toFixed(digits)} ${unit}`;
}

/** A time in units and digits that distinguish steps of `step` nanoseconds. */
function moment(nanos, step) {
  const [scale, unit] = UNITS.find(([scale]) => Math.max(Math.abs(nanos), step) >= scale) ?? UNITS[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(scale / Math.max(step, 1)) - 1e-9)));
  return `${(nanos / scale).toFixed(digits)} ${unit}`;
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${Number.isInteger(bytes) ? bytes : bytes.toFixed(1)} ${units[unit]}`;
}

/** A count in compact notation. */
function roughly(count) {
  return count.toLocaleString('en', { notation: 'compact' });
}

function many(count, one, more = `${one}s`) {
  return `${count.toLocaleString('en')} ${count === 1 ? one : more}`;
}

/** Threads with equal names are distinguished by their numbers. */
const threadsNamed = Map.groupBy(head.threads, ([, , name]) => name);
const threadNames = head.threads.map(([tid, role, name]) =>
  (name && threadsNamed.get(name).length === 1 ? shown(name) : `${shown(name) || role} ${tid}`));

function threadName(index) {
  return threadNames[index] ?? 'an unknown thread';
}

function operationTitle(index) {
  const { kind, size, name } = trace.operations;
  const words = [head.kinds[kind[index]] ?? 'operation'];
  if (size[index] > 0) {
    words.push(bytesText(size[index]));
  }
  words.push(nameAt(name[index]));
  return words.filter(Boolean).join(' ');
}

/** The file of an operation's fiber, if it names none itself, and the offset of its first byte, as far as known. */
function operationPlace(index) {
  const { fiber, name, offset } = trace.operations;
  const file = name[index] === 0 && fiber[index] >= 0 ? nameAt(trace.fibers.name[fiber[index]] ?? 0) : '';
  return [file, offset[index] >= 0 ? `at offset ${offset[index].toLocaleString('en')}` : ''].filter(Boolean).join(' ');
}

function fiberTitle(index) {
  return [`fiber ${index}`, nameAt(trace.fibers.name[index])].filter(Boolean).join(' ');
}

function scopeTitle(index) {
  const { kind, name } = trace.scopes;
  return [SCOPE_KINDS[kind[index]] ?? 'scope', nameAt(name[index])].filter(Boolean).join(' ');
}

function requestTitle(index) {
  return nameAt(trace.requests.name[index]) || 'request';
}

function deviceTitle(index) {
  const { kind, bytes } = trace.devices;
  return [head.deviceKinds[kind[index]] ?? 'request', bytes[index] > 0 ? bytesText(bytes[index]) : ''].filter(Boolean).join(' ');
}

export {
  BEGAN, bytesText, DEVICE_READ, deviceTitle, DIDS, ENDED, ERRNO_NAMES, errnoOf, fiberTitle, GAUGES, HAND_OVER, INLINE, many, METS, moment, operationPlace, operationTitle,
  POOL, requestTitle, resultText, RING, roughly, RUN, scopeTitle, shown, SLEEP, span, TASK_ADD, TASK_WORK, threadName,
  WAKE, WHYS, WHYS_IN_FULL,
};
