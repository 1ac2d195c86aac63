// The timeline's part of a frame: the tracks in view.

import { trace } from './data.js';
import { view } from './view.js';
import { picture } from './tracks.js';
import { colours } from './colours.js';
import { canvas, context, drawGrid, FONT, selection, timeline } from './draw.js';
import { paintCauses, paintFlight, paintGauge, paintKernel, paintState, paintSubmissions } from './bands.js';
import { paintDevices, paintPool, paintRequests, paintRows } from './rows.js';
import { placeOf } from './places.js';

const PAINT = {
  flight: paintFlight, state: paintState, submissions: paintSubmissions, causes: paintCauses, kernel: paintKernel,
  gauge: paintGauge, pool: paintPool, rows: paintRows, requests: paintRequests, devices: paintDevices,
};

function drawTimeline() {
  const height = canvas.clientHeight;
  const top = timeline.scrollTop;
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, view.width, height);
  drawGrid(height);
  context.font = FONT;
  context.textBaseline = 'middle';
  context.lineJoin = 'round';
  for (const track of picture.tracks) {
    const y = track.y - top;
    if (y < height && y + track.height > 0) {
      PAINT[track.kind](track, y, height);
    }
  }
  drawFlow(top);
  if (selection.pointer) {
    context.fillStyle = colours.faint;
    context.fillRect(Math.round(selection.pointer.x), 0, 1, height);
  }
  if (picture.tracks.length === 0) {
    context.fillStyle = colours.faint;
    context.fillText('Nothing was recorded.', 12, 20);
  }
}

/** Draws a curve from the batch of the selected operation to its submission. */
function drawFlow(top) {
  if (selection.current?.kind !== 'operation') {
    return;
  }
  const { submission, submitted } = trace.operations;
  const from = placeOf({ kind: 'submission', index: submission[selection.current.index] });
  const to = placeOf(selection.current);
  if (submission[selection.current.index] < 0 || !from || !to) {
    return;
  }
  const x0 = view.x(trace.submissions.began[submission[selection.current.index]]);
  const x1 = view.x(submitted[selection.current.index]);
  const y0 = from.y + from.height - top;
  const y1 = to.y + 4 - top;
  context.strokeStyle = colours.focus;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + 18, (y0 + y1) / 2, x1 - 18, (y0 + y1) / 2, x1, y1);
  context.stroke();
}

export { drawTimeline };
