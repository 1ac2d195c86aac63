// Sizes of the canvases, the tracks' names beside them, and folding.

import { redraw } from './frame.js';
import { element, named } from './dom.js';
import { view } from './view.js';
import { Layout } from './layout.js';
import { folds, picture, placeTracks } from './tracks.js';
import { canvas, context, timeline } from './draw.js';
import { axis, axisContext, forgetOverview, overview, overviewContext } from './overview.js';

/** Sets a canvas's pixels to those of its area on the screen. */
function fitCanvas(target, on) {
  const ratio = Math.min(devicePixelRatio, 2);
  const [width, height] = [target.clientWidth * ratio, target.clientHeight * ratio].map(Math.round);
  if (target.width !== width || target.height !== height) {
    target.width = Math.max(1, width);
    target.height = Math.max(1, height);
  }
  on.setTransform(ratio, 0, 0, ratio, 0, 0);
}

function resize() {
  const margin = parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--margin'));
  const content = document.getElementById('content');
  content.style.height = `${picture.height}px`;
  timeline.style.maxHeight = `${Math.max(picture.height, 120)}px`;
  canvas.style.height = `${timeline.clientHeight}px`;
  canvas.style.width = `${timeline.clientWidth - margin}px`;
  axis.style.width = canvas.style.width;
  overview.style.width = canvas.style.width;
  fitCanvas(canvas, context);
  fitCanvas(axis, axisContext);
  fitCanvas(overview, overviewContext);
  forgetOverview();
  view.width = Math.max(canvas.clientWidth, 1);
  redraw();
}

/** Places the tracks anew, with their names beside them. */
function relabel() {
  placeTracks();
  document.getElementById('labels').replaceChildren(...picture.tracks.map(labelOf));
  resize();
}

function labelOf(track) {
  const isHead = track.kind === 'flight';
  const made = element(isHead ? 'button' : 'span', named(track.label));
  made.className = isHead ? 'thread' : 'track';
  made.title = track.label;
  made.style.top = `${track.y}px`;
  const height = isHead ? 20 : Math.max(track.height, 13);
  made.style.height = `${height}px`;
  if (height < 30) {
    made.style.lineHeight = made.style.height;
  }
  if (isHead) {
    made.type = 'button';
    made.setAttribute('aria-expanded', String(!folds.threads.has(track.thread)));
    made.addEventListener('click', () => {
      toggleThread(track.thread);
      const heads = picture.tracks.filter((one) => one.kind === 'flight');
      const place = heads.findIndex((one) => one.thread === track.thread);
      document.querySelectorAll('#labels .thread')[place]?.focus();
    });
  }
  return made;
}

function toggleThread(thread) {
  if (!folds.threads.delete(thread)) {
    folds.threads.add(thread);
  }
  relabel();
}

function toggleScope(scope) {
  if (!folds.scopes.delete(scope)) {
    folds.scopes.add(scope);
  }
  picture.layout = new Layout(folds.scopes);
  relabel();
}

export { relabel, resize, toggleScope, toggleThread };
