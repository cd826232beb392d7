// What each device holds over the step, by kind, and what is alive when it holds most.
let memoryStage = null;
function curveOf(host, stage, end, most) {
  const { points, peak } = program().memory[stage], arena = plan.memory[stage].arena_bytes;
  const width = Math.max(320, host.clientWidth), height = 190, left = 66, bottom = 22, top = 12;
  const svg = draw(host, 'svg', { class: 'curve', viewBox: '0 0 ' + width + ' ' + height, role: 'img', 'aria-label': 'Memory of stage ' + stage });
  svg.style.height = height + 'px';
  const x = (us) => left + us / Math.max(end, 1e-9) * (width - left - 10), y = (bytes) => height - bottom - bytes / Math.max(most, 1) * (height - bottom - top);
  for (const at of byteTicks(most, 4)) {
    draw(svg, 'line', { x1: left, x2: width - 10, y1: y(at), y2: y(at), class: 'grid' });
    draw(svg, 'text', { x: left - 6, y: y(at) + 4, 'text-anchor': 'end' }, bytesText(at));
  }
  for (const at of ticksOf(end, Math.max(2, width / 130))) draw(svg, 'text', { x: Math.min(x(at), width - 4), y: height - 6, 'text-anchor': x(at) > width - 34 ? 'end' : 'middle' }, timeText(at));
  const base = points.map(() => 0);
  holdingNames.forEach((_, kind) => {
    let up = '', down = '';
    points.forEach((point, i) => {
      const next = i + 1 < points.length ? points[i + 1][0] : end, low = base[i], high = low + point[kind + 1];
      base[i] = high;
      up += (i ? 'L' : 'M') + x(point[0]).toFixed(1) + ' ' + y(high).toFixed(1) + 'L' + x(next).toFixed(1) + ' ' + y(high).toFixed(1);
      down = 'L' + x(next).toFixed(1) + ' ' + y(low).toFixed(1) + 'L' + x(point[0]).toFixed(1) + ' ' + y(low).toFixed(1) + down;
    });
    if (points.length) draw(svg, 'path', { d: up + down + 'Z', class: 'area' }).style.fill = holdingColours[kind];
  });
  const total = peak.slice(1).reduce((a, b) => a + b, 0);
  draw(svg, 'line', { x1: left, x2: width - 10, y1: y(arena), y2: y(arena), class: 'limit' });
  draw(svg, 'text', { x: width - 14, y: y(arena) + 12, 'text-anchor': 'end', class: 'strong' }, 'arena ' + bytesText(arena));
  draw(svg, 'circle', { cx: x(peak[0]), cy: y(total), r: 4.5, class: 'peak' });
  svg.addEventListener('pointermove', (event) => {
    const us = (event.clientX - svg.getBoundingClientRect().left - left) / (svg.getBoundingClientRect().width - left - 10) * end;
    const point = points.filter((p) => p[0] <= us).pop() || points[0];
    if (point) showTip(event, ['stage ' + stage + ' at ' + timeText(clamp(us, 0, end)) + ': ' + bytesText(point.slice(1).reduce((a, b) => a + b, 0)), ...holdingNames.map((name, i) => name + ' ' + bytesText(point[i + 1]))]);
  });
  svg.addEventListener('pointerleave', hideTip);
  return total;
}
function showMemory() {
  const host = byId('view-memory'), p = program();
  host.replaceChildren();
  const box = panel(host, 'Memory', 'of one device of each stage, over the predicted step');
  const legend = put(null, 'div', { class: 'legend' });
  box.panel.insertBefore(legend, box.body);
  holdingNames.forEach((name, i) => swatch(legend, holdingColours[i], name));
  put(legend, 'span', {}, '┄ arena: what is reserved');
  put(legend, 'span', {}, '● peak');
  const most = Math.max(...plan.memory.map((m) => m.arena_bytes), 1), shown = Math.min(p.memory.length, 16);
  if (memoryStage === null || memoryStage >= shown) memoryStage = p.memory.reduce((best, _, stage) => plan.memory[stage].arena_bytes > plan.memory[best].arena_bytes ? stage : best, 0);
  for (let stage = 0; stage < shown; ++stage) {
    const part = put(box.body, 'div', { class: 'curve-box' + (stage === memoryStage ? ' chosen' : '') });
    const head = put(part, 'div', { class: 'curve-head' });
    swatch(head, stageColour(stage), 'stage ' + stage + ' · ' + ranksOfStage(stage), 'strong');
    const words = put(head, 'span', { class: 'muted' });
    const peak = curveOf(part, stage, p.predicted.total_us, most);
    words.textContent = 'peak of what lives ' + bytesText(peak) + ' at ' + timeText(p.memory[stage].peak[0]) + ' · ' + bytesText(plan.memory[stage].persistent_bytes) + ' kept from step to step';
    if (shown > 1) part.addEventListener('click', () => { memoryStage = stage; showMemory(); });
  }
  if (p.memory.length > shown) put(box.body, 'div', { class: 'empty' }, 'and ' + (p.memory.length - shown) + ' more stages');
  const curve = p.memory[memoryStage];
  if (!curve) return;
  const list = panel(host, 'Alive at the peak of stage ' + memoryStage, plural(curve.num_alive, 'tensor') + (curve.num_alive > curve.alive.length ? ', the largest ' + curve.alive.length : '') + (shown > 1 ? '; click a curve for another stage' : ''));
  table(list.body, [['tensor'], ['kind'], ['type'], ['micro-batch', true], ['bytes', true]], curve.alive.map(([id, microbatch, bytes]) => {
    const value = plan.values[id], writer = writers.get(id);
    return { cells: [value.name, value.kind, typeText(value, value.shape), ['activation', 'gradient', 'input', 'scratch'].includes(value.kind) ? String(microbatch) : '–', bytesText(bytes)], order: [value.name, value.kind, typeText(value, value.shape), microbatch, bytes],
      action: writer === undefined ? undefined : () => chooseOp(writer, true) };
  }));
}
