// Views, programs, search, keys, links: what holds the page together.
const viewNames = { summary: 'Summary', graph: 'Graph', timeline: 'Timeline', memory: 'Memory', communication: 'Communication', alternatives: 'Alternatives', difference: 'Difference', passes: 'Passes' };
const viewMakers = { summary: showSummary, graph: showGraph, timeline: showTimeline, memory: showMemory, communication: showCommunication, alternatives: showAlternatives, difference: showDifference, passes: showPasses };
const made = new Set(); // views that are drawn for the current program

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
function remember() {
  try { history.replaceState(null, '', '#' + state.view + (state.op === null ? '' : '&op=' + state.op)); } catch { /* a page in a frame without an address keeps working */ }
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
    else { shownGraph.choose(op === null ? undefined : tree.nodeOfItem.get(drawn)); shownGraph.markFound(); }
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
  if (!wanted) { if (shownGraph) shownGraph.find(null); closeSide(); return; }
  const found = tree.itemsOf(0).filter((id) => plan.ops[id].name.toLowerCase().includes(wanted) || (plan.ops[id].op || '').toLowerCase().includes(wanted));
  openSide();
  put(side, 'h3', {}, plural(found.length, 'op') + ' found');
  opList(found);
  if (state.view !== 'graph' && state.view !== 'timeline') showView('graph');
  if (shownGraph) shownGraph.find(new Set(found));
});
byId('search').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return;
  const first = side.querySelector('.link');
  if (first) first.click();
});

// ---- Keys ----
addEventListener('keydown', (event) => {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { if (event.key === 'Escape') event.target.blur(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const names = Object.keys(viewNames), number = Number(event.key);
  if (event.key === '/') { event.preventDefault(); byId('search').focus(); }
  else if (event.key === 'Escape') closeSide();
  else if (number >= 1 && number <= names.length) showView(names[number - 1]);
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
// Paper shows every view, one after the other.
addEventListener('beforeprint', () => {
  if (program()) for (const name of Object.keys(viewNames)) if (!made.has(name)) { viewMakers[name](); made.add(name); }
  for (const graph of [shownGraph, phaseGraph]) if (graph) graph.forPaper(true);
  if (timeline) timeline.resize();
});
addEventListener('afterprint', () => {
  for (const graph of [shownGraph, phaseGraph]) if (graph) graph.forPaper(false);
});

// ---- Start ----
byId('title').textContent = plan.model.name || 'DG plan';
byId('subtitle').textContent = [plan.model.source, meshText, plural(ranks, 'device'), view.trace ? 'with ' + view.trace : ''].filter(Boolean).join(' · ');
document.title = (plan.model.name || 'DG') + ' — plan';
byId('footer').textContent = 'Made by ' + view.tool + ' from ' + (view.job || 'a plan') + (view.trace ? ' and ' + view.trace : '') + '. Times were predicted on ' + view.cluster + '. This page loads nothing and sends nothing.';
view.programs.forEach((one, index) => button(byId('programs'), one.name, 'Program ' + one.name, () => showProgram(index)));
Object.entries(viewNames).forEach(([name, text], i) => button(byId('views'), text, 'Key ' + (i + 1), () => showView(name), { id: 'tab-' + name }));
// Links: plan.html#timeline, plan.html#graph&op=12
function readLink() {
  const [, name, op] = /^#([a-z]+)?(?:&?op=(\d+))?$/.exec(location.hash) || [];
  return { name: viewNames[name] ? name : null, op: op !== undefined && plan.ops[Number(op)] && program() ? Number(op) : null };
}
const linked = readLink();
state.view = linked.name || (view.difference ? 'difference' : 'summary');
showProgram(0);
if (linked.op !== null) chooseOp(linked.op, true);
addEventListener('hashchange', () => {
  const { name, op } = readLink();
  if (name) showView(name);
  if (op !== null) chooseOp(op, true);
});
document.body.dataset.ready = 'true';
