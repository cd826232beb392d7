// The step, drawn on a canvas: a row for each rank, what was predicted above what was measured. Far away whole passes of a
// micro-batch are drawn, near by their ops.
const lanesOf = { compute: 20, communication: 7, gap: 3 };
const waitColour = '#9ed9c5'; // a thread that waits for a communication which goes on
const lateColour = '#b9bfc8'; // a communication, or a thread at its end, that waits for another rank
const namesBelow = 0.12; // when less of the step is shown, ops have names and passes no numbers
let timeline = null;

class TimelineView {
  constructor(host, onPick) {
    Object.assign(this, { host, onPick, predicted: program().predicted, measured: program().measured, onlyCritical: false, ownScale: false });
    if (this.measured) this.ownScale = Math.max(this.measured.total_us, this.predicted.total_us) > 3 * Math.min(this.measured.total_us, this.predicted.total_us);
    this.byRank = ranks <= 32;
    host.replaceChildren();
    this.canvas = put(host, 'canvas', { tabindex: 0, role: 'img', 'aria-label': 'Timeline; arrows move, plus and minus zoom, 0 shows all' });
    this.rows = this.makeRows();
    this.index();
    this.from = 0;
    this.to = 1; // shares of the step that are shown
    this.listen();
    this.resize();
    new ResizeObserver(() => { if (host.clientWidth !== this.width) this.resize(); }).observe(host);
  }
  /** One row for each rank, or for each stage where there are too many. */
  makeRows() {
    const rows = [];
    const threads = this.measured ? Math.max(1, this.measured.lanes - 1) : 0;
    let y = 26;
    for (let i = 0; i < (this.byRank ? ranks : mesh.pipe); ++i) {
      const stage = this.byRank ? Math.floor(i / ranksPerStage) % mesh.pipe : i;
      const row = { label: this.byRank ? 'rank ' + i : 'stage ' + i, stage, rank: this.byRank ? i : stage * ranksPerStage, y, bands: [] };
      const band = (kind, lanes) => { row.bands.push({ kind, y, lanes, height: lanes * (lanesOf.compute - (lanes > 1 ? 6 : 0)) + lanesOf.communication + 2 }); y += row.bands[row.bands.length - 1].height + lanesOf.gap; };
      band('predicted', 1);
      if (this.measured) band('measured', Math.min(threads, 8));
      y += 8;
      row.height = y - row.y - 4;
      rows.push(row);
    }
    this.height = y + 4;
    return rows;
  }
  /** Events by row, in the order of their starts. */
  index() {
    const split = (t, numRows) => {
      const lists = Array.from({ length: numRows }, () => []), bars = Array.from({ length: numRows }, () => []);
      if (!t) return { lists, bars };
      for (let i = 0; i < t.tasks.length; ++i) lists[t.row[i]].push(i);
      t.longest = t.lengths.reduce((most, length) => Math.max(most, length), 0);
      for (const [row, chunk, microbatch, start, end] of t.bars) bars[row].push({ row, chunk, microbatch, start, end });
      return { lists, bars };
    };
    this.events = { predicted: split(this.predicted, mesh.pipe), measured: split(this.measured, ranks) };
  }
  totalOf(kind) {
    if (this.ownScale || !this.measured) return this[kind].total_us;
    return Math.max(this.predicted.total_us, this.measured.total_us);
  }
  rowIndex(row, kind) { return kind === 'predicted' ? row.stage : row.rank; }
  resize() {
    if (this.host.clientWidth) this.setSize(this.host.clientWidth, devicePixelRatio || 1);
  }
  setSize(width, ratio) {
    Object.assign(this, { width, left: width < 500 ? 52 : 74, ratio });
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.width = width + 'px';
    this.canvas.style.height = this.height + 'px';
    this.paint();
  }
  x(us, kind) { return this.left + (us / Math.max(this.totalOf(kind), 1e-9) - this.from) / (this.to - this.from) * (this.width - this.left - 6); }
  /** Paints with the next frame, once, however often it is asked for. */
  repaint() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => { this.waits = false; this.paint(); });
  }
  /** The first event of a list, by starts, that may reach into what is shown. */
  firstShown(t, list, kind) {
    const from = this.from * this.totalOf(kind) - t.longest;
    let low = 0, high = list.length;
    while (low < high) { const middle = (low + high) >> 1; if (t.starts[list[middle]] < from) low = middle + 1; else high = middle; }
    return low;
  }
  paint() {
    this.ink = css('--text');
    this.paper = css('--surface');
    this.gap = css('--ground');
    this.canvas.dataset.shown = this.from + ' ' + this.to; // for who cannot see the picture
    const c = this.canvas.getContext('2d');
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.drawn = [];
    const text = css('--text'), muted = css('--muted'), line = css('--line'), lane = css('--raised');
    c.font = '11px system-ui, sans-serif';
    c.textBaseline = 'middle';
    this.paintAxis(c, muted, line);
    for (const row of this.rows) {
      c.fillStyle = text;
      c.textAlign = 'left';
      c.fillStyle = stageColour(row.stage);
      c.fillRect(2, row.y + 3, 4, row.height - 12);
      c.fillStyle = text;
      c.fillText(row.label, 11, row.bands[0].y + 11);
      for (const band of row.bands) {
        c.fillStyle = lane;
        c.fillRect(this.left, band.y, this.width - this.left - 6, band.height);
        if (this.measured && this.left > 60) { c.fillStyle = muted; c.textAlign = 'left'; c.fillText(band.kind === 'predicted' ? '' : 'measured', 11, band.y + 10); }
        this.paintBand(c, row, band);
      }
    }
    this.paintCrossings(c, text);
    this.paintMark(c, text);
  }
  /** Where the critical path goes from one row to another. */
  paintCrossings(c, text) {
    c.strokeStyle = text;
    c.fillStyle = text;
    for (const [kind, path] of [['predicted', program().predicted_path], ['measured', program().measured_path]]) {
      if (!this[kind] || !path) continue;
      const bandOf = (index) => { const row = this.rows.find((one) => this.rowIndex(one, kind) === index); return row && row.bands.find((band) => band.kind === kind); };
      let last = -9;
      for (const [from, to, us] of path.crossings) {
        const x = this.x(us, kind), a = bandOf(from), b = bandOf(to);
        if (!a || !b || x < this.left || x > this.width - 6 || Math.abs(x - last) < 1) continue;
        last = x;
        const down = b.y > a.y, y0 = down ? a.y + a.height : a.y, y1 = down ? b.y : b.y + b.height;
        c.beginPath();
        c.moveTo(x, y0);
        c.lineTo(x, y1);
        c.stroke();
        c.beginPath();
        c.moveTo(x, y1);
        c.lineTo(x - 2.5, y1 + (down ? -5 : 5));
        c.lineTo(x + 2.5, y1 + (down ? -5 : 5));
        c.fill();
      }
    }
  }
  paintAxis(c, muted, line) {
    const total = this.totalOf('predicted'), span = total * (this.to - this.from), first = total * this.from;
    c.strokeStyle = line;
    c.fillStyle = muted;
    c.textAlign = 'center';
    const wanted = Math.max(2, (this.width - this.left) / 110);
    const step = (this.ownScale ? ticksOf(100 * (this.to - this.from), wanted)[1] / 100 * total : ticksOf(span, wanted)[1]) || span;
    for (let at = Math.ceil(first / step) * step; at <= first + span * 1.0001; at += step) {
      const x = this.x(at, 'predicted');
      c.beginPath();
      c.moveTo(x, 18);
      c.lineTo(x, this.height);
      c.stroke();
      if (x < this.width - 24) c.fillText(this.ownScale ? Number((at / total * 100).toPrecision(6)) + ' %' : timeText(at), x, 9);
    }
  }
  paintBand(c, row, band) {
    const t = this[band.kind], { lists, bars } = this.events[band.kind], index = this.rowIndex(row, band.kind);
    const laneHeight = (band.height - lanesOf.communication - 2) / band.lanes, last = t.lanes - 1;
    const right = this.width - 6;
    const pieces = lists[index];
    // Many ops on one pixel are one stroke: what was painted there is not painted again.
    const reached = new Float64Array(t.lanes).fill(-1), underlined = new Float64Array(t.lanes).fill(-1), underlines = []; // painted last: communications of a lane overlap
    const scale = (right - this.left) / Math.max(this.totalOf(band.kind), 1e-9) / (this.to - this.from), shift = this.x(0, band.kind);
    for (let at = this.firstShown(t, pieces, band.kind); at < pieces.length; ++at) {
      const i = pieces[at], x0 = Math.max(this.left, shift + t.starts[i] * scale), x1 = Math.min(right, shift + (t.starts[i] + t.lengths[i]) * scale);
      if (x0 > right) break;
      if (x1 < this.left) continue;
      const lane = t.lane[i], isComm = lane === last, isCritical = t.critical[i] && underlined[lane] < x1;
      if (x1 - x0 < 0.5 && reached[lane] >= x1 && !isCritical) continue;
      reached[lane] = Math.max(reached[lane], x0 + 0.5);
      const y = isComm ? band.y + band.height - lanesOf.communication : band.y + 1 + Math.min(lane, band.lanes - 1) * laneHeight;
      const h = isComm ? lanesOf.communication - 1 : laneHeight - 1, w = Math.max(x1 - x0 - (x1 - x0 > 4 ? 0.6 : 0), 0.6);
      c.globalAlpha = this.onlyCritical && !t.critical[i] ? 0.22 : 1;
      c.fillStyle = isComm || plan.ops[t.tasks[i]].kind !== 'finish' ? workColours[view.ops.work[t.tasks[i]]] : waitColour;
      c.fillRect(x0, y, w, h);
      const busyFrom = clamp(shift + (t.starts[i] + t.waits[i]) * scale, x0, x0 + w);
      if (t.waits[i] > 0) {
        c.clearRect(x0, y, busyFrom - x0, h);
        c.fillStyle = lateColour;
        c.fillRect(x0, y + h / 2 - 1, busyFrom - x0, 2);
      }
      if (isCritical) { underlines.push([busyFrom, y + h - 2, Math.max(x0 + w - busyFrom, 1), 2]); underlined[lane] = x0 + Math.max(w, 1); }
      if (w > 6) this.drawn.push({ x0, x1, y, h, i, kind: band.kind });
      if (w > 46 && !isComm && this.to - this.from < namesBelow) { c.fillStyle = '#10151a'; c.textAlign = 'left'; c.fillText(shorten(plan.ops[t.tasks[i]].name, Math.floor(w / 6.3)), x0 + 4, y + h / 2); }
    }
    c.globalAlpha = 1;
    c.fillStyle = this.ink;
    underlines.forEach((line) => c.fillRect(...line));
    if (t.cut) this.paintBars(c, bars[index], band, laneHeight, right);
    // The number of each micro-batch, over its pass.
    c.textAlign = 'center';
    for (const bar of bars[index]) {
      const x0 = Math.max(this.left, this.x(bar.start, band.kind)), x1 = Math.min(right, this.x(bar.end, band.kind)), phase = plan.stages[bar.chunk].phase;
      if (x1 - x0 < 4) continue;
      this.drawn.push({ x0, x1, y: band.y, h: band.height, bar, kind: band.kind });
      c.strokeStyle = this.gap;
      c.strokeRect(x0, band.y + 0.5, x1 - x0, band.height - 1);
      if (x1 - x0 < 11 || (phase !== 'forward' && phase !== 'backward') || this.to - this.from < namesBelow) continue;
      c.fillStyle = this.paper;
      c.globalAlpha = 0.82;
      c.fillRect((x0 + x1) / 2 - 7, band.y + 3, 14, 13);
      c.globalAlpha = 1;
      c.fillStyle = this.ink;
      c.fillText(String(bar.microbatch), (x0 + x1) / 2, band.y + 10);
    }
  }
  /** Where not every op is in the page, a pass is one block in the colour of its phase. */
  paintBars(c, bars, band, laneHeight, right) {
    for (const bar of bars) {
      if (bar.microbatch === 0) continue;
      const x0 = Math.max(this.left, this.x(bar.start, band.kind)), x1 = Math.min(right, this.x(bar.end, band.kind));
      if (x1 < x0) continue;
      c.fillStyle = workColours[{ forward: 0, backward: 1, update: 3, begin: 5 }[plan.stages[bar.chunk].phase]];
      c.fillRect(x0, band.y + 1, Math.max(0.6, x1 - x0 - 0.6), laneHeight - 1);
    }
  }
  paintMark(c, text) {
    if (state.op === null) return;
    const wanted = drawnOp(state.op);
    c.strokeStyle = text;
    c.lineWidth = 2;
    for (const piece of this.drawn) if (piece.bar === undefined && this[piece.kind].tasks[piece.i] === wanted) c.strokeRect(piece.x0, piece.y, piece.x1 - piece.x0, piece.h);
    c.lineWidth = 1;
  }
  hit(event) {
    const r = this.canvas.getBoundingClientRect(), x = event.clientX - r.left, y = event.clientY - r.top;
    const inside = (piece) => x >= piece.x0 && x <= piece.x1 && y >= piece.y && y <= piece.y + piece.h;
    return this.drawn.find((piece) => piece.bar === undefined && inside(piece)) || this.drawn.find(inside);
  }
  shift(share) { const width = this.to - this.from; this.from = clamp(this.from + share * width, 0, 1 - width); this.to = this.from + width; this.repaint(); }
  zoom(factor, share) {
    const at = this.from + (this.to - this.from) * share, width = clamp((this.to - this.from) * factor, 1e-5, 1);
    this.from = clamp(at - width * share, 0, 1 - width);
    this.to = this.from + width;
    this.repaint();
  }
  all() { this.from = 0; this.to = 1; this.paint(); }
  listen() {
    const share = (event) => clamp((event.clientX - this.canvas.getBoundingClientRect().left - this.left) / (this.width - this.left - 6), 0, 1);
    let drag = null;
    this.canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY) && document.activeElement !== this.canvas) return;
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.shift((event.deltaX + event.deltaY) / this.width);
      else this.zoom(Math.exp(clamp(event.deltaY, -120, 120) * 0.003), share(event));
    }, { passive: false });
    this.canvas.addEventListener('pointerdown', (event) => { drag = { x: event.clientX, moved: false }; });
    this.canvas.addEventListener('pointermove', (event) => {
      if (drag && event.buttons) {
        const moved = drag.x - event.clientX;
        if (Math.abs(moved) > 3) drag.moved = true;
        if (!drag.moved) return;
        drag.x = event.clientX;
        this.shift(moved / (this.width - this.left));
        return;
      }
      const piece = this.hit(event);
      if (!piece) { hideTip(); return; }
      this.tipFor(event, piece);
    });
    this.canvas.addEventListener('pointerleave', hideTip);
    this.canvas.addEventListener('click', (event) => {
      if (drag && drag.moved) return;
      const piece = this.hit(event);
      if (piece) this.onPick(piece, this[piece.kind]);
    });
  }
  /** What each key does; the page calls it while the timeline is shown. */
  keys() {
    return { ArrowLeft: () => this.shift(-0.15), ArrowRight: () => this.shift(0.15), '+': () => this.zoom(0.7, 0.5), '=': () => this.zoom(0.7, 0.5), '-': () => this.zoom(1.4, 0.5), 0: () => this.all() };
  }
  /** Paper shows the whole step; the canvas is painted as wide as on a screen and made to fit the sheet. */
  forPaper(on) {
    if (on) { this.onScreen = { from: this.from, to: this.to }; Object.assign(this, { from: 0, to: 1 }); this.setSize(1200, 2); } else { Object.assign(this, this.onScreen); this.resize(); }
  }
  tipFor(event, piece) {
    if (piece.bar) { showTip(event, [plan.stages[piece.bar.chunk].phase + ', micro-batch ' + piece.bar.microbatch, piece.kind + ': ' + timeText(piece.bar.start) + ' to ' + timeText(piece.bar.end) + ' (' + timeText(piece.bar.end - piece.bar.start) + ')']); return; }
    const t = this[piece.kind], op = t.tasks[piece.i];
    showTip(event, [plan.ops[op].name, workNames[view.ops.work[op]] + ' · micro-batch ' + t.microbatches[piece.i] + (t.critical[piece.i] ? ' · on the critical path' : ''),
      piece.kind + ': ' + timeText(t.starts[piece.i]) + ', for ' + timeText(t.lengths[piece.i]) + (t.waits[piece.i] > 0 ? ', of which ' + timeText(t.waits[piece.i]) + ' until another rank took part' : '')]);
  }
  /** Zooms to the first run of an op. */
  reveal(op) {
    const t = this.predicted, i = t.tasks.indexOf(op);
    if (i < 0) { this.paint(); return; }
    const total = this.totalOf('predicted'), width = clamp(t.lengths[i] / total * 12, 1e-5, 1);
    this.from = clamp((t.starts[i] + t.lengths[i] / 2) / total - width / 2, 0, 1 - width);
    this.to = this.from + width;
    this.paint();
  }
}

