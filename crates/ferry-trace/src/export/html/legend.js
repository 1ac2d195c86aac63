// The legend: only colours that occur in the recording.

import { redraw } from './frame.js';
import { head, trace } from './data.js';
import { element } from './dom.js';
import { POOL, RING, TASK_WORK, WHYS } from './words.js';
import { chooseColours, colours, hatching, isDark, mixed } from './colours.js';
import { context } from './draw.js';
import { forgetOverview } from './overview.js';

function swatch(colour, text, kind = 'solid') {
  const box = element('canvas');
  box.width = 22;
  box.height = 12;
  const on = box.getContext('2d');
  on.fillStyle = kind === 'device' ? hatching(on, colour, colours.paper) : kind === 'queue' ? mixed(colour, colours.paper, 0.22) : colour;
  on.fillRect(0, 0, 22, 12);
  box.setAttribute('aria-hidden', 'true');
  return element('li', box, text);
}

function legendPart(title, swatches) {
  const list = element('ul', ...swatches);
  return element('div', element('h3', title), list);
}

/** Only colours that occur in the recording. */
function showLegend() {
  const { operations, submissions, kernel, requests, devices } = trace;
  const parts = [];
  if (operations.count > 0) {
    const used = head.routes.map((name, route) => ({ name, route })).filter(({ route }) => operations.route.includes(route));
    parts.push(legendPart('Operations by route', used.map(({ name, route }) => swatch(colours.routes[route], name))));
    const isOnRing = operations.route.includes(RING);
    const any = colours.routes[isOnRing ? RING : used.at(-1).route];
    parts.push(legendPart('Time of operations', [
      swatch(any, 'waiting to begin, or completed and not yet taken', 'queue'),
      isOnRing ? swatch(any, 'with the kernel and the device', 'device') : '',
      swatch(used[0].route === RING ? any : colours.routes[used[0].route], 'running'),
      swatch(colours.ink, 'line below: failed'), swatch(colours.found, 'line above: found by search')].filter(Boolean)));
  }
  if (submissions.count > 0) {
    parts.push(legendPart('Submissions by reason', WHYS.map((why, i) => swatch(colours.whys[i], why))));
  }
  if (trace.rests.count + trace.enters.count > 0) {
    parts.push(legendPart('Workers', [
      swatch(colours.states[0], 'at work'), swatch(colours.states[1], head.idle), swatch(colours.states[2], 'in io_uring_enter')]));
  }
  if (kernel.did.includes(TASK_WORK)) {
    const present = new Set(kernel.first.filter((first, i) => kernel.did[i] === TASK_WORK));
    const swatches = head.causes.map((name, cause) => (present.has(cause) ? swatch(colours.causes[cause], name) : null));
    parts.push(legendPart('Task work by cause', swatches.filter(Boolean)));
  }
  if (kernel.did.some((did) => did !== TASK_WORK)) {
    parts.push(legendPart('Events of the kernel', [swatch(colours.states[0], 'awake'), swatch(colours.states[1], 'asleep'), swatch(colours.routes[POOL], 'made ready to run'),
      swatch(colours.faint, 'task work added'), swatch(colours.causes[3], 'request handed over')]));
  }
  if (requests.count > 0) {
    const isAll = operations.count === 0;
    parts.push(legendPart('Requests', [
      swatch(colours.requests[0], isAll ? 'in flight: number, or several in one column' : 'several in one column'),
      swatch(colours.requests[0], 'in the kernel', 'device'), swatch(colours.requests[1], 'with a worker of the kernel'),
      isAll ? swatch(colours.found, 'line above: found by search') : ''].filter(Boolean)));
  }
  if (devices.count > 0) {
    parts.push(legendPart('Requests of block devices, of every program', [
      swatch(colours.requests[0], 'read'), swatch(colours.requests[1], 'anything else')]));
  }
  document.getElementById('legend').replaceChildren(...parts);
}

function recolour() {
  chooseColours(context);
  document.getElementById('dark').setAttribute('aria-pressed', String(isDark()));
  forgetOverview();
  showLegend();
  redraw();
}

export { recolour };
