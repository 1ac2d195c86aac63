// The beginning: sizes, colours, names in the margin, the first picture.

/** Gives a canvas the pixels that its place on the screen has. */
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
  content.style.height = `${contentHeight}px`;
  timeline.style.maxHeight = `${Math.max(contentHeight, 120)}px`;
  canvas.style.height = `${timeline.clientHeight}px`;
  canvas.style.width = `${timeline.clientWidth - margin}px`;
  axis.style.width = canvas.style.width;
  overview.style.width = canvas.style.width;
  fitCanvas(canvas, context);
  fitCanvas(axis, axisContext);
  fitCanvas(overview, overviewContext);
  overviewPicture = null;
  view.width = Math.max(canvas.clientWidth, 1);
  redraw();
}

/** The tracks' names, beside them. */
function relabel() {
  placeTracks();
  document.getElementById('labels').replaceChildren(...tracks.map(labelOf));
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
      const heads = tracks.filter((one) => one.kind === 'flight');
      const place = heads.findIndex((one) => one.thread === track.thread);
      document.querySelectorAll('#labels .thread')[place]?.focus();
    });
  }
  return made;
}

function recolour() {
  chooseColours(context);
  document.getElementById('dark').setAttribute('aria-pressed', String(isDark()));
  overviewPicture = null;
  showLegend();
  redraw();
}

async function start() {
  showHeader();
  trace = await readTrace();
  view.end = trace.end;
  prepareTracks();
  addEverything();
  recolour();
  relabel();
  listen();
  document.documentElement.dataset.ready = 'true';
  // The figures go over everything; the first picture need not wait for them.
  setTimeout(showSummary, 0);
}

start().catch((error) => {
  const notice = document.getElementById('lost');
  notice.hidden = false;
  notice.textContent = `This browser cannot draw the page: ${error.message}`;
  console.error(error);
});