function pathWords(path, total) {
  if (!path || !path.events) return '';
  return 'The critical path (underlined) runs through ' + plural(path.events, 'op') + ': ' + percent(path.compute_us / total) + ' computing, ' + percent(path.communication_us / total) + ' communicating, ' + percent(path.waiting_us / total) + ' waiting.' + (path.num_crossings ? ' It changes rank ' + plural(path.num_crossings, 'time') + ' (arrows).' : '');
}
function showTimeline() {
  const host = byId('view-timeline'), p = program();
  host.replaceChildren();
  const box = panel(host, 'Timeline', p.measured ? 'predicted ' + timeText(p.predicted.total_us) + ' above measured ' + timeText(p.measured.total_us) + ' (step ' + p.shown_step + ', the median of ' + p.steps.length + ')' : 'predicted, ' + timeText(p.predicted.total_us));
  const tools = put(box.head, 'div', { class: 'tools' });
  const legend = put(null, 'div', { class: 'legend' });
  box.panel.insertBefore(legend, box.body);
  workNames.forEach((name, i) => { if (name !== 'other') swatch(legend, workColours[i], name); });
  if (p.measured) { swatch(legend, waitColour, 'waiting for communication'); put(legend, 'span', {}, '── waiting for another rank'); }
  swatch(legend, 'var(--raised)', 'idle');
  put(legend, 'span', {}, '▁ critical path');
  put(legend, 'span', {}, 'numbers are micro-batches');
  timeline = new TimelineView(put(box.body, 'div', { class: 'timeline' }), (piece, t) => { if (piece.bar) showBar(piece.bar, piece.kind === 'measured'); else chooseOp(t.tasks[piece.i], false); });
  tick(tools, 'critical path only', false, (on) => { timeline.onlyCritical = on; timeline.paint(); });
  if (p.measured) tick(tools, 'each to its own width', timeline.ownScale, (on) => { timeline.ownScale = on; timeline.paint(); });
  button(tools, '+', 'Zoom in (+)', () => timeline.zoom(0.6, 0.5));
  button(tools, '−', 'Zoom out (-)', () => timeline.zoom(1.7, 0.5));
  button(tools, 'all', 'Show the whole step (0)', () => timeline.all());
  const words = put(box.body, 'div', { class: 'words' });
  put(words, 'p', {}, (p.measured ? 'Predicted: ' : '') + pathWords(p.predicted_path, p.predicted.total_us));
  if (p.measured) put(words, 'p', {}, 'Measured: ' + pathWords(p.measured_path, p.measured.total_us));
  if (p.predicted.cut) put(words, 'p', { class: 'muted' }, 'This step has very many ops: they are drawn one by one for micro-batch 0, and as whole passes for the others.');
  if (Math.abs(p.predicted.scale - 1) > 0.001) put(words, 'p', { class: 'muted' }, 'The job does not say which machines it was made for: times of ' + view.cluster + ' were scaled by ' + p.predicted.scale.toFixed(3) + ' to agree with its prediction. Give dgviz --cluster for exact ones.');
  if (!p.measured) put(words, 'p', { class: 'muted' }, 'To see what really happened beside it: dgrun ' + (view.job || 'job.dgx') + ' … --trace trace.json, then dgviz ' + (view.job || 'job.dgx') + ' trace.json.');
  showPathOps(host);
  if (p.measured) showErrors(host);
}
/** The ops that make up most of the critical path. */
function showPathOps(host) {
  const t = program().measured || program().predicted, path = program().measured_path || program().predicted_path;
  const rows = path.tasks.map(([op, us, calls]) => ({
    cells: [plan.ops[op].name, plan.ops[op].op || plan.ops[op].kind, String(calls), timeText(us), percent(us / Math.max(t.total_us, 1e-9))], action: () => chooseOp(op, true) }));
  const box = panel(host, 'Longest on the critical path', (program().measured ? 'measured' : 'predicted') + '; what of an op overlaps with the path before it does not count');
  table(box.body, [['op'], ['kind'], ['times', true], ['time', true], ['of the step', true]], rows);
}
/** How far each op was from its prediction. */
function showErrors(host) {
  const calls = new Map();
  program().predicted.tasks.forEach((op) => calls.set(op, (calls.get(op) || 0) + 1));
  const rows = [...calls].filter(([op]) => measuredUs(op) >= 0 && predictedUs(op) >= 0).map(([op, count]) => ({ op, count, error: (measuredUs(op) - predictedUs(op)) * count }))
    .sort((a, b) => Math.abs(b.error) - Math.abs(a.error)).slice(0, 40);
  const box = panel(host, 'Predicted against measured', 'the largest errors first; times of a call, mean over ranks and micro-batches');
  table(box.body, [['op'], ['work'], ['predicted', true], ['measured', true], ['ratio', true], ['error a step', true]], rows.map(({ op, count, error }) => ({
    cells: [plan.ops[op].name, workNames[view.ops.work[op]], timeText(predictedUs(op)), timeText(measuredUs(op)), predictedUs(op) > 0 ? (measuredUs(op) / predictedUs(op)).toFixed(1) + ' ×' : '–', signed(timeText(Math.abs(error)), error)],
    order: [plan.ops[op].name, view.ops.work[op], predictedUs(op), measuredUs(op), measuredUs(op) / Math.max(predictedUs(op), 1e-9), error * count], action: () => chooseOp(op, true) })));
}
function timelineReveal(op) { if (timeline) timeline.reveal(op); }
