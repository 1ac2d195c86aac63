// The recording in figures and words, for readers rather than viewers.

import { firstKnown, head, trace } from './data.js';
import { element, link, named, paragraph } from './dom.js';
import {
  bytesText, errnoOf, many, METS, moment, operationPlace, operationTitle, requestTitle, RING, shown, span, TASK_WORK,
  threadName, WHYS,
} from './words.js';
import { subject } from './search.js';

function tableOf(caption, columns, rows) {
  const headings = columns.map((column) => {
    const heading = element('th', column);
    heading.scope = 'col';
    return heading;
  });
  const body = rows.map(([first, ...cells]) => {
    const heading = element('th', first);
    heading.scope = 'row';
    return element('tr', heading, ...cells.map((cell) => element('td', cell)));
  });
  const made = element('table', element('caption', caption), element('thead', element('tr', ...headings)), element('tbody', ...body));
  const box = element('div', made);
  box.className = 'scroll';
  box.tabIndex = 0;
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', caption);
  return box;
}

/** Sums the periods of each route's operations. */
function routeRows() {
  const o = trace.operations;
  const sums = head.routes.map(() => ({ count: 0, queue: 0, work: 0, untaken: 0, longest: 0, failed: 0 }));
  for (let i = 0; i < o.count; i++) {
    const sum = sums[o.route[i]];
    const start = firstKnown(o.route[i] === RING ? o.submitted[i] : o.started[i], o.submitted[i], o.began[i]);
    const end = firstKnown(o.completed[i], o.until[i], o.until[i]);
    sum.count++;
    sum.queue += Math.max(0, start - o.began[i]);
    sum.work += Math.max(0, end - start);
    sum.untaken += Math.max(0, o.until[i] - end);
    sum.longest = Math.max(sum.longest, o.until[i] - o.began[i]);
    sum.failed += errnoOf(o.result[i]) >= 0 ? 1 : 0;
  }
  return sums.map((sum, route) => [head.routes[route], sum]).filter(([, sum]) => sum.count > 0).map(([name, sum]) => [
    name, sum.count.toLocaleString('en'), span(sum.queue / sum.count), span(sum.work / sum.count), span(sum.untaken / sum.count),
    span(sum.longest), sum.failed.toLocaleString('en'),
  ]);
}

/** Longest things of a table, descending. */
function longest(table, count) {
  const best = [];
  for (let i = 0; i < table.count; i++) {
    const took = table.until[i] - table.began[i];
    if (best.length < count || took > best[best.length - 1].took) {
      best.push({ i, took });
      best.sort((a, b) => b.took - a.took);
      best.length = Math.min(best.length, count);
    }
  }
  return best;
}

function longestRows() {
  const { kind, table } = subject();
  const title = kind === 'operation' ? (i) => [operationTitle(i), operationPlace(i)].filter(Boolean).join(' ') : requestTitle;
  return longest(table, 10).map(({ i, took }) => [
    link(kind, i, title(i)), kind === 'operation' ? head.routes[table.route[i]] : `ring ${table.ring[i]}`,
    span(took), moment(table.began[i], 1000),
  ]);
}

/** Requests of each device by kind. */
function deviceRows() {
  const d = trace.devices;
  const sums = new Map();
  for (let i = 0; i < d.count; i++) {
    const key = d.thread[i] * head.deviceKinds.length + d.kind[i];
    const sum = sums.get(key) ?? { thread: d.thread[i], kind: d.kind[i], count: 0, bytes: 0, took: [] };
    sums.set(key, sum);
    sum.count++;
    sum.bytes += d.bytes[i];
    if (!Number.isNaN(d.completed[i])) {
      sum.took.push(d.until[i] - d.began[i]);
    }
  }
  return [...sums].sort(([a], [b]) => a - b).map(([, { thread, kind, count, bytes, took }]) => {
    took.sort((a, b) => a - b);
    const times = took.length > 0 ? [span(took[(took.length - 1) >> 1]), span(took.at(-1))] : ['', ''];
    return [threadName(thread), head.deviceKinds[kind], count.toLocaleString('en'), bytesText(bytes), ...times];
  });
}

