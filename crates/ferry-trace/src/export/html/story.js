// The story of one thing, in words: its origin, its route and the reason for it, and where its time went.

import { firstKnown, head, trace } from './data.js';
import { element, link, named, paragraph, terms } from './dom.js';
import {
  BEGAN, deviceTitle, DIDS, ENDED, errnoOf, fiberTitle, HAND_OVER, INLINE, many, moment, operationPlace, operationTitle, requestTitle, resultText,
  RING, RUN, scopeTitle, shown, SLEEP, span, TASK_ADD, TASK_WORK, threadName, WAKE, WHYS_IN_FULL,
} from './words.js';
import { lowerBound } from './steps.js';
import { tree } from './layout.js';
import { folds, operationsIn, sources } from './tracks.js';

/** Maximum length of a list in a story. */
const MOST_LISTED = 100;

function fiberLink(fiber) {
  return fiber >= 0 && fiber < trace.fibers.count ? link('fiber', fiber, fiberTitle(fiber)) : 'an unknown fiber';
}

function scopeLink(scope) {
  return scope >= 0 && scope < trace.scopes.count ? link('scope', scope, scopeTitle(scope)) : 'an unknown scope';
}

function describeOperation(i) {
  const o = trace.operations;
  const where = head.routes[o.route[i]] ?? 'somewhere';
  const scope = o.fiber[i] >= 0 ? trace.fibers.scope[o.fiber[i]] ?? -1 : -1;
  return [
    element('h2', named(operationTitle(i))),
    paragraph('Requested by ', fiberLink(o.fiber[i]), scope >= 0 ? [' in ', scopeLink(scope)] : '',
      ` on ${threadName(o.thread[i])}, at ${moment(o.began[i], 10)}.`),
    operationPlace(i) ? paragraph(`Place: ${operationPlace(i)}.`) : '',
    paragraph(o.route[i] === INLINE ? 'It ran inline: ' : `It went to ${where === 'offload' ? 'the kernel (offload)' : `the ${where}`}: `,
      `${head.reasons[o.reason[i]] ?? 'the reason is not recorded'}.`),
    ...describeWay(i),
    describeEnd(i),
    terms(timesOf(i)),
    describeTaskWork(i),
  ].filter(Boolean);
}

/** Submission, execution and completion. */
function describeWay(i) {
  const o = trace.operations;
  const lines = [];
  if (o.submission[i] >= 0 && o.submission[i] < trace.submissions.count) {
    const batch = o.submission[i];
    lines.push(paragraph(`It waited ${span(o.submitted[i] - o.began[i] || 0)} in the queue and was submitted in `,
      link('submission', batch, `a batch of ${trace.submissions.requests[batch]}`),
      `, ${WHYS_IN_FULL[trace.submissions.why[batch]]}.`));
  }
  if (o.ranOn[i] >= 0) {
    lines.push(paragraph(`${threadName(o.ranOn[i])} began it after ${span(o.started[i] - o.began[i] || 0)}`,
      Number.isNaN(o.completed[i]) ? '.' : ` and took ${span(o.completed[i] - firstKnown(o.started[i], o.began[i], 0))}.`));
  } else if (o.route[i] === RING && !Number.isNaN(o.submitted[i]) && !Number.isNaN(o.completed[i])) {
    lines.push(paragraph(`It was with the kernel and the device for ${span(o.completed[i] - o.submitted[i])}`,
      o.request[i] >= 0 ? [': ', link('request', o.request[i], 'as the kernel saw it')] : '', '.'));
  }
  if (o.met[i] > 0) {
    lines.push(paragraph([
      '', 'Its completion was already in the queue when the worker looked; no call was made for it.',
      'The worker found its completion by io_uring_enter with GETEVENTS, without sleeping.',
      'The worker slept in io_uring_enter until its completion woke it.',
    ][o.met[i]]));
  }
  return lines;
}

function describeEnd(i) {
  const o = trace.operations;
  if (o.result[i] === 0) {
    return paragraph(element('strong', Number.isNaN(o.taken[i]) ? 'Its end is not recorded.' : 'Its result is not recorded.'));
  }
  const text = resultText(o.result[i], o.size[i] > 0);
  const failed = errnoOf(o.result[i]) >= 0;
  return paragraph(failed ? element('strong', `It failed: ${text}.`) : `Result: ${text}.`,
    o.abandoned[i] ? ' Its fiber no longer waited for it.' : '');
}

