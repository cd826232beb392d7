// The panel for what is chosen: an op, a box of ops, a stretch of the schedule. Also the small drawing of who holds what.
const side = byId('side');
function openSide() {
  side.hidden = false;
  document.body.classList.add('has-side');
  side.replaceChildren();
  side.scrollTop = 0;
  // A sheet from below leaves little room: the drawing moves up to where it is seen.
  const drawing = getComputedStyle(side).position === 'fixed' && byId('view-' + state.view).querySelector('.graph, .timeline');
  if (drawing) drawing.scrollIntoView({ block: 'start' });
  button(side, '×', 'Close (Esc)', closeSide, { class: 'close', 'aria-label': 'Close' });
}
/** Ends what was chosen or looked for: nothing is marked or dim any more. */
function closeSide() {
  side.hidden = true;
  document.body.classList.remove('has-side');
  byId('search').value = '';
  if (shownGraph) shownGraph.found = null;
  chooseOp(null);
}
function details(parent, rows) {
  const list = put(parent, 'dl');
  for (const [key, value, mono] of rows) {
    if (value === undefined || value === null || value === '') continue;
    put(list, 'dt', {}, key);
    put(list, 'dd', mono ? { class: 'mono' } : {}, value);
  }
}
function section(text) { put(side, 'div', { class: 'section' }, text); }
function sideLink(text, note, action) {
  const element = button(side, text, note || '', action, { class: 'link' });
  if (note) put(element, 'span', { class: 'muted' }, '  ' + note);
  return element;
}
function chips(stage, phase, work) {
  const line = put(side, 'div');
  swatch(line, stageColour(stage), 'stage ' + stage + ' · ' + ranksOfStage(stage), 'chip');
  if (phase) put(line, 'span', { class: 'chip' }, phase);
  if (work !== undefined && workNames[work] !== phase) swatch(line, workColours[work], workNames[work], 'chip');
}

/** By op and value: the mesh axes whose ranks hold summands of it, and whether the op adds them up. */
const partialOf = new Map(view.ops.partial.map(([op, value, axes, isReduced]) => [op + ' ' + value, { axes, isReduced }]));
/** Ranks that hold the same, and between them a plus where they hold summands: "0,1 + 2,3". */
function holdersText(holders, axes) {
  const summands = new Map();
  holders.forEach(({ rank, at }) => { const key = axes.map((axis) => at[axis]).join(); summands.set(key, [...(summands.get(key) || []), rank]); });
  const listed = [...summands.values()], most = listed.length > 1 ? 3 : 4;
  return 'r ' + listed.slice(0, most).map((list) => list.slice(0, most).join(',') + (list.length > most ? ',…' : '')).join(' + ') + (listed.length > most ? ' + …' : '');
}
/** Which device of the stage holds which part: a grid of the cut dimensions with the ranks in each cell. `partial`: the ranks of some
    axes hold summands of the part, not the part. */