function counted(names, valueOf, count, sizeOf) {
  const counts = names.map(() => [0, 0]);
  for (let i = 0; i < count; i++) {
    const value = valueOf(i);
    if (value >= 0 && value < names.length) {
      counts[value][0]++;
      counts[value][1] += sizeOf(i);
    }
  }
  return names.map((name, value) => [name, ...counts[value]]).filter(([, times]) => times > 0);
}

const SUMMARY_TABLES = [
  () => ['Operations by route', ['route', 'operations', 'mean wait to begin', 'mean execution', 'mean completed, not taken', 'longest', 'failed'], routeRows()],
  () => [`Longest ${subject().kind}s`, [subject().kind, subject().kind === 'operation' ? 'route' : 'ring', 'duration', 'began at'], longestRows()],
  () => {
    const { submissions } = trace;
    const rows = counted(WHYS, (i) => submissions.why[i], submissions.count, (i) => submissions.requests[i]);
    return ['Batches by reason for submission', ['reason', 'batches', 'requests', 'requests a batch'],
      rows.map(([why, times, requests]) => [why, times.toLocaleString('en'), requests.toLocaleString('en'), (requests / times).toFixed(1)])];
  },
  () => {
    const { operations, kernel } = trace;
    if (operations.count === 0) {
      // For another program, by the cause of its task work.
      const rows = counted(METS, (i) => (kernel.did[i] === TASK_WORK ? head.causesMet[kernel.first[i]] : -1), kernel.count, (i) => kernel.second[i]);
      return ['How completions were found', ['way', 'units of task work'], rows.map(([how, , units]) => [how, units.toLocaleString('en')])];
    }
    return ['How completions were found', ['way', 'operations'],
      counted(METS, (i) => operations.met[i] || -1, operations.count, () => 0).map(([how, times]) => [how, times.toLocaleString('en')])];
  },
  () => {
    const { did, first, second, count } = trace.kernel;
    const rows = counted(head.causes, (i) => (did[i] === TASK_WORK ? first[i] : -1), count, (i) => second[i]);
    return ['Task work by cause', ['cause', 'runs', 'units of work'],
      rows.map(([cause, times, units]) => [cause, times.toLocaleString('en'), units.toLocaleString('en')])];
  },
  () => ['Requests of block devices, of every program', ['device', 'kind', 'requests', 'bytes', 'median', 'slowest'], deviceRows()],
  () => ['Counters of the runtime', ['counter', 'value'], head.counters.map(([name, value]) => [shown(name), value.toLocaleString('en')])],
];

function showSummary() {
  const place = document.getElementById('summary');
  for (const make of SUMMARY_TABLES) {
    const [caption, columns, rows] = make();
    if (rows.length > 0) {
      place.append(tableOf(caption, columns, rows));
    }
  }
  if (place.childElementCount === 1) {
    place.append(paragraph('Nothing in this recording can be counted.'));
  }
}

function showHeader() {
  const command = head.command.map(shown).join(' ');
  document.getElementById('command').replaceChildren(named(command));
  document.title = command ? `ferry trace: ${command}` : 'ferry trace';
  const counts = head.counts;
  const facts = [
    head.run ? `run: ${shown(head.run)}` : '', span(head.took), `Linux ${shown(head.kernel)}`, head.processors > 0 ? many(head.processors, 'processor') : '',
    head.backend ? `backend ${shown(head.backend)}` : '', head.began > 0 ? new Date(head.began / 1e6).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : '',
    many(counts.operations, 'operation'), many(counts.fibers, 'fiber'), many(counts.submissions, 'submission'),
    many(counts.requests, 'request'), many(counts.devices, 'device request'), many(counts.kernel, 'kernel event'), head.recorder ? `recorded by ferry ${shown(head.recorder)}` : '',
  ];
  document.getElementById('facts').textContent = facts.filter((fact) => fact && !fact.startsWith('0 ')).join(' · ');
  const [program, kernel] = head.lost;
  const lost = document.getElementById('lost');
  lost.hidden = program + kernel === 0;
  lost.textContent = `EVENTS WERE LOST: ${program.toLocaleString('en')} of the program, ${kernel.toLocaleString('en')} of the kernel. `
    + 'Buffers were full, so the page is incomplete.';
  const missing = document.getElementById('missing');
  missing.hidden = head.missing.length === 0;
  missing.replaceChildren(...head.missing.map((line) => element('li', named(shown(line)))));
}

export { showHeader, showSummary };
