// The legend, and the same in figures and words: for who reads rather than looks.

function table(caption, columns, rows) {
  const headings = columns.map((column) => {
    const heading = element('th', column);
    heading.scope = 'col';
    return heading;
  });
  const body = rows.map(([first, ...cells]) => {
    const heading = element('th', first);
    heading.scope = 'row';
    return element('tr', heading, ...cells.map((cell) => element('td', cell)));
  });
  const made = element('table', element('caption', caption), element('thead', element('tr', ...headings)), element('tbody', ...body));
  const box = element('div', made);
  box.className = 'scroll';
  box.tabIndex = 0;
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', caption);
  return box;
}

/** Adds up what the operations of each route waited for. */
function routeRows() {
  const o = trace.operations;
  const sums = head.routes.map(() => ({ count: 0, queue: 0, work: 0, untaken: 0, longest: 0, failed: 0 }));
  for (let i = 0; i < o.count; i++) {
    const sum = sums[o.route[i]];
    const start = firstKnown(o.route[i] === RING ? o.submitted[i] : o.started[i], o.submitted[i], o.began[i]);
    const end = firstKnown(o.completed[i], o.until[i], o.until[i]);
    sum.count++;
    sum.queue += Math.max(0, start - o.began[i]);
    sum.work += Math.max(0, end - start);
    sum.untaken += Math.max(0, o.until[i] - end);
    sum.longest = Math.max(sum.longest, o.until[i] - o.began[i]);
    sum.failed += errnoOf(o.result[i]) >= 0 ? 1 : 0;
  }
  return sums.map((sum, route) => [head.routes[route], sum]).filter(([, sum]) => sum.count > 0).map(([name, sum]) => [
    name, sum.count.toLocaleString('en'), span(sum.queue / sum.count), span(sum.work / sum.count), span(sum.untaken / sum.count),
    span(sum.longest), sum.failed.toLocaleString('en'),
  ]);
}

/** The longest things of a table, longest first. */
function longest(table, count) {
  const best = [];
  for (let i = 0; i < table.count; i++) {
    const took = table.until[i] - table.began[i];
    if (best.length < count || took > best[best.length - 1].took) {
      best.push({ i, took });
      best.sort((a, b) => b.took - a.took);
      best.length = Math.min(best.length, count);
    }
  }
  return best;
}

function longestRows() {
  const { kind, table } = subject();
  const title = kind === 'operation' ? operationTitle : requestTitle;
  return longest(table, 10).map(({ i, took }) => [
    link(kind, i, title(i)), kind === 'operation' ? head.routes[table.route[i]] : `ring ${table.ring[i]}`,
    span(took), moment(table.began[i], 1000),
  ]);
}

function counted(names, valueOf, count, sizeOf) {
  const counts = names.map(() => [0, 0]);
  for (let i = 0; i < count; i++) {
    const value = valueOf(i);
    if (value >= 0 && value < names.length) {
      counts[value][0]++;
      counts[value][1] += sizeOf(i);
    }
  }
  return names.map((name, value) => [name, ...counts[value]]).filter(([, times]) => times > 0);
}

const SUMMARY_TABLES = [
  () => ['Operations by route', ['route', 'operations', 'mean wait to be begun', 'mean at work', 'mean done, not taken', 'longest', 'failed'], routeRows()],
  () => [`The longest ${subject().kind}s`, [subject().kind, subject().kind === 'operation' ? 'route' : 'ring', 'took', 'began at'], longestRows()],
  () => {
    const { submissions } = trace;
    const rows = counted(WHYS, (i) => submissions.why[i], submissions.count, (i) => submissions.requests[i]);
    return ['Batches by why they were submitted then', ['why', 'batches', 'requests', 'requests a batch'],
      rows.map(([why, times, requests]) => [why, times.toLocaleString('en'), requests.toLocaleString('en'), (requests / times).toFixed(1)])];
  },
  () => {
    const { operations, kernel } = trace;
    if (operations.count === 0) {
      // A program that is not ours: by what made its task work run.
      const rows = counted(METS, (i) => (kernel.did[i] === TASK_WORK ? head.causesMet[kernel.first[i]] : -1), kernel.count, (i) => kernel.second[i]);
      return ['How completions were met', ['how', 'units of task work'], rows.map(([how, , units]) => [how, units.toLocaleString('en')])];
    }
    return ['How completions were met', ['how', 'operations'],
      counted(METS, (i) => operations.met[i] || -1, operations.count, () => 0).map(([how, times]) => [how, times.toLocaleString('en')])];
  },
  () => {
    const { did, first, second, count } = trace.kernel;
    const rows = counted(head.causes, (i) => (did[i] === TASK_WORK ? first[i] : -1), count, (i) => second[i]);
    return ['Why task work ran', ['cause', 'runs', 'units of work'],
      rows.map(([cause, times, units]) => [cause, times.toLocaleString('en'), units.toLocaleString('en')])];
  },
  () => ['The runtime\'s own counters', ['counter', 'value'], head.counters.map(([name, value]) => [shown(name), value.toLocaleString('en')])],
];

