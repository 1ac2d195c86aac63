// Start of the page: reading, preparing, the first frame.

import { frame } from './frame.js';
import { readTrace, trace } from './data.js';
import { view } from './view.js';
import { prepareTracks } from './tracks.js';
import { addEverything, drawAxis, drawOverview } from './overview.js';
import { relabel } from './labels.js';
import { drawTimeline } from './timeline.js';
import { showHeader, showSummary } from './summary.js';
import { recolour } from './legend.js';
import { listen } from './input.js';

async function openPage() {
  frame.painters.push(drawTimeline, drawAxis, drawOverview);
  showHeader();
  await readTrace();
  view.end = trace.end;
  prepareTracks();
  addEverything();
  recolour();
  relabel();
  listen();
  document.documentElement.dataset.ready = 'true';
  // The figures need a pass over everything; the first frame does not wait for them.
  setTimeout(showSummary, 0);
}

openPage().catch((error) => {
  const notice = document.getElementById('lost');
  notice.hidden = false;
  notice.textContent = `This browser cannot draw the page: ${error.message}`;
  console.error(error);
});
