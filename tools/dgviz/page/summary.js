// The first page: what this plan is, what limits it, what would help, in words and a few figures.
function card(host, label, value, note, key) {
  const box = put(host, 'div', { class: 'card', 'data-figure': key });
  put(box, 'div', { class: 'label' }, label);
  put(box, 'div', { class: 'value' }, value);
  put(box, 'div', { class: 'note' }, note || '');
}
/** Bars of computing, communication that nothing hides, and waiting. */
function shareBars(host, rows, total, labelOf, kind) {
  const names = ['computing', 'communication not hidden', 'waiting'], colours = [workColours[0], workColours[4], 'var(--idle)'];
  const shown = rows.slice(0, 16);
  shown.forEach((row, i) => {
    const line = put(host, 'div', { class: 'share' });
    put(line, 'span', { class: 'share-label' }, labelOf(i));
    const bar = put(line, 'div', { class: 'share-bar', role: 'img', 'aria-label': names.map((name, k) => name + ' ' + percent(row[k] / total)).join(', ') });
    row.forEach((us, k) => {
      const part = put(bar, 'i', { title: kind + ' ' + names[k] + ': ' + timeText(us) }, us / total > 0.07 ? Math.round(us / total * 100) + ' %' : '');
      part.style.width = us / total * 100 + '%';
      part.style.background = colours[k];
    });
  });
  if (rows.length > shown.length) put(host, 'div', { class: 'muted' }, 'and ' + (rows.length - shown.length) + ' more');
}
function showSummary() {
  const host = byId('view-summary'), p = program();
  host.replaceChildren();
  if (!p) { put(panel(host, 'Summary', '').body, 'div', { class: 'empty' }, 'This job has no program.'); return; }
  const f = p.figures, own = planProgram(), search = plan.search || {};
  const lead = put(host, 'section', { class: 'panel lead-panel' });
  put(lead, 'p', { class: 'lead' }, p.advice.limit);
  const facts = put(lead, 'ul', { class: 'facts' });
  p.advice.facts.forEach((fact) => put(facts, 'li', {}, fact));
  const cards = put(host, 'div', { class: 'cards' });
  card(cards, 'Step, predicted', timeText(f.step_us), 'compute ' + timeText(f.compute_us) + ', communication ' + timeText(f.comm_us) + (view.own_cluster ? '' : '; on ' + view.cluster + ', for which the plan was not made'), 'step');
  if (p.measured) card(cards, 'Step, measured', timeText(f.measured_step_us), (f.measured_step_us / Math.max(f.step_us, 1e-9)).toFixed(2) + ' × predicted', 'measured');
  card(cards, 'Utilisation', percent(f.utilisation), flopText(f.flops) + ' a step', 'utilisation');
  card(cards, 'Bubble', percent(f.bubble), (own.role ? own.role + ', ' : '') + own.schedule + ', ' + plural(own.microbatches, 'micro-batch', 'micro-batches'), 'bubble');
  card(cards, 'Bytes moved', bytesText(f.bytes_moved), 'between all ranks in a step', 'moved');
  card(cards, 'Peak memory', bytesText(f.peak_bytes), plan.memory.length > 1 ? plan.memory.slice(0, 4).map((m, s) => 'stage ' + s + ': ' + bytesText(m.arena_bytes)).join(', ') + (plan.memory.length > 4 ? ', …' : '') : 'of each device', 'peak');
  card(cards, 'Imbalance', percent(f.imbalance), plan.memory.length > 1 ? 'stage ' + f.slowest_stage + ' computes longest' : 'one stage', 'imbalance');
  card(cards, 'Gap to the bound', (search.lower_bound_us || 0) > 0 ? percent(search.gap || 0) : '–', (search.lower_bound_us || 0) > 0 ? 'by the search: ' + timeText(search.lower_bound_us * (1 + (search.gap || 0))) + ', at least ' + timeText(search.lower_bound_us) : 'no bound: ' + (search.stopped || 'no search'), 'gap');
  if (view.sizes.length) card(cards, 'Smaller batches', view.sizes.map((size) => size[0]).join(', '), view.sizes.map((size) => size[0] + ': ' + timeText(size[1])).join(', '), 'sizes');
  card(cards, 'Devices', String(ranks), meshText, 'ranks');
  card(cards, 'Parameters', countText(plan.model.parameters), plan.model.optimizer || 'no optimizer', 'parameters');
  const pair = put(host, 'div', { class: 'pair' });
  const changes = panel(pair, 'What would help most', 'each was simulated, estimated by the search, or measured');
  const list = put(changes.body, 'ol', { class: 'changes' });
  p.advice.changes.forEach((change) => {
    const item = put(list, 'li', { class: 'change' });
    const head = put(item, 'div', { class: 'change-head' });
    put(head, 'strong', {}, change.title);
    put(head, 'span', { class: 'gain' }, timeText(change.gain_us) + ' less (' + percent(change.gain_us / Math.max(change.of_us, 1e-9)) + ')');
    put(item, 'div', {}, change.why);
    if (change.how) put(item, 'code', {}, change.how);
  });
  if (!p.advice.changes.length) put(changes.body, 'div', { class: 'empty' }, 'Nothing that was tried would save more than 1 % of the step.');
  const shares = panel(pair, 'Where the time goes', 'of each stage, predicted');
  const bars = put(shares.body, 'div', { class: 'words' });
  shareBars(bars, p.stages, Math.max(f.step_us, 1e-9), (stage) => 'stage ' + stage, 'predicted');
  if (p.measured) {
    put(bars, 'div', { class: 'section' }, 'measured, of each rank');
    shareBars(bars, p.ranks, Math.max(f.measured_step_us, 1e-9), (rank) => 'rank ' + rank, 'measured');
  }
  const legend = put(bars, 'div', { class: 'legend' });
  swatch(legend, workColours[0], 'computing');
  swatch(legend, workColours[4], 'communication not hidden');
  swatch(legend, 'var(--idle)', 'waiting');
  const tensors = panel(host, 'Parameters', plural(view.parameters.length, 'tensor') + ' of the model');
  table(tensors.body, [['name'], ['type'], ['role'], ['read by']], view.parameters.map(([name, type, role, readers]) => ({ cells: [name, type, role, readers.join(', ')] })), 'The job was made by a version of dgc that kept no table.');
  const next = panel(host, 'Look further', '');
  const links = put(next.body, 'div', { class: 'next' });
  [['graph', 'what is computed where'], ['timeline', 'when, and the critical path'], ['memory', 'what fills the memory'], ['communication', 'who talks to whom'], ['alternatives', 'what the search passed over'], ['difference', 'against another plan'], ['passes', 'how the compiler got there']]
    .forEach(([name, words]) => { const link = button(links, viewNames[name], words, () => showView(name)); put(link, 'span', { class: 'muted' }, words); });
  put(next.body, 'div', { class: 'muted words' }, 'Keys: 1 to 8 choose a view, / finds an op, arrows move, + and − zoom, 0 shows all, Enter opens a group, Esc closes the panel. For other tools: dgviz ' + (view.job || 'JOB.dgx') + ' --export perfetto, dot, svg, model-explorer or csv.');
}
