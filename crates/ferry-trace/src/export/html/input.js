// Keys, wheel, pointer and buttons.

const wordsField = document.getElementById('words');
const help = document.getElementById('help');

const KEYS = {
  w: () => glideBy(0.6, 0), '+': () => glideBy(0.6, 0), '=': () => glideBy(0.6, 0),
  s: () => glideBy(1 / 0.6, 0), '-': () => glideBy(1 / 0.6, 0),
  a: () => glideBy(1, -0.25), ArrowLeft: () => glideBy(1, -0.25),
  d: () => glideBy(1, 0.25), ArrowRight: () => glideBy(1, 0.25),
  ArrowUp: () => scrollTracks(-3 * ROW), ArrowDown: () => scrollTracks(3 * ROW),
  f: fit, 0: () => glide(0, trace.end), '/': () => wordsField.focus(), n: () => goToMatch(1), N: () => goToMatch(-1),
  ',': () => step(-1), '.': () => step(1), Enter: selectFirst, '?': showHelp, Escape: () => select(null),
};

function scrollTracks(pixels) {
  timeline.scrollTop += pixels;
}

function fit() {
  if (selected) {
    const [begin, end] = spanOf(selected);
    const margin = Math.max((end - begin) * 0.1, view.width / MOST_PIXELS_A_NANO / 2);
    glide(begin - margin, end + margin);
  }
}

/** The one before or after what is selected, of its kind. */
function step(by) {
  if (selected) {
    goTo({ kind: selected.kind, index: selected.index + by });
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
      `The last ${times.length} pictures took ${times[times.length >> 1].toFixed(1)} ms each to draw (median), `
      + `${times[times.length - 1].toFixed(1)} ms at most.`;
  }
  help.showModal();
}

/** Keys are the timeline's unless they are typed into something or press it. */
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
  // Elsewhere, arrows scroll what they scroll anyway.
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
  going = null;
  event.preventDefault();
}

/** Pointers that are down: one pans, two zoom. */
const down = new Map();
let dragged = false;

function onDown(event) {
  canvas.setPointerCapture(event.pointerId);
  down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  dragged = down.size > 1;
  going = null;
}

function onMove(event) {
  const before = down.get(event.pointerId);
  pointer = event.pointerType === 'touch' ? null : { x: event.offsetX };
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
  pointer = null;
  showTip(null);
  redraw();
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
let waiting = 0;

function searchNow() {
  clearTimeout(waiting);
  if (searched !== wordsField.value) {
    searched = wordsField.value;
    search(searched);
  }
}

function listen() {
  document.addEventListener('keydown', onKey);
  listenToCanvas();
  listenToButtons();
  brush();
  // A search of much waits until typing pauses.
  wordsField.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(searchNow, 150);
  });
  addEventListener('resize', resize);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
}
