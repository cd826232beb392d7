// The graph as each compiler pass left it.
let shownPhase = 0, phaseGraph = null;
function showPasses() {
  const host = byId('view-passes'), phases = view.phases;
  host.replaceChildren();
  if (!phases) {
    const words = put(panel(host, 'Passes', '').body, 'div', { class: 'words' });
    put(words, 'p', {}, 'This job does not have the graphs of its compilation.');
    put(words, 'p', { class: 'muted' }, 'dgc … --save-phases keeps them in the job; dgviz then shows here what each pass added and removed.');
    return;
  }
  const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
  const most = Math.max(...phases.map((phase) => phase.num_ops), 1);
  const box = panel(host, 'Passes', 'ops after each pass that changed the graph; choose one to see its graph');
  const list = put(box.body, 'div', { class: 'phases', role: 'listbox', 'aria-label': 'Passes' });
  phases.forEach((phase, index) => {
    const row = button(list, '', phase.summary, () => { shownPhase = index; showPasses(); }, { class: 'phase', role: 'option', 'aria-selected': String(index === shownPhase) });
    put(row, 'span', { class: 'phase-name' }, phase.pass || 'the model');
    put(row, 'span', { class: 'phase-words muted' }, phase.summary);
    const bar = put(row, 'span', { class: 'phase-bar' });
    put(bar, 'i', { class: 'kept' }).style.width = (phase.num_ops - sum(phase.added)) / most * 100 + '%';
    put(bar, 'i', { class: 'added' }).style.width = sum(phase.added) / most * 100 + '%';
    put(row, 'span', { class: 'phase-count' }, plural(phase.num_ops, 'op'));
    put(row, 'span', { class: 'phase-change' }, index ? '+' + sum(phase.added) + ' −' + sum(phase.removed) : '');
  });
  const phase = phases[shownPhase], pair = put(host, 'div', { class: 'pair wide-right' });
  const kinds = panel(pair, 'Kinds of ops', phase.pass ? 'after ' + phase.pass : 'of the model');
  table(kinds.body, [['op'], ['number', true], ['added', true], ['removed', true]], [...new Set([...Object.keys(phase.kinds), ...Object.keys(phase.removed)])].map((kind) => ({ kind, number: phase.kinds[kind] || 0, added: phase.added[kind] || 0, removed: phase.removed[kind] || 0 }))
    .sort((a, b) => b.added + b.removed - a.added - a.removed || b.number - a.number).map(({ kind, number, added, removed }) => ({ cells: [kind, String(number), added ? '+' + added : '', removed ? '−' + removed : ''], order: [kind, number, added, removed] })));
  const tree = treeOf(phase.graph);
  const drawing = panel(pair, 'Graph', phase.pass ? 'after ' + phase.pass : 'as it was read', 'phase-graph');
  const tools = put(drawing.head, 'div', { class: 'tools' });
  button(tools, 'open all', 'Open every group', () => phaseGraph.openAll(1500));
  button(tools, 'fit', 'Show all (0)', () => phaseGraph.fit());
  const describe = (item) => ({ sub: [phase.ops[item]], colour: stageColour(tree.graph.stages[tree.nodeOfItem.get(item)]), isCommunication: /all_|reduce_scatter|send|receive/.test(phase.ops[item]), tip: phase.ops[item] });
  const describeGroup = (items, node) => ({ sub: [phaseNames[tree.graph.phases[node]], plural(items.length, 'op')], colour: stageColour(tree.graph.stages[node]), isCommunication: false, tip: tree.graph.titles[node] + '. Double-click to open.' });
  phaseGraph = new GraphView(drawing.body, tree, describe, describeGroup, (node) => showGroup(tree, node, phaseGraph));
}
