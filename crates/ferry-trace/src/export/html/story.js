// The story of one thing, in words: its origin, its route and the reason for it, and where its time went.

import { firstKnown, head, trace } from './data.js';
import { element, link, named, paragraph, terms } from './dom.js';
import {
  BEGAN, DIDS, ENDED, errnoOf, fiberTitle, HAND_OVER, INLINE, many, moment, operationTitle, requestTitle, resultText,
  RING, RUN, scopeTitle, shown, SLEEP, span, TASK_ADD, TASK_WORK, threadName, WAKE, WHYS_IN_FULL,
} from './words.js';
import { lowerBound } from './steps.js';
import { tree } from './layout.js';
import { folds, operationsIn, sources } from './tracks.js';

/** Lists in a story are cut here. */
const MOST_LISTED = 100;

function fiberLink(fiber) {
  return fiber >= 0 && fiber < trace.fibers.count ? link('fiber', fiber, fiberTitle(fiber)) : 'no fiber that the trace knows';
}

function scopeLink(scope) {
  return scope >= 0 && scope < trace.scopes.count ? link('scope', scope, scopeTitle(scope)) : 'a scope that the trace does not know';
}

function describeOperation(i) {
  const o = trace.operations;
  const where = head.routes[o.route[i]] ?? 'somewhere';
  const scope = o.fiber[i] >= 0 ? trace.fibers.scope[o.fiber[i]] ?? -1 : -1;
  return [
    element('h2', named(operationTitle(i))),
    paragraph('Asked by ', fiberLink(o.fiber[i]), scope >= 0 ? [' in ', scopeLink(scope)] : '',
      ` on ${threadName(o.thread[i])}, at ${moment(o.began[i], 10)}.`),
    paragraph(o.route[i] === INLINE ? 'It ran inline: ' : `It went to ${where === 'offload' ? 'the kernel (offload)' : `the ${where}`}: `,
      `${head.reasons[o.reason[i]] ?? 'the trace does not say why'}.`),
    ...describeWay(i),
    describeEnd(i),
    terms(timesOf(i)),
    describeTaskWork(i),
  ].filter(Boolean);
}

/** How it was submitted, run and answered. */
function describeWay(i) {
  const o = trace.operations;
  const told = [];
  if (o.submission[i] >= 0 && o.submission[i] < trace.submissions.count) {
    const batch = o.submission[i];
    told.push(paragraph(`It waited ${span(o.submitted[i] - o.began[i] || 0)} in the queue and was submitted in `,
      link('submission', batch, `a batch of ${trace.submissions.requests[batch]}`),
      `, ${WHYS_IN_FULL[trace.submissions.why[batch]]}.`));
  }
  if (o.ranOn[i] >= 0) {
    told.push(paragraph(`${threadName(o.ranOn[i])} took it up after ${span(o.started[i] - o.began[i] || 0)}`,
      Number.isNaN(o.completed[i]) ? '.' : ` and worked ${span(o.completed[i] - firstKnown(o.started[i], o.began[i], 0))} on it.`));
  } else if (o.route[i] === RING && !Number.isNaN(o.submitted[i]) && !Number.isNaN(o.completed[i])) {
    told.push(paragraph(`The kernel and the device had it for ${span(o.completed[i] - o.submitted[i])}`,
      o.request[i] >= 0 ? [': ', link('request', o.request[i], 'as the kernel saw it')] : '', '.'));
  }
  if (o.met[i] > 0) {
    told.push(paragraph([
      '', 'Its completion was already there when the worker looked; no call was made for it.',
      'A call of io_uring_enter with GETEVENTS found its completion without sleeping.',
      'The worker slept in io_uring_enter until its completion woke it.',
    ][o.met[i]]));
  }
  return told;
}

function describeEnd(i) {
  const o = trace.operations;
  if (o.result[i] === 0) {
    return paragraph(element('strong', Number.isNaN(o.taken[i]) ? 'Its answer is not in the trace.' : 'Its result is not in the trace.'));
  }
  const text = resultText(o.result[i], o.size[i] > 0);
  const failed = errnoOf(o.result[i]) >= 0;
  return paragraph(failed ? element('strong', `It failed: ${text}.`) : `Result: ${text}.`,
    o.abandoned[i] ? ' Its fiber did not wait for it any more.' : '');
}