/** Known periods of an operation in order of time. */
function timesOf(i) {
  const o = trace.operations;
  const marks = [
    ['waiting to be submitted', o.began[i], o.submitted[i]],
    ['waiting to begin', firstKnown(o.submitted[i], o.began[i], 0), o.started[i]],
    [o.route[i] === RING ? 'kernel and device' : 'running', firstKnown(o.started[i], o.submitted[i], o.began[i]), o.completed[i]],
    ['completed, not yet taken', o.completed[i], o.taken[i]],
    ['kernel, device, and until taken', o.route[i] === RING && Number.isNaN(o.completed[i]) ? o.submitted[i] : NaN, o.taken[i]],
  ];
  const periods = marks.filter(([, from, to]) => to - from > 0).map(([name, from, to]) => [name, span(to - from)]);
  return [...periods, ['total', Number.isNaN(o.taken[i]) ? '' : span(o.taken[i] - o.began[i])]];
}

/** Task work that ran on its thread meanwhile, by cause. */
function describeTaskWork(i) {
  const o = trace.operations;
  const causes = sources[o.thread[i]]?.causes;
  if (!causes || o.route[i] !== RING) {
    return null;
  }
  const low = lowerBound(causes.times, o.began[i]);
  const high = lowerBound(causes.times, o.until[i] + 1, low);
  const counts = head.causes.map((name, cause) => [name, causes.count(low, high, cause)]).filter(([, count]) => count > 0);
  if (counts.length === 0) {
    return null;
  }
  const text = counts.map(([name, count]) => `${name} ${count.toLocaleString('en')}`).join(', ');
  return paragraph(`Task work of ${threadName(o.thread[i])} meanwhile: ${text}. `, link('event', causes.items[low], 'Show the first run'), '.');
}

function describeFiber(i) {
  const { scope, began, ended } = trace.fibers;
  const asked = tree.operationsOf.first[i + 1] - tree.operationsOf.first[i];
  const opened = tree.scopesOf.first[i + 1] - tree.scopesOf.first[i];
  const list = element('ol');
  for (let k = 0; k < Math.min(asked, MOST_LISTED); k++) {
    const one = tree.operationsOf.items[tree.operationsOf.first[i] + k];
    const took = trace.operations.until[one] - trace.operations.began[one];
    list.append(element('li', link('operation', one, operationTitle(one)), ` ${span(took)}`));
  }
  return [
    element('h2', named(fiberTitle(i))),
    paragraph('Spawned in ', scopeLink(scope[i]), `, first polled at ${moment(began[i], 10)}; `,
      Number.isNaN(ended[i]) ? 'its end is not recorded.' : `it took ${span(ended[i] - began[i])}.`),
    paragraph(`It requested ${many(asked, 'operation')} and opened ${many(opened, 'scope')}.`),
    list,
    asked > MOST_LISTED ? paragraph(`… and ${(asked - MOST_LISTED).toLocaleString('en')} more.`) : '',
  ];
}

function describeScope(i) {
  const { thread, fiber, began, ended, cancelled } = trace.scopes;
  const count = tree.fibersOf.first[i + 1] - tree.fibersOf.first[i];
  const fold = element('button', folds.scopes.has(i) ? 'Unfold' : 'Fold to one row');
  fold.type = 'button';
  fold.className = 'fold';
  fold.dataset.scope = i;
  return [
    element('h2', named(scopeTitle(i))),
    paragraph(`Scope ${i} on ${threadName(thread[i])}`, fiber[i] >= 0 ? [', opened by ', fiberLink(fiber[i])] : ', outermost',
      `, at ${moment(began[i], 10)}; `,
      Number.isNaN(ended[i]) ? 'its end is not recorded.' : `it took ${span(ended[i] - began[i])}.`),
    Number.isNaN(cancelled[i]) ? '' : paragraph(element('strong', `It was cancelled after ${span(cancelled[i] - began[i])}.`)),
    paragraph(`${many(count, 'fiber')}; ${many(operationsIn(i).length, 'operation')}, including those of inner scopes.`),
    fold,
  ];
}

