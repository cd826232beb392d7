// The plans that the search looked at, time against memory.
/** Beside its point, where no other label stands. */
function labelPoint(item, words, x, y, className, labels, width) {
  const length = words.length * 6.1, sides = [[12, 4], [-12, 4], [12, 17], [-12, 17], [12, -9], [-12, -9], [12, 30], [-12, 30]];
  const boxAt = ([dx, dy]) => ({ left: dx > 0 ? x + dx : x + dx - length, right: dx > 0 ? x + dx + length : x + dx, y: y + dy });
  const isFree = (box) => box.right < width - 4 && box.left > 74 && !labels.some((other) => box.left < other.right && other.left < box.right && Math.abs(box.y - other.y) < 12);
  const place = sides.find((side) => isFree(boxAt(side))) || sides[1];
  labels.push(boxAt(place));
  draw(item, 'text', { x: x + place[0], y: y + place[1], 'text-anchor': place[0] > 0 ? 'start' : 'end', class: className }, words);
}
function showAlternatives() {
  const host = byId('view-alternatives'), search = plan.search || {}, alternatives = search.alternatives || [];
  host.replaceChildren();
  const peak = Math.max(0, ...plan.memory.map((m) => m.arena_bytes)), bound = search.lower_bound_us || 0;
  const box = panel(host, 'Alternatives', 'search: ' + (search.stopped || 'none') + (bound > 0 ? ' · no plan takes less than ' + timeText(bound) + ' · gap ' + percent(search.gap || 0) + ' · ' + (search.seconds || 0).toFixed(1) + ' s' : ''));
  if (!alternatives.length) {
    const words = put(box.body, 'div', { class: 'words' });
    put(words, 'p', {}, (search.stopped || '') === 'given by hand' ? 'This plan was given by hand (dgc --mesh): nothing was searched, so there is no other plan to show.' : 'The search kept no alternatives to this plan.');
    put(words, 'p', { class: 'muted' }, 'To compare two plans: dgviz before.dgx after.dgx.');
    return;
  }
  // The search judges all plans by closed forms; the chosen one is then compiled and predicted op by op.
  const judged = bound > 0 ? bound * (1 + (search.gap || 0)) : plan.predicted.step_us;
  const points = [{ name: 'this plan', us: judged, bytes: peak, chosen: true }, ...(bound > 0 ? [{ name: 'this plan, compiled', us: plan.predicted.step_us, bytes: peak, compiled: true }] : []), ...alternatives.map((a) => ({ name: a.description, us: a.step_us, bytes: a.peak_bytes }))];
  const width = Math.max(320, box.body.clientWidth), height = 340, left = 74, bottom = 40, startUs = Math.min(...points.map((p) => p.us), bound || Infinity) * 0.9, endUs = Math.max(...points.map((p) => p.us)) * 1.06, endBytes = Math.max(...points.map((p) => p.bytes)) * 1.15;
  const svg = draw(box.body, 'svg', { class: 'scatter', viewBox: '0 0 ' + width + ' ' + height, role: 'img', 'aria-label': 'Time against memory of the plans' });
  svg.style.height = height + 'px';
  const x = (us) => left + (us - startUs) / Math.max(endUs - startUs, 1e-9) * (width - left - 16), y = (bytes) => height - bottom - bytes / Math.max(endBytes, 1) * (height - bottom - 14);
  const spaced = ticksOf(endUs - startUs, 6)[1] || endUs;
  for (let at = Math.ceil(startUs / spaced) * spaced; at <= endUs; at += spaced) { draw(svg, 'line', { x1: x(at), x2: x(at), y1: 14, y2: height - bottom, class: 'grid' }); draw(svg, 'text', { x: x(at), y: height - bottom + 16, 'text-anchor': 'middle' }, timeText(at)); }
  for (const at of byteTicks(endBytes, 6)) { draw(svg, 'line', { x1: left, x2: width - 16, y1: y(at), y2: y(at), class: 'grid' }); draw(svg, 'text', { x: left - 6, y: y(at) + 4, 'text-anchor': 'end' }, bytesText(at)); }
  draw(svg, 'text', { x: left + (width - left) / 2, y: height - 6, 'text-anchor': 'middle' }, 'step → slower');
  draw(svg, 'text', { x: 6, y: 10 }, 'peak memory of a device');
  if (bound > 0) { draw(svg, 'line', { x1: x(bound), x2: x(bound), y1: 14, y2: height - bottom, class: 'limit' }); draw(svg, 'text', { x: x(bound) + 5, y: 26, class: 'strong' }, 'bound ' + timeText(bound)); }
  const labels = [];
  points.forEach((point) => {
    const item = draw(svg, 'g', { class: 'point' + (point.chosen ? ' chosen' : point.compiled ? ' compiled' : '') });
    if (point.chosen) draw(item, 'path', { d: 'M0-9L2.6-2.8L9-2.6L4 1.6L5.6 8L0 4.4L-5.6 8L-4 1.6L-9-2.6L-2.6-2.8Z', transform: 'translate(' + x(point.us) + ' ' + y(point.bytes) + ') scale(1.1)' });
    else draw(item, 'circle', { cx: x(point.us), cy: y(point.bytes), r: 5.5 });
    if (point.chosen || points.length < 12) labelPoint(item, shorten(point.name, 46), x(point.us), y(point.bytes), point.chosen ? 'strong' : '', labels, width);
    item.addEventListener('pointermove', (event) => showTip(event, [point.name, timeText(point.us) + ', ' + bytesText(point.bytes)]));
    item.addEventListener('pointerleave', hideTip);
  });
  if (view.reasons) {
    const why = panel(host, 'Why this one', 'what keeps it from being faster: ' + view.reasons.binding);
    table(why.body, [['largest costs, by the search'], ['of a step', true], ['what would change it']], view.reasons.largest.map((item) => ({ cells: [item.what, timeText(item.step_us), item.advice] })));
  }
  const list = panel(host, 'As a list', bound > 0 ? 'judged by the closed forms of the search; the chosen plan, compiled, is predicted op by op' : 'down and left is better');
  table(list.body, [['plan'], ['step', true], ['against this', true], ['peak', true]], points.map((point) => ({ total: point.chosen || point.compiled, cells: [point.name, timeText(point.us), point.chosen ? '' : signed(percent(Math.abs(point.us / judged - 1)), point.us - judged), bytesText(point.bytes)],
    order: [point.name, point.us, point.us, point.bytes] })));
}
