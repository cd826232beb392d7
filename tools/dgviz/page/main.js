// Views, programs, search, keys, links: what holds the page together.
const viewNames = { summary: 'Summary', graph: 'Graph', timeline: 'Timeline', memory: 'Memory', communication: 'Communication', alternatives: 'Alternatives', difference: 'Difference', passes: 'Passes' };
const viewMakers = { summary: showSummary, graph: showGraph, timeline: showTimeline, memory: showMemory, communication: showCommunication, alternatives: showAlternatives, difference: showDifference, passes: showPasses };
const made = new Set(); // views that are drawn for the current program

/** What the address says of the page: #timeline&op=12&program=1. A new view or program is an entry of the history, so that Back goes
    to the view before; a new op changes the entry. */
function addressOf() { return '#' + state.view + (state.op === null ? '' : '&op=' + state.op) + (state.program ? '&program=' + state.program : ''); }
let remembered = null; // the view and program of the entry that is shown; null before the first
function remember() {
  const place = state.view + ' ' + state.program;
  try {
    if (remembered !== null && remembered !== place) history.pushState(null, '', addressOf()); else history.replaceState(null, '', addressOf());
  } catch { /* a page in a frame without an address keeps working */ }
  remembered = place;
}
function showView(name) {
  state.view = name;
  for (const other of Object.keys(viewNames)) {
    byId('view-' + other).classList.toggle('shown', other === name);
    byId('tab-' + other).setAttribute('aria-pressed', String(other === name));
  }
  if (!made.has(name) && (program() || name === 'summary')) { viewMakers[name](); made.add(name); }
  if (name === 'timeline' && timeline) timeline.paint();
  byId('tab-' + name).scrollIntoView({ block: 'nearest', inline: 'nearest' });
  remember();
}
/** Chooses an op everywhere; `moves` also brings it into view. */
function chooseOp(op, moves) {
  state.op = op;
  const tree = program() && treeOf(program().graph);
  if (op !== null) showOp(op);
  if (shownGraph && tree) {
    const drawn = op === null ? undefined : drawnOp(op);
    if (moves) shownGraph.found = null;
    if (op !== null && moves && state.view === 'graph') shownGraph.reveal(drawn);
    else { shownGraph.choose(op === null ? undefined : tree.nodeOfItem.get(drawn)); shownGraph.markFound(); if (op !== null && state.view === 'graph') shownGraph.keepInView(shownGraph.visible(shownGraph.chosen)); }
  }
  if (timeline && state.view === 'timeline') { if (op !== null && moves) timeline.reveal(drawnOp(op)); else timeline.paint(); }
  remember();
}
function showProgram(index) {
  state.program = index;
  state.op = null;
  made.clear();
  shownGraph = timeline = null;
  side.hidden = true;
  document.body.classList.remove('has-side');
  [...byId('programs').children].forEach((element, i) => element.setAttribute('aria-pressed', String(i === index)));
  showView(state.view);
}

// ---- Finding ops ----
byId('search').addEventListener('input', (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  if (!program()) return;
  const tree = treeOf(program().graph);
  if (!wanted) { closeSide(); return; }
  const found = tree.itemsOf(0).filter((id) => plan.ops[id].name.toLowerCase().includes(wanted) || (plan.ops[id].op || '').toLowerCase().includes(wanted));
  openSide();
  put(side, 'h3', {}, plural(found.length, 'op') + ' found');
  opList(found);
  if (state.view !== 'graph' && state.view !== 'timeline') showView('graph');
  if (shownGraph) shownGraph.find(new Set(found));
});
byId('search').addEventListener('keydown', (event) => {
  if (event.key === 'Escape') { closeSide(); event.target.blur(); }
  if (event.key !== 'Enter') return;
  const first = side.querySelector('.link');
  if (first) first.click();
});

