// Keys, wheel, pointer and buttons.

import { pace, redraw } from './frame.js';
import { trace } from './data.js';
import { lowerBound } from './steps.js';
import { glide, glideBy, MOST_PIXELS_A_NANO, view } from './view.js';
import { ROW } from './tracks.js';
import { search, subject } from './search.js';
import { isDark } from './colours.js';
import { canvas, selection, timeline } from './draw.js';
import { brush } from './overview.js';
import { resize, toggleScope } from './labels.js';
import { spanOf } from './places.js';
import { goTo, goToMatch, select } from './select.js';
import { hit, showTip } from './hit.js';
import { recolour } from './legend.js';

const wordsField = document.getElementById('words');
const help = document.getElementById('help');

const KEYS = {
  w: () => glideBy(0.6, 0), '+': () => glideBy(0.6, 0), '=': () => glideBy(0.6, 0),
  s: () => glideBy(1 / 0.6, 0), '-': () => glideBy(1 / 0.6, 0),
  a: () => glideBy(1, -0.25), ArrowLeft: () => glideBy(1, -0.25),
  d: () => glideBy(1, 0.25), ArrowRight: () => glideBy(1, 0.25),
  ArrowUp: () => scrollTracks(-3 * ROW), ArrowDown: () => scrollTracks(3 * ROW),
  f: fit, 0: () => glide(0, trace.end), '/': () => wordsField.focus(), n: () => goToMatch(1), N: () => goToMatch(-1),
  ',': () => goBy(-1), '.': () => goBy(1), Enter: selectFirst, '?': showHelp, Escape: () => select(null),
};

function scrollTracks(pixels) {
  timeline.scrollTop += pixels;
}

function fit() {
  if (selection.current) {
    const [begin, end] = spanOf(selection.current);
    const margin = Math.max((end - begin) * 0.1, view.width / MOST_PIXELS_A_NANO / 2);
    glide(begin - margin, end + margin);
  }
}

/** Goes to the next or previous thing of the selection's kind. */
function goBy(by) {
  if (selection.current) {
    goTo({ kind: selection.current.kind, index: selection.current.index + by });
  }
}

function selectFirst() {
  const { kind, table } = subject();
  const index = lowerBound(table.began, view.begin);
  if (index < table.count) {
    goTo({ kind, index });
  }
}

function showHelp() {
  const times = pace.toSorted((a, b) => a - b);
  if (times.length > 0) {
    document.getElementById('pace').textContent =
      `Drawing took ${times[times.length >> 1].toFixed(1)} ms a frame (median of the last ${times.length}), `
      + `${times[times.length - 1].toFixed(1)} ms at most.`;
  }
  help.showModal();
}

/** Keys belong to the timeline unless they are typed into a field or press a button. */
function onKey(event) {
  const { target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) {
    return;
  }
  if (target === wordsField) {
    if (event.key === 'Escape') {
      timeline.focus();
    }
    return;
  }
  // Elsewhere, arrows keep scrolling.
  const isElsewhere = target !== timeline && (target !== document.body || /^Arrow(Up|Down)$/.test(event.key));
  if (isElsewhere && event.key.startsWith('Arrow')) {
    return;
  }
  const pressesSomething = event.key === 'Enter' && target !== timeline;
  const action = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
  if (action && !pressesSomething) {
    event.preventDefault();
    action();
  }
}

function onWheel(event) {
  const lines = event.deltaMode === 1 ? 16 : 1;
  if (event.shiftKey) {
    scrollTracks((event.deltaY || event.deltaX) * lines);
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    view.pan(event.deltaX * lines);
  } else {
    const box = canvas.getBoundingClientRect();
    view.zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * lines * 0.002))), event.clientX - box.left);
  }
  view.move = null;
  event.preventDefault();
}

/** Pressed pointers: one pans, two zoom. */
const down = new Map();
let dragged = false;

function onDown(event) {
  canvas.setPointerCapture(event.pointerId);
  down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  dragged = down.size > 1;
  view.move = null;
}

function onMove(event) {
  const before = down.get(event.pointerId);
  selection.pointer = event.pointerType === 'touch' ? null : { x: event.offsetX };
  if (!before) {
    hover(event);
    redraw();
    return;
  }
  const now = { x: event.offsetX, y: event.offsetY };
  const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
  if (other) {
    const factor = Math.max(Math.abs(before.x - other.x), 8) / Math.max(Math.abs(now.x - other.x), 8);
    view.zoom(factor, (now.x + other.x) / 2);
  } else if (dragged || Math.abs(now.x - before.x) + Math.abs(now.y - before.y) > 4) {
    dragged = true;
    view.pan(before.x - now.x);
    if (event.pointerType !== 'touch') {
      scrollTracks(before.y - now.y);
    }
    showTip(null);
  } else {
    return;
  }
  down.set(event.pointerId, now);
}

function onUp(event) {
  if (down.delete(event.pointerId) && !dragged) {
    const found = hit(event.offsetX, event.offsetY + timeline.scrollTop);
    select(found?.kind ? { kind: found.kind, index: found.index } : null);
  }
}

function hover(event) {
  const found = hit(event.offsetX, event.offsetY + timeline.scrollTop);
  canvas.style.cursor = found?.kind ? 'pointer' : 'grab';
  showTip(found, event.clientX, event.clientY);
}

function onLeave() {
  selection.pointer = null;
  showTip(null);
  redraw();
}

/** Buttons in stories and tables: links to other things, and the fold button of a scope. */
function onLink({ target }) {
  const button = target.closest?.('button.link');
  if (button) {
    goTo({ kind: button.dataset.kind, index: Number(button.dataset.index) });
  }
  const fold = target.closest?.('button.fold');
  if (fold) {
    const index = Number(fold.dataset.scope);
    toggleScope(index);
    select({ kind: 'scope', index });
  }
}

function listenToCanvas() {
  canvas.addEventListener('wheel', onWheel, { passive: false });
  canvas.addEventListener('pointerdown', onDown);
  canvas.addEventListener('pointermove', onMove);
  canvas.addEventListener('pointerup', onUp);
  canvas.addEventListener('pointercancel', (event) => down.delete(event.pointerId));
  canvas.addEventListener('pointerleave', onLeave);
  canvas.addEventListener('dblclick', (event) => {
    const found = hit(event.offsetX, event.offsetY + timeline.scrollTop);
    if (found?.kind === 'scope') {
      toggleScope(found.index);
    }
  });
  timeline.addEventListener('scroll', redraw);
}

function listenToButtons() {
  const on = (id, action) => document.getElementById(id).addEventListener('click', action);
  on('closer', KEYS.w);
  on('further', KEYS.s);
  on('all', KEYS[0]);
  on('fit', fit);
  on('previous', () => goToMatch(-1));
  on('keys', showHelp);
  on('close', () => select(null));
  on('dark', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    recolour();
  });
  document.getElementById('search').addEventListener('submit', (event) => {
    event.preventDefault();
    searchNow();
    goToMatch(1);
  });
}

let searched = '';
let searchTimer = 0;

function searchNow() {
  clearTimeout(searchTimer);
  if (searched !== wordsField.value) {
    searched = wordsField.value;
    search(searched);
  }
}

function listen() {
  document.addEventListener('keydown', onKey);
  document.addEventListener('click', onLink);
  listenToCanvas();
  listenToButtons();
  brush();
  // Searching a large trace waits for a pause in typing.
  wordsField.addEventListener('input', () => {
    clearTimeout(searchTimer);
    searchTimer = setTimeout(searchNow, 150);
  });
  addEventListener('resize', resize);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
}

export { listen };