/** Where the time went, in order; what is not known is not told. */
function timesOf(i) {
  const o = trace.operations;
  const marks = [
    ['waiting to be submitted', o.began[i], o.submitted[i]],
    ['waiting to be begun', firstKnown(o.submitted[i], o.began[i], 0), o.started[i]],
    [o.route[i] === RING ? 'kernel and device' : 'running', firstKnown(o.started[i], o.submitted[i], o.began[i]), o.completed[i]],
    ['done, not yet taken', o.completed[i], o.taken[i]],
    ['kernel and device, until it was taken', o.route[i] === RING && Number.isNaN(o.completed[i]) ? o.submitted[i] : NaN, o.taken[i]],
  ];
  const told = marks.filter(([, from, to]) => to - from > 0).map(([name, from, to]) => [name, span(to - from)]);
  return [...told, ['in all', Number.isNaN(o.taken[i]) ? '' : span(o.taken[i] - o.began[i])]];
}

/** What made task work run on its thread meanwhile. */
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
  return paragraph(`Task work of ${threadName(o.thread[i])} meanwhile: ${text}. `, link('event', causes.items[low], 'The first'), '.');
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
      Number.isNaN(ended[i]) ? 'its end is not in the trace.' : `it took ${span(ended[i] - began[i])}.`),
    paragraph(`It asked for ${many(asked, 'operation')} and opened ${many(opened, 'scope')}.`),
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
      Number.isNaN(ended[i]) ? 'its end is not in the trace.' : `with everything in it, it took ${span(ended[i] - began[i])}.`),
    Number.isNaN(cancelled[i]) ? '' : paragraph(element('strong', `It was cancelled after ${span(cancelled[i] - began[i])}.`)),
    paragraph(`${many(count, 'fiber')} in it; ${many(operationsIn(i).length, 'operation')} with those further in.`),
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
    paragraph(`Given to the ring of ${threadName(thread[i])} at ${moment(began[i], 10)}, ${WHYS_IN_FULL[why[i]]}. `,
      `With it, ${inFlight[i].toLocaleString('en')} were in flight.`),
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
    paragraph(Number.isNaN(r.completed[i]) ? 'Its completion is not in the trace.'
      : `Completed after ${span(r.completed[i] - r.began[i])}: ${resultText(r.result[i], false)}.`),
    terms([['user_data', `0x${data}`]]),
  ];
}

function describeEvent(i) {
  const k = trace.kernel;
  const did = k.did[i];
  const what = {
    [TASK_WORK]: `Ran task work: ${many(k.second[i], 'unit')}, because of ${head.causes[k.first[i]]}`,
    [TASK_ADD]: 'Work was left for this thread',
    [HAND_OVER]: 'A request was handed to a worker of the kernel',
    [SLEEP]: 'Fell asleep',
    [BEGAN]: 'Began',
    [RUN]: 'Ran again; by whom it was woken is not known',
    [ENDED]: 'Ended',
    [WAKE]: `Was made ready to run${did === WAKE && k.first[i] > 0 ? ` by ${threadName(k.first[i] - 1)}` : ''}`,
  }[did];
  const chain = head.chains[k.chain[i]];
  return [
    element('h2', DIDS[did] ?? 'event'),
    paragraph(`${what}: ${threadName(k.thread[i])}, processor ${k.processor[i]}, at ${moment(k.began[i], 1)}.`),
    did === HAND_OVER && k.first[i] > 0 ? paragraph(link('request', k.first[i] - 1, 'The request'), '.') : '',
    chain ? paragraph('The kernel was in, innermost first:') : '',
    chain ? element('ol', ...chain.map((name) => element('li', element('code', shown(name))))) : '',
  ];
}

function describeRest(i) {
  const { thread, began, ended } = trace.rests;
  return [element('h2', head.idle), paragraph(
    `${threadName(thread[i])} waited ${span(ended[i] - began[i])} with nothing to do, from ${moment(began[i], 10)} on.`)];
}

function describeEnter(i) {
  const e = trace.enters;
  return [
    element('h2', 'io_uring_enter'),
    paragraph(`${threadName(e.thread[i])} was in it for ${span(e.ended[i] - e.began[i])}, from ${moment(e.began[i], 10)} on`,
      e.how[i] & 2 ? ', and slept there.' : '.'),
    terms([
      ['submitted', e.submitted[i].toLocaleString('en')], ['waited', e.how[i] & 1 ? 'for a completion' : 'no'],
      ['completions before', e.found[i].toLocaleString('en')], ['completions after', e.taken[i].toLocaleString('en')],
    ]),
  ];
}

const STORIES = {
  operation: describeOperation, fiber: describeFiber, scope: describeScope, submission: describeSubmission, request: describeRequest,
  event: describeEvent, rest: describeRest, enter: describeEnter,
};

export { STORIES, timesOf };