function showSummary() {
  const place = document.getElementById('summary');
  for (const make of SUMMARY_TABLES) {
    const [caption, columns, rows] = make();
    if (rows.length > 0) {
      place.append(table(caption, columns, rows));
    }
  }
  if (place.childElementCount === 1) {
    place.append(paragraph('There is nothing in this recording that could be counted.'));
  }
}

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

/** Only what the recording has. */
function showLegend() {
  const { operations, submissions, kernel, requests } = trace;
  const parts = [];
  if (operations.count > 0) {
    const used = head.routes.map((name, route) => ({ name, route })).filter(({ route }) => operations.route.includes(route));
    parts.push(legendPart('Operations, by route', used.map(({ name, route }) => swatch(colours.routes[route], name))));
    const isOnRing = operations.route.includes(RING);
    const any = colours.routes[isOnRing ? RING : used.at(-1).route];
    parts.push(legendPart('Their time', [
      swatch(any, 'waiting to be begun, or done and not yet taken', 'queue'),
      isOnRing ? swatch(any, 'with the kernel and the device', 'device') : '',
      swatch(used[0].route === RING ? any : colours.routes[used[0].route], 'running'),
      swatch(colours.ink, 'a line below: it failed'), swatch(colours.found, 'a line above: found by search')].filter(Boolean)));
  }
  if (submissions.count > 0) {
    parts.push(legendPart('Submissions, by why then', WHYS.map((why, i) => swatch(colours.whys[i], why))));
  }
  if (trace.rests.count + trace.enters.count > 0) {
    parts.push(legendPart('Workers', [
      swatch(colours.states[0], 'at work'), swatch(colours.states[1], head.idle), swatch(colours.states[2], 'in io_uring_enter')]));
  }
  if (kernel.did.includes(TASK_WORK)) {
    const present = new Set(kernel.first.filter((first, i) => kernel.did[i] === TASK_WORK));
    const swatches = head.causes.map((name, cause) => (present.has(cause) ? swatch(colours.causes[cause], name) : null));
    parts.push(legendPart('Why task work ran', swatches.filter(Boolean)));
  }
  if (kernel.did.some((did) => did !== TASK_WORK)) {
    parts.push(legendPart('As the kernel saw it', [swatch(colours.states[0], 'awake'), swatch(colours.states[1], 'asleep'), swatch(colours.routes[POOL], 'made ready to run'),
      swatch(colours.faint, 'work was left for it'), swatch(colours.causes[3], 'a request was handed over')]));
  }
  if (requests.count > 0) {
    const isAll = operations.count === 0;
    parts.push(legendPart('Requests', [
      swatch(colours.requests[0], isAll ? 'in flight: how many, or several side by side' : 'several side by side'),
      swatch(colours.requests[0], 'in the kernel', 'device'), swatch(colours.requests[1], 'with a worker of the kernel'),
      isAll ? swatch(colours.found, 'a line above: found by search') : ''].filter(Boolean)));
  }
  document.getElementById('legend').replaceChildren(...parts);
}

function showHeader() {
  const command = head.command.map(shown).join(' ');
  document.getElementById('command').replaceChildren(named(command));
  document.title = command ? `ferry trace: ${command}` : 'ferry trace';
  const counts = head.counts;
  const facts = [
    head.run ? `of ${shown(head.run)}` : '', span(head.took), `Linux ${shown(head.kernel)}`, head.processors > 0 ? many(head.processors, 'processor') : '',
    head.backend ? `backend ${shown(head.backend)}` : '', head.began > 0 ? new Date(head.began / 1e6).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : '',
    many(counts.operations, 'operation'), many(counts.fibers, 'fiber'), many(counts.submissions, 'submission'),
    many(counts.requests, 'request'), many(counts.kernel, 'kernel event'), head.recorder ? `recorded by ferry ${shown(head.recorder)}` : '',
  ];
  document.getElementById('facts').textContent = facts.filter((fact) => fact && !fact.startsWith('0 ')).join(' · ');
  const [program, kernel] = head.lost;
  const lost = document.getElementById('lost');
  lost.hidden = program + kernel === 0;
  lost.textContent = `EVENTS WERE LOST: ${program.toLocaleString('en')} of the program, ${kernel.toLocaleString('en')} of the kernel. `
    + 'There was no room for them; what is below is not all that happened.';
  const missing = document.getElementById('missing');
  missing.hidden = head.missing.length === 0;
  missing.replaceChildren(...head.missing.map((line) => element('li', named(shown(line)))));
}