function shardingDrawing(parent, value, partial) {
  const cuts = value.sharding.map((axis, dim) => ({ axis, dim })).filter((cut) => cut.axis && mesh[cut.axis] > 1);
  const [down, across] = cuts.length > 1 ? cuts : [null, cuts[0] || null];
  const most = 8, columns = across ? mesh[across.axis] : 1, lines = down ? mesh[down.axis] : 1;
  const shownColumns = Math.min(columns, most), shownLines = Math.min(lines, most);
  const width = 300, cell = Math.min(partial ? 148 : 90, (width - 4) / shownColumns), height = Math.max(24, Math.min(38, 120 / shownLines));
  const svg = draw(parent, 'svg', { class: 'shards', viewBox: '0 0 ' + width + ' ' + (shownLines * height + 4), role: 'img',
    'aria-label': 'Which rank holds which part' });
  svg.style.height = shownLines * height + 4 + 'px';
  for (let row = 0; row < shownLines; ++row)
    for (let column = 0; column < shownColumns; ++column) {
      const holders = [];
      for (let data = 0; data < mesh.data; ++data)
        for (let tensor = 0; tensor < mesh.tensor; ++tensor) {
          const at = { data, tensor, pipe: value.stage };
          if ((!across || at[across.axis] === column) && (!down || at[down.axis] === row))
            holders.push({ at, rank: (value.stage * mesh.data + data) * mesh.tensor + tensor });
        }
      const isLast = (row === most - 1 && lines > most) || (column === most - 1 && columns > most);
      const part = down ? row * columns + column : column;
      draw(svg, 'rect', { x: 2 + column * cell, y: 2 + row * height, width: cell - 2, height: height - 2, rx: 3, class: 'shard' + (partial ? ' partial' : '') })
        .style.fill = cuts.length ? palette[part % palette.length] + '33' : '';
      draw(svg, 'text', { x: 2 + column * cell + cell / 2 - 1, y: 2 + row * height + height / 2 + 4, 'text-anchor': 'middle' },
        isLast ? '…' : shorten(holdersText(holders, partial ? partial.axes : []), Math.floor(cell / 6)));
    }
  const words = cuts.map((cut) => 'dimension ' + cut.dim + ' over ' + cut.axis + ' (' + mesh[cut.axis] + ')').join(', ');
  if (partial) {
    put(parent, 'div', { class: 'partial-words' }, 'partial sums: each rank along ' + partial.axes.join(' and ') + ' holds a summand' + (partial.isReduced ? '; this op adds them up, after it the sum is on all of them' : ', which a later collective adds up'));
    if (words) put(parent, 'div', { class: 'muted' }, 'cut: ' + words);
    return;
  }
  put(parent, 'div', { class: 'muted' }, words ? 'cut: ' + words : ranksPerStage > 1 ? 'whole on each of ' + ranksOfStage(value.stage) : 'whole on ' + ranksOfStage(value.stage));
}
function valueRow(op, id, role) {
  const value = plan.values[id];
  const row = put(side, 'div', { class: 'value-row' });
  put(row, 'div', {}, value.name);
  put(row, 'div', { class: 'mono' }, typeText(value, value.shape) + (value.shape.join() === value.global_shape.join() ? '' : '  of  [' + value.global_shape.join(' × ') + ']'));
  put(row, 'div', { class: 'muted' }, role + ' · ' + value.kind + ' · ' + bytesText(value.bytes) + (value.slots > 1 ? ' × ' + value.slots + ' slots' : '') + ' at ' + value.offset + (value.space ? ' in ' + value.space + ' memory' : ''));
  if (ranks > 1) shardingDrawing(row, value, partialOf.get(op + ' ' + id));
}
/** The search's words about an op; equal layers share those of the first, whose names differ by their numbers. */
const withoutNumbers = (name) => name.replace(/\d+/g, '#');
const reasonsByShape = new Map();
if (view.reasons) Object.keys(view.reasons.ops).forEach((name) => { if (!reasonsByShape.has(withoutNumbers(name))) reasonsByShape.set(withoutNumbers(name), name); });
function searchWords(op) {
  const known = Object.prototype.hasOwnProperty.call(view.reasons.ops, op.name) ? op.name : reasonsByShape.get(withoutNumbers(op.name));
  if (known === undefined) return [];
  const reason = view.reasons.ops[known];
  return ['The search chose, as for ' + known + ': ' + reason.choice + ' (' + timeText(reason.cost_us) + ' a micro-batch, forward and backward).',
    reason.runner_up ? 'Next best: ' + reason.runner_up + ', ' + timeText(reason.runner_up_us) + ' slower. Bound by ' + reason.bound_by + '.' : 'Bound by: ' + reason.bound_by + '.'];
}
/** Why the op stands where it does: what the search wrote down, or the rules that a mesh by hand follows. */
function placementWords(op) {
  const words = [];
  if (mesh.pipe > 1) words.push('Stage ' + op.stage + ' of ' + mesh.pipe + ': stages cut the model, in its own order, where their times come out most equal.');
  const cut = cutOf(op);
  const made = outputOf(op) && partialOf.get(plan.ops.indexOf(op) + ' ' + op.writes[0]);
  if (made && !made.isReduced) words.push('The result is a partial sum over ' + made.axes.join(' and ') + ': the dimension that it is summed over is cut.');
  else if (outputOf(op) && ranksPerStage > 1) words.push(cut === 'whole on every device' ? 'Every device of the stage has the whole result.' : 'The result is cut over ' + cut + ', as its operands and the op\u2019s rule allow.');
  if (view.reasons) return [...searchWords(op), ...words];
  return [...words, (plan.search.lower_bound_us || 0) > 0 ? 'Chosen by the search (' + plan.search.stopped + ').' : 'The mesh was given by hand, so there was no choice to explain.'];
}
function timeRows(id) {
  const predicted = predictedUs(id), measured = measuredUs(id);
  const error = predicted > 0 && measured >= 0 ? ' (' + (measured / predicted).toFixed(1) + ' × predicted)' : '';
  return [['predicted', predicted >= 0 ? timeText(predicted) + ' a call' : ''], ['measured', measured >= 0 ? timeText(measured) + ' a call' + error : '']];
}
function showOp(id) {
  const op = plan.ops[id], here = drawnOp(id), tree = treeOf(program().graph);
  openSide();
  put(side, 'h3', {}, op.name);
  chips(op.stage, phaseOf(id), view.ops.work[id]);
  const actions = put(side, 'div', { class: 'side-actions' });
  button(actions, 'in the graph', 'Show this op in the graph', () => { showView('graph'); graphView().reveal(here); });
  button(actions, 'in the timeline', 'Show this op in the timeline', () => { showView('timeline'); timelineReveal(here); });
  details(side, [
    ['op', op.op, true], ['kind', op.kind], ['source', op.source, true], ['kernel', op.kernel, true],
    ['arithmetic', op.flops ? flopText(op.flops) : ''], ['memory moved', op.bytes ? bytesText(op.bytes) : ''],
    ...timeRows(here),
    ['axis', op.axis], ['peer stage', op.kind === 'send' || op.kind === 'receive' ? String(op.peer_stage ?? 0) : ''],
    ['channel', op.kind === 'send' || op.kind === 'receive' ? String(op.channel ?? 0) : ''],
    ['trips', op.trips ? String(op.trips) : ''], ['id', String(id)],
    ['device', plan.memory[op.stage].device === 'cpu' ? '' : plan.memory[op.stage].device],
  ]);
  section('Why here');
  placementWords(op).forEach((words) => put(side, 'p', { class: 'why' }, words));
  const reads = new Set(op.reads), writes = new Set(op.writes);
  const touched = [...new Set(op.buffers)];
  if (touched.length) section('Tensors');
  touched.forEach((value) => valueRow(here, value, reads.has(value) ? (writes.has(value) ? 'in place' : 'read') : 'written'));
  const list = (title, ops) => {
    if (!ops || !ops.length) return;
    section(title);
    ops.slice(0, 60).forEach((other) => sideLink(plan.ops[other].name, phaseOf(other) + ', stage ' + plan.ops[other].stage, () => chooseOp(other, true)));
    if (ops.length > 60) put(side, 'div', { class: 'muted' }, 'and ' + (ops.length - 60) + ' more');
  };
  list('Takes from', tree.inputs.get(here));
  list('Gives to', tree.outputs.get(here));
}
function opList(ops) {
  ops.slice(0, 300).forEach((id) => sideLink(plan.ops[id].name, plan.ops[id].op || plan.ops[id].kind, () => chooseOp(id, true)));
  if (ops.length > 300) put(side, 'div', { class: 'muted' }, 'and ' + (ops.length - 300) + ' more; search finds them');
}
function showGroup(tree, node, graphOf) {
  const items = tree.itemsOf(node), isPlan = tree === treeOf(program().graph);
  openSide();
  put(side, 'h3', {}, tree.graph.titles[node]);
  chips(tree.graph.stages[node], phaseNames[tree.graph.phases[node]]);
  const actions = put(side, 'div', { class: 'side-actions' });
  button(actions, graphOf.isOpen(node) ? 'collapse' : 'expand', 'Enter', () => { graphOf.toggle(node); showGroup(tree, node, graphOf); });
  if (!isPlan) { details(side, [['ops', String(items.length)]]); return; }
  const sum = (f) => items.reduce((total, id) => total + Math.max(0, f(id)), 0);
  details(side, [['ops', String(items.length)], ['arithmetic', flopText(sum((id) => plan.ops[id].flops || 0))],
    ['memory moved', bytesText(sum((id) => plan.ops[id].bytes || 0))], ['predicted', timeText(sum(predictedUs))],
    ['measured', view.trace ? timeText(sum(measuredUs)) : '']]);
  put(side, 'div', { class: 'muted' }, 'sums over the ops, of one micro-batch on one rank');
  section('Ops');
  opList(items);
}
function showBar(bar, isMeasured) {
  const chunk = plan.stages[bar.chunk];
  openSide();
  put(side, 'h3', {}, chunk.phase + (chunk.phase === 'forward' || chunk.phase === 'backward' ? ' of micro-batch ' + bar.microbatch : ''));
  chips(chunk.stage, isMeasured ? 'measured on rank ' + bar.row : 'predicted');
  details(side, [['start', timeText(bar.start)], ['length', timeText(bar.end - bar.start)], ['ops', String(chunk.ops.length)]]);
  section('Ops');
  opList([...new Set(chunk.ops.map(drawnOp))]);
}
