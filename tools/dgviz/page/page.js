// Draws the plan. Everything from the plan is inserted with textContent or as a number: nothing of it is ever parsed as HTML.
'use strict';
(() => {
  const plan = JSON.parse(document.getElementById('plan-data').textContent);
  const view = JSON.parse(document.getElementById('view-data').textContent);
  const stageColours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a800', '#7f7f7f'];
  const phaseOrder = ['begin', 'forward', 'backward', 'update'];
  const byId = (id) => document.getElementById(id);
  const colourOf = (stage) => stageColours[stage % stageColours.length];

  // ---- Elements ----
  function put(parent, name, attributes, text) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {}))
      element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }
  function draw(parent, name, attributes, text) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes || {}))
      element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }
  function swatch(parent, colour, text, className) {
    const span = put(parent, 'span', className ? { class: className } : {});
    put(span, 'i').style.background = colour;
    span.append(text);
    return span;
  }

  // ---- Numbers for people ----
  function scaled(value, step, units, digits) {
    let unit = 0;
    while (value >= step && unit + 1 < units.length) { value /= step; ++unit; }
    return (unit === 0 && Number.isInteger(value) ? String(value) : value.toFixed(digits)) + units[unit];
  }
  const bytesText = (n) => scaled(n, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB'], 2);
  const countText = (n) => scaled(n, 1000, ['', ' k', ' M', ' G', ' T', ' P'], 2);
  const timeText = (us) => us < 1000 ? us.toFixed(1) + ' µs' : us < 1e6 ? (us / 1e3).toFixed(2) + ' ms' : (us / 1e6).toFixed(2) + ' s';
  const percent = (x) => (x * 100).toFixed(1) + ' %';
  const shorten = (text, length) => text.length > length ? text.slice(0, length - 1) + '…' : text;
  const typeText = (value, shape) => value.dtype + '[' + shape.join(' × ') + ']';

  // ---- Facts that several parts need ----
  const chunkOf = new Array(plan.ops.length);
  plan.stages.forEach((chunk, id) => chunk.ops.forEach((op) => { chunkOf[op] = id; }));
  const dependants = plan.ops.map(() => []);
  plan.ops.forEach((op, id) => (op.deps || []).forEach((dep) => dependants[dep].push(id)));
  const ranks = plan.mesh.pipe * plan.mesh.data * plan.mesh.tensor;

  let current = 0;      // index of the program shown
  let nodeElements = [];
  let edgeElements = [];
  let nodeOfOp = new Map();

  // ---- Summary ----
  function card(label, value, note) {
    const box = put(byId('summary'), 'div', { class: 'card' });
    put(box, 'div', { class: 'label' }, label);
    put(box, 'div', { class: 'value' }, value);
    put(box, 'div', { class: 'note' }, note || '');
  }
  function showSummary() {
    const p = plan.predicted;
    byId('summary').replaceChildren();
    const program = plan.programs[current];
    card('Step, predicted', timeText(p.step_us), 'compute ' + timeText(p.compute_us) + ', communication ' + timeText(p.comm_us));
    card('Pipeline bubble', percent(p.bubble), program ? program.schedule + ', ' + program.microbatches + ' micro-batches' : '');
    card('Ranks', String(ranks), 'pipe ' + plan.mesh.pipe + ' × data ' + plan.mesh.data + ' × tensor ' + plan.mesh.tensor);
    const peaks = plan.memory.map((m) => m.arena_bytes);
    card('Peak memory per rank', bytesText(Math.max(0, ...peaks)),
         peaks.length > 1 ? peaks.slice(0, 6).map((b, s) => 'stage ' + s + ': ' + bytesText(b)).join(', ') + (peaks.length > 6 ? ', …' : '') : 'one stage');
    card('Parameters', countText(plan.model.parameters), plan.model.optimizer || 'no optimizer');
    const rows = view.programs[current] ? view.programs[current].traffic : [];
    const worst = Math.max(0, ...plan.memory.map((_, s) => rows.filter((r) => r.stage === s).reduce((sum, r) => sum + r.bytes, 0)));
    card('Traffic per rank and step', bytesText(worst), rows.length ? 'on the busiest stage' : 'no communication');
    byId('title').textContent = plan.model.name || 'DG plan';
    byId('subtitle').textContent = plan.model.source;
    document.title = (plan.model.name || 'DG') + ' — plan';
    byId('footer').textContent = 'Drawn by ' + view.tool + ' from plan version ' + plan.version + '. ' + plan.ops.length + ' ops, ' + plan.values.length + ' values.';
  }

  // ---- Graph ----
  const graph = byId('graph');
  let svg = null, box = null;
  function setView() { svg.setAttribute('viewBox', box.x + ' ' + box.y + ' ' + box.w + ' ' + box.h); }
  // A graph that would be too small to read is shown from its top, as wide as it can be read; the rest is a drag away.
  function fit() {
    const g = view.programs[current].graph, ratio = graph.clientWidth / Math.max(1, graph.clientHeight);
    const readable = graph.clientWidth / 0.72;
    const w = Math.min(Math.max(g.width, g.height * ratio), Math.max(readable, graph.clientWidth)), h = w / ratio;
    const top = g.nodes.reduce((best, node) => (!best || node.y < best.y ? node : best), null);
    const x = g.width <= w ? (g.width - w) / 2 : Math.min(Math.max((top ? top.x : 0) - w / 2, 0), g.width - w);
    box = { x, y: g.height <= h ? (g.height - h) / 2 : 0, w, h };
    setView();
  }
  function zoom(factor, cx, cy) {
    const next = Math.min(Math.max(box.w * factor, 200), 60000);
    const real = next / box.w;
    box = { x: cx - (cx - box.x) * real, y: cy - (cy - box.y) * real, w: next, h: box.h * real };
    setView();
  }
  function toGraph(event) {
    const r = graph.getBoundingClientRect();
    return [box.x + (event.clientX - r.left) / r.width * box.w, box.y + (event.clientY - r.top) / r.height * box.h];
  }

  function showGraph() {
    const g = view.programs[current].graph;
    const [bw, bh] = g.box;
    graph.replaceChildren();
    svg = draw(graph, 'svg', { role: 'img', 'aria-label': 'Graph of ops, coloured by stage' });
    const defs = draw(svg, 'defs');
    const marker = draw(defs, 'marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' });
    draw(marker, 'path', { d: 'M0 0L8 4L0 8z', class: 'arrow' });
    edgeElements = g.edges.map((edge) => {
      const from = g.nodes[edge.from], to = g.nodes[edge.to];
      const saved = from.phase === 'forward' && to.phase === 'backward';
      const line = draw(svg, 'path', { d: edge.path, class: 'edge' + (edge.crosses ? ' crosses' : '') + (saved ? ' saved' : ''), 'marker-end': 'url(#arrow)' });
      draw(line, 'title', {}, from.title + ' → ' + to.title + ': ' + bytesText(edge.bytes));
      return line;
    });
    nodeOfOp = new Map();
    nodeElements = g.nodes.map((node, index) => {
      node.ops.forEach((op) => nodeOfOp.set(op, index));
      const item = draw(svg, 'g', { class: 'node ' + node.phase, tabindex: 0, role: 'button', transform: 'translate(' + (node.x - bw / 2) + ' ' + (node.y - bh / 2) + ')' });
      draw(item, 'rect', { class: 'body', width: bw, height: bh, rx: 8 });
      draw(item, 'rect', { width: 6, height: bh - 12, x: 6, y: 6, rx: 3, fill: colourOf(node.stage) });
      draw(item, 'text', { x: 20, y: 19 }, shorten(node.title, 25));
      const parts = [node.ops.length === 1 ? '1 op' : node.ops.length + ' ops'];
      if (node.flops > 0) parts.push(countText(node.flops) + 'FLOP');
      if (plan.memory.length > 1) parts.push('stage ' + node.stage);
      draw(item, 'text', { x: 20, y: 35, class: 'sub' }, (node.communicates ? '⇄ ' : '') + parts.join(' · '));
      draw(item, 'title', {}, node.title + ' (' + node.phase + ', stage ' + node.stage + ')');
      const open = () => showGroup(index);
      item.addEventListener('click', open);
      item.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); open(); } });
      return item;
    });
    byId('graph-note').textContent = g.nodes.length + ' boxes, grouped ' + g.grouping + '; drag to move, Ctrl + wheel to zoom, click for details';
    const legend = byId('legend');
    legend.replaceChildren();
    plan.memory.slice(0, 16).forEach((_, stage) => swatch(legend, colourOf(stage), 'stage ' + stage));
    fit();
  }
  graph.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, ...toGraph(event));
  }, { passive: false });
  let drag = null;
  graph.addEventListener('pointerdown', (event) => { drag = { x: event.clientX, y: event.clientY, box: { ...box }, moved: false }; });
  window.addEventListener('pointermove', (event) => {
    if (!drag) return;
    if (Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 4) { drag.moved = true; graph.classList.add('dragging'); }
    if (!drag.moved) return;
    const r = graph.getBoundingClientRect();
    box.x = drag.box.x - (event.clientX - drag.x) / r.width * box.w;
    box.y = drag.box.y - (event.clientY - drag.y) / r.height * box.h;
    setView();
  });
  window.addEventListener('pointerup', () => { drag = null; graph.classList.remove('dragging'); });
  const middle = () => [box.x + box.w / 2, box.y + box.h / 2];
  byId('zoom-in').addEventListener('click', () => zoom(1 / 1.3, ...middle()));
  byId('zoom-out').addEventListener('click', () => zoom(1.3, ...middle()));
  byId('zoom-fit').addEventListener('click', () => {
    const g = view.programs[current].graph, ratio = graph.clientWidth / Math.max(1, graph.clientHeight);
    const w = Math.max(g.width, g.height * ratio), h = w / ratio;
    box = { x: (g.width - w) / 2, y: (g.height - h) / 2, w, h };
    setView();
  });
  window.addEventListener('resize', () => { if (svg) fit(); });

  function select(index) {
    const g = view.programs[current].graph;
    nodeElements.forEach((element, i) => element.classList.toggle('selected', i === index));
    edgeElements.forEach((element, i) => element.classList.toggle('near', index !== null && (g.edges[i].from === index || g.edges[i].to === index)));
  }

  // ---- Side panel ----
  const side = byId('side');
  function details(parent, rows) {
    const list = put(parent, 'dl');
    for (const [key, value, mono] of rows) {
      if (value === undefined || value === null || value === '') continue;
      put(list, 'dt', {}, key);
      put(list, 'dd', mono ? { class: 'mono' } : {}, value);
    }
  }
  function section(text) { put(side, 'div', { class: 'section' }, text); }
  function link(text, open) {
    const button = put(side, 'button', { class: 'link', type: 'button' }, text);
    button.addEventListener('click', open);
  }
  function chips(stage, phase) {
    const line = put(side, 'div');
    swatch(line, colourOf(stage), 'stage ' + stage, 'chip');
    if (phase) swatch(line, 'var(--' + phase + ')', phase, 'chip');
  }
  function showHint() {
    side.replaceChildren();
    put(side, 'h3', {}, 'Nothing selected');
    put(side, 'p', { class: 'muted' }, 'Click a box of the graph, a bar of the schedule, or search an op by name. Solid lines are values; dashed ones are activations kept for the backward pass; blue ones go to another stage.');
  }
  function opList(ops, back) {
    ops.slice(0, 400).forEach((id) => link(plan.ops[id].name + '  ·  ' + (plan.ops[id].op || plan.ops[id].kind), () => showOp(id, back)));
    if (ops.length > 400) put(side, 'div', { class: 'muted' }, 'and ' + (ops.length - 400) + ' more; search finds them');
  }
  function showGroup(index) {
    const node = view.programs[current].graph.nodes[index];
    select(index);
    if (node.ops.length === 1) return showOp(node.ops[0], null);
    side.replaceChildren();
    put(side, 'h3', {}, node.title);
    chips(node.stage, node.phase);
    details(side, [['ops', String(node.ops.length)], ['arithmetic', countText(node.flops) + 'FLOP'], ['memory moved', bytesText(node.bytes)]]);
    put(side, 'div', { class: 'muted' }, 'per micro-batch and rank');
    section('Ops');
    opList(node.ops, () => showGroup(index));
  }
  function showChunk(chunkId, microbatch, bar) {
    const chunk = plan.stages[chunkId];
    select(null);
    side.replaceChildren();
    put(side, 'h3', {}, chunk.phase + (chunk.phase === 'forward' || chunk.phase === 'backward' ? ' of micro-batch ' + microbatch : ''));
    chips(chunk.stage, chunk.phase);
    details(side, [['start', timeText(bar[2])], ['duration', timeText(bar[3] - bar[2])], ['chunk', String(chunkId)], ['ops', String(chunk.ops.length)]]);
    section('Ops');
    opList(chunk.ops, () => showChunk(chunkId, microbatch, bar));
  }
  function valueRow(id, role) {
    const value = plan.values[id];
    const row = put(side, 'div', { class: 'value-row' });
    put(row, 'div', {}, value.name);
    put(row, 'div', { class: 'mono' }, typeText(value, value.shape));
    const cut = value.sharding.map((axis, d) => axis ? 'dimension ' + d + ' over ' + axis : '').filter(Boolean).join(', ');
    put(row, 'div', { class: 'muted' }, role + ' · ' + value.kind + ' · ' + bytesText(value.bytes) + (value.slots > 1 ? ' × ' + value.slots + ' slots' : '') + ' at ' + value.offset);
    put(row, 'div', { class: 'muted' }, cut ? 'of ' + typeText(value, value.global_shape) + ', cut: ' + cut : 'whole on every rank');
  }
  function showOp(id, back) {
    const op = plan.ops[id];
    const node = nodeOfOp.get(id);
    history.replaceState(null, '', '#op=' + id);
    select(node === undefined ? null : node);
    side.replaceChildren();
    if (back) put(side, 'button', { class: 'back', type: 'button' }, '← back').addEventListener('click', back);
    put(side, 'h3', {}, op.name);
    chips(op.stage, chunkOf[id] === undefined ? '' : plan.stages[chunkOf[id]].phase);
    details(side, [
      ['op', op.op, true], ['kind', op.kind], ['source', op.source, true], ['kernel', op.kernel, true],
      ['tiles', op.kind === 'kernel' ? String(op.tiles ?? 1) : ''],
      ['arithmetic', op.flops ? countText(op.flops) + 'FLOP' : ''], ['memory moved', op.bytes ? bytesText(op.bytes) : ''],
      ['axis', op.axis], ['peer stage', op.kind === 'send' || op.kind === 'receive' ? String(op.peer_stage ?? 0) : ''],
      ['channel', op.kind === 'send' || op.kind === 'receive' ? String(op.channel ?? 0) : ''],
      ['trips', op.trips ? String(op.trips) : ''], ['id', String(id)],
    ]);
    const reads = new Set(op.reads || []), writes = new Set(op.writes || []);
    const touched = [...new Set([...(op.buffers || []), ...reads, ...writes])];
    if (touched.length) section('Values');
    touched.forEach((value) => valueRow(value, reads.has(value) ? (writes.has(value) ? 'in place' : 'read') : writes.has(value) ? 'written' : 'workspace'));
    const here = () => showOp(id, back);
    if ((op.deps || []).length) section('After');
    (op.deps || []).forEach((dep) => link(plan.ops[dep].name, () => showOp(dep, here)));
    if (dependants[id].length) section('Before');
    dependants[id].slice(0, 100).forEach((next) => link(plan.ops[next].name, () => showOp(next, here)));
  }

  // ---- Schedule ----
  function showTimeline() {
    const t = view.programs[current].timeline;
    const host = byId('timeline');
    host.replaceChildren();
    const left = 62, row = 30, top = 22;
    const count = Math.max(1, ...t.stages.map((s) => s.length));
    const width = Math.max(host.clientWidth - 28, Math.min(count * 14, 6000), 400);
    const height = top + t.stages.length * row + 6;
    const picture = draw(host, 'svg', { viewBox: '0 0 ' + width + ' ' + height, role: 'img', 'aria-label': 'Schedule of each stage' });
    picture.style.width = width + 'px';
    picture.style.height = height + 'px';
    const x = (us) => left + us / Math.max(t.total_us, 1e-9) * (width - left - 4);
    for (let i = 0; i <= 8; ++i) {
      const at = x(t.total_us * i / 8);
      draw(picture, 'line', { x1: at, x2: at, y1: top - 4, y2: height, class: 'grid' });
      draw(picture, 'text', { x: at, y: 12, 'text-anchor': i === 8 ? 'end' : i === 0 ? 'start' : 'middle' }, t.to_scale ? timeText(t.total_us * i / 8) : Math.round(i / 8 * 100) + ' %');
    }
    t.stages.forEach((bars, stage) => {
      const y = top + stage * row;
      draw(picture, 'rect', { x: left, y: y + 2, width: width - left - 4, height: row - 4, rx: 4, class: 'lane' });
      draw(picture, 'rect', { x: 2, y: y + 9, width: 10, height: 10, rx: 3, fill: colourOf(stage) });
      draw(picture, 'text', { x: 17, y: y + 18 }, 'stage ' + stage);
      bars.forEach((bar) => {
        const [chunk, microbatch, start, end] = bar;
        const phase = plan.stages[chunk].phase;
        const w = Math.max(x(end) - x(start) - 1, 1);
        const item = draw(picture, 'g', { class: 'slot ' + phase });
        draw(item, 'rect', { x: x(start), y: y + 3, width: w, height: row - 6, rx: Math.min(4, w / 3) }).style.fill = 'var(--' + phase + ')';
        if (w > 12 && (phase === 'forward' || phase === 'backward'))
          draw(item, 'text', { x: x(start) + w / 2, y: y + 19, 'text-anchor': 'middle' }, String(microbatch));
        draw(item, 'title', {}, phase + ', micro-batch ' + microbatch + ': ' + timeText(start) + ' to ' + timeText(end));
        item.addEventListener('click', () => showChunk(chunk, microbatch, bar));
      });
    });
    byId('timeline-note').textContent = (t.to_scale ? 'scaled to the predicted step' : 'proportions only') + '; numbers are micro-batches';
    const phases = byId('phases');
    phases.replaceChildren();
    phaseOrder.forEach((phase) => swatch(phases, 'var(--' + phase + ')', phase));
  }

  // ---- Tables ----
  function table(host, head, rows) {
    host.replaceChildren();
    if (!rows.length) { put(host, 'div', { class: 'empty' }, 'none'); return; }
    const element = put(host, 'table');
    const line = put(put(element, 'thead'), 'tr');
    head.forEach(([text, number]) => put(line, 'th', number ? { class: 'number' } : {}, text));
    const body = put(element, 'tbody');
    rows.forEach(({ cells, total }) => {
      const tr = put(body, 'tr', total ? { class: 'total' } : {});
      cells.forEach((text, i) => put(tr, 'td', head[i][1] ? { class: 'number' } : {}, text));
    });
  }
  function showMemory() {
    const stages = view.memory.slice(0, 24);
    const kinds = [...new Set(stages.flatMap((rows) => rows.map((row) => row.kind)))];
    const cellOf = (rows, kind) => { const row = rows.find((r) => r.kind === kind); return row ? bytesText(row.bytes) : '–'; };
    const rows = kinds.map((kind) => ({ cells: [kind, ...stages.map((s) => cellOf(s, kind))] }));
    rows.push({ total: true, cells: ['kept from step to step', ...stages.map((_, s) => bytesText(plan.memory[s].persistent_bytes))] });
    rows.push({ total: true, cells: ['arena (peak)', ...stages.map((_, s) => bytesText(plan.memory[s].arena_bytes))] });
    table(byId('memory'), [['values'], ...stages.map((_, s) => ['stage ' + s, true])], rows);
  }
  function showTraffic() {
    const rows = view.programs[current].traffic.map((r) => ({ cells: ['stage ' + r.stage, r.op, r.axis, String(r.calls), bytesText(r.bytes)] }));
    table(byId('traffic'), [['where'], ['op'], ['axis'], ['calls', true], ['bytes', true]], rows);
  }
  function showSearch() {
    const s = plan.search;
    byId('search-note').textContent = 'stopped: ' + (s.stopped || '–') + ' · lower bound ' + timeText(s.lower_bound_us) + ' · gap ' + percent(s.gap) + ' · ' + s.seconds.toFixed(1) + ' s';
    const rows = s.alternatives.map((a) => ({ cells: [a.description, timeText(a.step_us), bytesText(a.peak_bytes)] }));
    if (rows.length) rows.unshift({ total: true, cells: ['this plan', timeText(plan.predicted.step_us), bytesText(Math.max(0, ...plan.memory.map((m) => m.arena_bytes)))] });
    table(byId('alternatives'), [['alternative'], ['step', true], ['peak', true]], rows);
  }

  // ---- Finding ops ----
  byId('search').addEventListener('input', (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    const found = wanted ? plan.ops.map((_, id) => id).filter((id) => plan.ops[id].name.toLowerCase().includes(wanted)) : [];
    const hits = new Set(found.map((id) => nodeOfOp.get(id)));
    nodeElements.forEach((element, i) => element.classList.toggle('dim', wanted !== '' && !hits.has(i)));
    if (!wanted) return showHint();
    side.replaceChildren();
    put(side, 'h3', {}, found.length === 1 ? '1 op' : found.length + ' ops');
    opList(found, null);
  });

  // ---- Programs, theme ----
  function showProgram(index) {
    current = index;
    [...byId('programs').children].forEach((button, i) => button.setAttribute('aria-pressed', String(i === index)));
    showSummary();
    if (!view.programs.length) return;
    showGraph();
    showTimeline();
    showTraffic();
    showHint();
  }
  view.programs.forEach((program, index) => {
    put(byId('programs'), 'button', { type: 'button' }, program.name).addEventListener('click', () => showProgram(index));
  });
  const root = document.documentElement;
  root.dataset.theme = window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  byId('theme').addEventListener('click', () => { root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark'; });
  showMemory();
  showSearch();
  showHint();
  showProgram(0);
  // A link to an op: plan.html#op=12
  const linked = /^#op=(\d+)$/.exec(location.hash);
  if (linked && plan.ops[linked[1]]) showOp(Number(linked[1]), null);
})();
