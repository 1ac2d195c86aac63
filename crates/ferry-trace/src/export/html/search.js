// Search: the operations that match all words of a query; for another program's trace, its requests.

import { redraw } from './frame.js';
import { head, trace } from './data.js';
import { ERRNO_NAMES, errnoOf, many } from './words.js';

const SCALES = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 };

/** The table that is searched. */
function subject() {
  return trace.operations.count > 0
    ? { kind: 'operation', table: trace.operations }
    : { kind: 'request', table: trace.requests };
}

const matches = {
  marks: new Uint8Array(0),
  list: new Uint32Array(0),
  /** Index of the current match in the list, or -1. */
  current: -1,
  has(i) {
    return this.marks[i] === 1;
  },
  /** First index in the list, from `low` on, of a match that begins at `time` or later. */
  after(time, low = 0) {
    const { began } = subject().table;
    let high = this.list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (began[this.list[middle]] < time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  },
};

const lower = (byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte);

/** Returns for each name whether it contains a word, ignoring the case of ASCII letters. */
function namesWith(word) {
  const { first, bytes, count } = trace.names;
  const wanted = new TextEncoder().encode(word).map(lower);
  const found = new Uint8Array(count);
  for (let name = 0; name < count; name++) {
    const last = first[name + 1] - wanted.length;
    for (let at = first[name]; at <= last; at++) {
      let same = 0;
      while (same < wanted.length && lower(bytes[at + same]) === wanted[same]) {
        same++;
      }
      if (same === wanted.length) {
        found[name] = 1;
        break;
      }
    }
  }
  return found;
}

/** Conditions for `fiber 12`, `errno 2`, `>100us` and plain words. */
function conditionsOf(query, table) {
  const conditions = [];
  const take = (pattern, condition) => {
    query = query.replace(pattern, (all, a, b) => {
      conditions.push(condition(a, b));
      return ' ';
    });
  };
  take(/(?:^|\s)fiber[ :](\d+)(?=\s|$)/gi, (number) => (i) => table.fiber?.[i] === Number(number));
  take(/(?:^|\s)errno[ :](\d+)(?=\s|$)/gi, (number) => (i) => errnoOf(table.result[i]) === Number(number));
  take(/(?:^|\s)>(\d+(?:\.\d+)?)(ns|us|µs|ms|s)(?=\s|$)/g, (number, unit) => {
    const least = Number(number) * SCALES[unit];
    return (i) => table.until[i] - table.began[i] > least;
  });
  for (const word of query.split(/\s+/).filter(Boolean)) {
    conditions.push(wordCondition(word.toLowerCase(), table));
  }
  return conditions;
}

/** A word matches a kind, a route, an error, `error`, or a part of the name. */
function wordCondition(word, table) {
  const names = namesWith(word);
  if (word === 'error' || word === 'failed') {
    return (i) => errnoOf(table.result[i]) >= 0 || names[table.name[i]] === 1;
  }
  const kinds = head.kinds.map((kind) => kind.startsWith(word));
  const route = head.routes.indexOf(word);
  const errno = [...ERRNO_NAMES].find(([, name]) => name.toLowerCase() === word)?.[0];
  return (i) => names[table.name[i]] === 1
    || (table.kind !== undefined && (kinds[table.kind[i]] || table.route[i] === route))
    || (errno !== undefined && errnoOf(table.result[i]) === errno);
}

function search(query) {
  const { table } = subject();
  const conditions = conditionsOf(query, table);
  const found = [];
  matches.marks = new Uint8Array(table.count);
  for (let i = 0; conditions.length > 0 && i < table.count; i++) {
    if (conditions.every((fits) => fits(i))) {
      matches.marks[i] = 1;
      found.push(i);
    }
  }
  matches.list = Uint32Array.from(found);
  matches.current = -1;
  showFound(query);
  redraw();
}

function showFound(query) {
  const { list, current } = matches;
  const place = current >= 0 ? `${(current + 1).toLocaleString('en')} of ` : '';
  const text = query.trim() === '' ? '' : list.length === 0 ? 'no match' : `${place}${many(list.length, 'match', 'matches')}`;
  document.getElementById('found').textContent = text;
}

export { matches, search, showFound, subject };
