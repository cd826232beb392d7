// Who sends how much to whom: a matrix of ranks, and the ops that do it.
let matrixMode = 'bytes';
function showMatrix(host) {
  const c = program().communication, values = matrixMode === 'bytes' ? c.bytes : c.time_us, textOf = matrixMode === 'bytes' ? bytesText : timeText;
  host.replaceChildren();
  const most = Math.max(...values, 0), n = c.size;
  if (!most) { put(host, 'div', { class: 'empty' }, ranks === 1 ? 'One rank: nothing is sent.' : 'No rank sends anything to another.'); return; }
  const room = Math.min(560, Math.max(280, host.clientWidth - 20)), left = 58, cell = Math.min(64, (room - left) / n), size = left + cell * n + 2;
  const svg = draw(host, 'svg', { class: 'matrix', viewBox: '0 0 ' + size + ' ' + size, role: 'img', 'aria-label': 'Bytes or time between ranks' });
  svg.style.width = size + 'px';
  svg.style.height = size + 'px';
  const label = (i) => c.ranks_per_cell === 1 ? String(i) : i * c.ranks_per_cell + '…';
  draw(svg, 'text', { x: left + cell * n / 2, y: 12, 'text-anchor': 'middle' }, 'to rank');
  draw(svg, 'text', { x: 4, y: 36, class: 'muted' }, 'from');
  for (let i = 0; i < n; ++i) {
    if (n > 16 && i % Math.ceil(n / 16)) continue;
    draw(svg, 'text', { x: left + cell * (i + 0.5), y: 34, 'text-anchor': 'middle' }, label(i));
    draw(svg, 'text', { x: left - 8, y: 42 + cell * (i + 0.5) + 4, 'text-anchor': 'end' }, label(i));
  }
  svg.setAttribute('viewBox', '0 0 ' + size + ' ' + (42 + cell * n + 2));
  svg.style.height = 42 + cell * n + 2 + 'px';
  for (let from = 0; from < n; ++from)
    for (let to = 0; to < n; ++to) {
      const value = values[from * n + to], rect = draw(svg, 'rect', { x: left + to * cell, y: 42 + from * cell, width: cell - 1, height: cell - 1, rx: 2, class: 'cell', 'data-from': from, 'data-to': to, 'data-value': value });
      if (value > 0) rect.style.fill = costColour(value / most);
      if (value > 0 && cell > 52) draw(svg, 'text', { x: left + to * cell + cell / 2, y: 42 + from * cell + cell / 2 + 4, 'text-anchor': 'middle', class: (value / most > 0.3) === (root.dataset.theme !== 'dark') ? 'on-dark' : 'on-light' }, textOf(value).replace(/\.\d+/, (d) => d.slice(0, 2)));
      if (value > 0) rect.addEventListener('pointermove', (event) => showTip(event, ['rank ' + label(from) + ' → rank ' + label(to), bytesText(c.bytes[from * n + to]) + ' a step', timeText(c.time_us[from * n + to]) + ' in ops of the two, predicted']));
    }
  svg.addEventListener('pointerleave', hideTip);
  put(host, 'div', { class: 'muted words' }, 'A row sends, a column receives; the strongest colour is ' + textOf(most) + '. Sums go both ways: a rank gives its part of each tensor and takes back the result.');
}
function showCommunication() {
  const host = byId('view-communication'), c = program().communication;
  host.replaceChildren();
  const pair = put(host, 'div', { class: 'pair' });
  const box = panel(pair, 'Between ranks', 'in one step, over all micro-batches');
  const tools = put(box.head, 'div', { class: 'tools' });
  const body = put(box.body, 'div', { class: 'matrix-box' });
  choice(tools, '', [['bytes', 'bytes'], ['time', 'time']], matrixMode, (mode) => { matrixMode = mode; showMatrix(body); });
  showMatrix(body);
  const kinds = new Map();
  c.ops.forEach((row) => { const key = plan.ops[row.op].kind + ' · ' + row.axis, sum = kinds.get(key) || { calls: 0, bytes: 0, us: 0, ops: 0 }; kinds.set(key, { calls: sum.calls + row.calls, bytes: sum.bytes + row.bytes * row.calls, us: sum.us + row.predicted_us * row.calls, ops: sum.ops + 1 }); });
  const sums = panel(pair, 'By kind and mesh axis', 'over all stages, on one rank of each');
  table(sums.body, [['kind · axis'], ['ops', true], ['calls', true], ['bytes', true], ['predicted', true]], [...kinds].sort((a, b) => b[1].us - a[1].us).map(([key, sum]) => ({ cells: [key, String(sum.ops), String(sum.calls), bytesText(sum.bytes), timeText(sum.us)] })), 'nothing is sent');
  const list = panel(host, 'Collectives and sends', plural(c.num_ops, 'op') + (c.num_ops > c.ops.length ? ', the ' + c.ops.length + ' that take longest' : '') + '; the longest first');
  const columns = [['op'], ['kind'], ['axis'], ['stage', true], ['algorithm'], ['bytes', true], ['calls', true], ['predicted a call', true]];
  if (view.trace) columns.push(['measured a call', true]);
  table(list.body, columns, c.ops.map((row) => {
    const op = plan.ops[row.op];
    return { cells: [op.name, op.kind, row.axis, String(op.stage), row.algorithm || '–', bytesText(row.bytes), String(row.calls), timeText(row.predicted_us), ...(view.trace ? [row.measured_us >= 0 ? timeText(row.measured_us) : '–'] : [])],
      order: [op.name, op.kind, row.axis, op.stage, row.algorithm, row.bytes, row.calls, row.predicted_us, row.measured_us], action: () => chooseOp(row.op, true) };
  }), 'nothing is sent');
}