// ---- Keys ----
/** What the drawing that is shown does with a key, wherever the focus is. */
function keyOfDrawing(event) {
  const drawing = { graph: shownGraph, timeline, passes: phaseGraph }[state.view];
  const action = drawing && drawing.keys()[event.key];
  // Where the page is longer than the window, up and down scroll it, until the drawing has the focus.
  if (!action || (state.view === 'passes' && /^Arrow(Up|Down)$/.test(event.key) && !drawing.host.contains(event.target))) return;
  // Enter on a button or a line of a table is theirs.
  if (event.key === 'Enter' && event.target.closest('button, tr, a')) return;
  event.preventDefault();
  action();
}
addEventListener('keydown', (event) => {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { if (event.key === 'Escape') event.target.blur(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const names = Object.keys(viewNames), number = Number(event.key);
  if (event.key === '/') { event.preventDefault(); byId('search').focus(); }
  else if (event.key === 'Escape') closeSide();
  else if (number >= 1 && number <= names.length) showView(names[number - 1]);
  else keyOfDrawing(event);
});

// ---- Theme, size, print ----
function setTheme(theme) {
  root.dataset.theme = theme;
  if (timeline) timeline.paint();
  if (made.delete('communication') && state.view === 'communication') showView('communication');
}
setTheme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
byId('theme').addEventListener('click', () => setTheme(root.dataset.theme === 'dark' ? 'light' : 'dark'));
let resizing = 0;
addEventListener('resize', () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    ['memory', 'alternatives', 'communication'].forEach((name) => made.delete(name));
    if (['memory', 'alternatives', 'communication'].includes(state.view)) showView(state.view);
  }, 120);
});
// Paper shows every view whole, one after the other, and is white.
let themeOfScreen = null;
addEventListener('beforeprint', () => {
  if (themeOfScreen === null) themeOfScreen = root.dataset.theme;
  setTheme('light');
  made.delete('communication');
  if (program()) for (const name of Object.keys(viewNames)) if (!made.has(name)) { viewMakers[name](); made.add(name); }
  for (const drawing of [shownGraph, phaseGraph, timeline]) if (drawing) drawing.forPaper(true);
});
addEventListener('afterprint', () => {
  for (const drawing of [shownGraph, phaseGraph, timeline]) if (drawing) drawing.forPaper(false);
  setTheme(themeOfScreen);
  themeOfScreen = null;
});

// ---- Start ----
byId('title').textContent = plan.model.name || 'DG plan';
byId('subtitle').textContent = [plan.model.source, meshText, plural(ranks, 'device'), view.trace ? 'with ' + view.trace : ''].filter(Boolean).join(' · ');
document.title = (plan.model.name || 'DG') + ' — plan';
byId('footer').textContent = 'Made by ' + view.tool + ' from ' + (view.job || 'a plan') + (view.trace ? ' and ' + view.trace : '') + '. Times are predicted on ' + view.cluster + (view.own_cluster ? '' : ', not on the machines that the plan was made for') + '. This page loads nothing and sends nothing.';
view.programs.forEach((one, index) => button(byId('programs'), one.name, 'Program ' + one.name, () => showProgram(index)));
Object.entries(viewNames).forEach(([name, text], i) => button(byId('views'), text, 'Key ' + (i + 1), () => showView(name), { id: 'tab-' + name }));
// Links: plan.html#timeline, plan.html#graph&op=12
function readLink() {
  const [, name, op, index] = /^#([a-z]+)?(?:&?op=(\d+))?(?:&program=(\d+))?$/.exec(location.hash) || [];
  return { name: viewNames[name] ? name : null, op: op !== undefined && plan.ops[Number(op)] && program() ? Number(op) : null, program: view.programs[Number(index)] ? Number(index) : 0 };
}
/** Shows what the address says: at the start, after Back and Forward, and when somebody writes it. */
function followLink() {
  const link = readLink(), name = link.name || (view.difference ? 'difference' : 'summary');
  if (remembered !== null) remembered = name + ' ' + link.program; // the entry is there already
  state.view = name;
  if (!made.size || state.program !== link.program) showProgram(link.program); else showView(name);
  if (link.op !== null) { if (link.op !== state.op || !made.has(name)) chooseOp(link.op, true); } else if (state.op !== null) closeSide();
}
followLink();
addEventListener('popstate', followLink);
document.body.dataset.ready = 'true';
