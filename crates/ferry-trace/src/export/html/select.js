// Selecting things and going to them.

import { redraw } from './frame.js';
import { trace } from './data.js';
import { glide, view } from './view.js';
import { Layout } from './layout.js';
import { folds, picture } from './tracks.js';
import { matches, showFound, subject } from './search.js';
import { canvas, selection, timeline } from './draw.js';
import { relabel, resize, toggleThread } from './labels.js';
import { placeOf, spanOf, TABLES, threadOf } from './places.js';
import { STORIES } from './story.js';

const panel = document.getElementById('panel');
const story = document.getElementById('story');

/** Selects a thing, or nothing, and shows its story. */
function select(what) {
  const hadPanel = !panel.hidden;
  selection.current = what;
  panel.hidden = !what;
  document.getElementById('fit').disabled = !what;
  const hadFocus = story.contains(document.activeElement);
  story.replaceChildren(...(what ? STORIES[what.kind](what.index) : []));
  panel.scrollTop = 0;
  if (hadFocus) {
    (what ? panel : timeline).focus();
  }
  if (hadPanel !== !panel.hidden) {
    resize();
  }
  redraw();
}

/** Selects a thing, and brings its time and track into view. */
function goTo(what) {
  const table = trace[TABLES[what.kind]];
  if (what.index < 0 || what.index >= table.count) {
    return;
  }
  select(what);
  const [begin, end] = spanOf(what);
  const isSeen = begin >= view.begin && end <= view.end;
  const isWide = (end - begin) * view.width / (view.end - view.begin) > 4;
  if (!isSeen || !isWide) {
    const length = isWide ? Math.max(view.end - view.begin, (end - begin) * 1.2) : Math.max((end - begin) * 12, 2000);
    glide((begin + end - length) / 2, (begin + end + length) / 2);
  }
  scrollToPlace(what);
}

/** Unfolds what hides a thing, and scrolls to it. */
function scrollToPlace(what) {
  const thread = threadOf(what.kind, what.index);
  if (folds.threads.has(thread)) {
    toggleThread(thread);
  }
  unfoldAround(what);
  const place = placeOf(what);
  if (place && (place.y < timeline.scrollTop || place.y + place.height > timeline.scrollTop + canvas.clientHeight)) {
    timeline.scrollTop = place.y - canvas.clientHeight / 4;
  }
  timeline.scrollIntoView({ block: 'nearest' });
  redraw();
}

function unfoldAround({ kind, index }) {
  let fiber = kind === 'fiber' ? index : kind === 'operation' ? trace.operations.fiber[index] : kind === 'scope' ? trace.scopes.fiber[index] : -1;
  let changed = false;
  for (let steps = 0; fiber >= 0 && fiber < trace.fibers.count && steps < trace.scopes.count; steps++) {
    const scope = trace.fibers.scope[fiber];
    changed = folds.scopes.delete(scope) || changed;
    fiber = trace.scopes.fiber[scope] ?? -1;
  }
  if (changed) {
    picture.layout = new Layout(folds.scopes);
    relabel();
  }
}

/** Goes to the next or previous match; at first to the nearest one from the beginning of the view. */
function goToMatch(step) {
  const { list } = matches;
  if (list.length === 0) {
    return;
  }
  const from = matches.current < 0 ? matches.after(view.begin) - (step > 0 ? 1 : 0) : matches.current;
  matches.current = (from + step + list.length) % list.length;
  showFound(document.getElementById('words').value);
  goTo({ kind: subject().kind, index: list[matches.current] });
}

export { goTo, goToMatch, select };