function describeSubmission(i) {
  const { thread, began, requests, why, inFlight } = trace.submissions;
  const list = element('ol');
  const own = tree.batch.items.subarray(tree.batch.first[i], tree.batch.first[i + 1]);
  for (const one of own.subarray(0, MOST_LISTED)) {
    list.append(element('li', link('operation', one, operationTitle(one))));
  }
  return [
    element('h2', `A batch of ${many(requests[i], 'request')}`),
    paragraph(`Submitted to the ring of ${threadName(thread[i])} at ${moment(began[i], 10)}, ${WHYS_IN_FULL[why[i]]}. `,
      `${inFlight[i].toLocaleString('en')} requests were in flight, including these.`),
    list,
    own.length > MOST_LISTED ? paragraph(`… and ${(own.length - MOST_LISTED).toLocaleString('en')} more.`) : '',
  ];
}

function describeRequest(i) {
  const r = trace.requests;
  const data = (r.high[i].toString(16) + r.low[i].toString(16).padStart(8, '0')).replace(/^0+(?=.)/, '');
  return [
    element('h2', named(requestTitle(i))),
    paragraph(`Submitted by ${threadName(r.thread[i])} to ring ${r.ring[i]} at ${moment(r.began[i], 10)}.`),
    Number.isNaN(r.handedOver[i]) ? '' : paragraph(`Handed to a worker of the kernel after ${span(r.handedOver[i] - r.began[i])}.`),
    paragraph(Number.isNaN(r.completed[i]) ? 'Its completion is not recorded.'
      : `Completed after ${span(r.completed[i] - r.began[i])}: ${resultText(r.result[i], false)}.`),
    terms([['user_data', `0x${data}`]]),
  ];
}

function describeDevice(i) {
  const d = trace.devices;
  return [
    element('h2', deviceTitle(i)),
    paragraph(`Given to ${threadName(d.thread[i])} by ${d.by[i] >= 0 ? threadName(d.by[i]) : 'another thread of the machine'}`,
      ` at ${moment(d.began[i], 10)}.`),
    paragraph(Number.isNaN(d.completed[i]) ? 'Its completion is not recorded.'
      : `${d.failed[i] ? 'Failed' : 'Completed'} after ${span(d.until[i] - d.began[i])}.`),
    terms([['first sector', d.sector[i].toLocaleString('en')]]),
  ];
}

function describeEvent(i) {
  const k = trace.kernel;
  const did = k.did[i];
  const what = {
    [TASK_WORK]: `Ran task work: ${many(k.second[i], 'unit')}, cause: ${head.causes[k.first[i]]}`,
    [TASK_ADD]: 'Task work was added for this thread',
    [HAND_OVER]: 'A request was handed to a worker of the kernel',
    [SLEEP]: 'Fell asleep',
    [BEGAN]: 'Began',
    [RUN]: 'Ran again; its wake-up was not recorded',
    [ENDED]: 'Ended',
    [WAKE]: `Was made ready to run${did === WAKE && k.first[i] > 0 ? ` by ${threadName(k.first[i] - 1)}` : ''}`,
  }[did];
  const chain = head.chains[k.chain[i]];
  return [
    element('h2', DIDS[did] ?? 'event'),
    paragraph(`${what}: ${threadName(k.thread[i])}, processor ${k.processor[i]}, at ${moment(k.began[i], 1)}.`),
    did === HAND_OVER && k.first[i] > 0 ? paragraph(link('request', k.first[i] - 1, 'Show the request'), '.') : '',
    chain ? paragraph('Functions of the kernel, innermost first:') : '',
    chain ? element('ol', ...chain.map((name) => element('li', element('code', shown(name))))) : '',
  ];
}

function describeRest(i) {
  const { thread, began, ended } = trace.rests;
  return [element('h2', head.idle), paragraph(
    `${threadName(thread[i])} was idle for ${span(ended[i] - began[i])}, from ${moment(began[i], 10)} on.`)];
}

function describeEnter(i) {
  const e = trace.enters;
  return [
    element('h2', 'io_uring_enter'),
    paragraph(`${threadName(e.thread[i])} was in it for ${span(e.ended[i] - e.began[i])}, from ${moment(e.began[i], 10)} on`,
      e.how[i] & 2 ? ', and slept in it.' : '.'),
    terms([
      ['submitted', e.submitted[i].toLocaleString('en')], ['waited for', e.how[i] & 1 ? 'a completion' : 'nothing'],
      ['completions before', e.found[i].toLocaleString('en')], ['completions after', e.taken[i].toLocaleString('en')],
    ]),
  ];
}

const STORIES = {
  operation: describeOperation, fiber: describeFiber, scope: describeScope, submission: describeSubmission, request: describeRequest,
  event: describeEvent, rest: describeRest, enter: describeEnter, device: describeDevice,
};

export { STORIES, timesOf };
