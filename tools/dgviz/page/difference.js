// What changed from another plan to this one.
const unitTexts = { time: timeText, bytes: bytesText, share: percent, count: (n) => String(n) };
function changeRows(host, title, note, changes) {
  const box = panel(host, title, note);
  table(box.body, [['what'], ['before', true], ['after', true], ['change', true]], changes.map((change) => {
    const text = unitTexts[change.unit], delta = change.after - change.before;
    const better = delta === 0 ? '' : (delta < 0) === change.less_is_better ? '  better' : '  worse';
    const by = delta === 0 ? 'same' : change.unit === 'share' ? signed((Math.abs(delta) * 100).toFixed(1) + ' points', delta) : signed(change.before ? percent(Math.abs(delta / change.before)) : text(Math.abs(delta)), delta);
    return { cells: [change.name, text(change.before), text(change.after), by + (change.unit === 'count' ? '' : better)] };
  }), 'no traffic in either plan');
}
function showDifference() {
  const host = byId('view-difference'), difference = view.difference;
  host.replaceChildren();
  if (!difference) {
    const box = panel(host, 'Difference', '');
    const words = put(box.body, 'div', { class: 'words' });
    put(words, 'p', {}, 'There is one plan in this page, so nothing to compare it with.');
    put(words, 'p', { class: 'muted' }, 'dgviz before.dgx ' + (view.job || 'after.dgx') + ' draws a page that says what moved and what it costs or saves.');
    return;
  }
  const own = difference.programs[program().name];
  if (!own) { put(panel(host, 'Difference', '').body, 'div', { class: 'empty' }, difference.before + ' has no program ' + program().name + '.'); return; }
  const changed = own.settings.filter((setting) => setting.before !== setting.after);
  const step = own.figures[0], faster = step.before - step.after;
  const box = panel(host, 'Difference', difference.before + ' → ' + difference.after);
  const words = put(box.body, 'div', { class: 'words' });
  if (own.models) put(words, 'p', { class: 'lead warning' }, own.models);
  put(words, 'p', { class: 'lead' },
    (Math.abs(faster) < 1e-6 * step.before ? 'Both plans are predicted to take the same time' : difference.after + ' is predicted to be ' + (faster > 0 ? (step.before / step.after).toFixed(2) + ' times as fast' : (step.after / step.before).toFixed(2) + ' times slower')) +
    ': ' + timeText(step.before) + ' → ' + timeText(step.after) + '. ' + plural(own.moved, 'op') + ' moved, ' + own.added + ' added, ' + own.removed + ' removed, ' + own.same + ' stayed.');
  put(words, 'p', { class: 'muted' }, changed.length ? 'What was asked for differs in ' + changed.map((setting) => setting.name + ' (' + (setting.before || 'none') + ' → ' + (setting.after || 'none') + ')').join(', ') + '.' : 'Both were asked for in the same way.');
  const settings = panel(host, 'Settings', 'what each plan was made with', 'settings');
  table(settings.body, [['what'], ['before'], ['after'], ['']], own.settings.map((setting) => ({ total: setting.before !== setting.after, cells: [setting.name, setting.before || 'none', setting.after || 'none', setting.before === setting.after ? 'same' : 'changed'] })));
  const pair = put(host, 'div', { class: 'pair' });
  changeRows(pair, 'Figures', '', own.figures);
  changeRows(pair, 'Traffic', 'tensors over all ranks in a step', own.traffic);
  const ops = panel(host, 'Ops', 'what changed, the largest change of time first' + (own.moved + own.added + own.removed > own.ops.length ? '; the first ' + own.ops.length : ''));
  table(ops.body, [['op'], ['phase'], ['what'], ['time a step', true]], own.ops.map((change) => ({ cells: [change.name, change.phase, change.what, signed(timeText(Math.abs(change.delta_us)), change.delta_us)],
    order: [change.name, change.phase, change.what, change.delta_us], action: change.op === null ? undefined : () => chooseOp(change.op, true) })), 'every op stayed as it was');
}
