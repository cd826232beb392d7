// One drawing of a graph that can be moved, zoomed, opened and searched: the plan's, or that of a compiler pass.
class GraphView {
  /** describe(item) → { sub, colour, isCommunication, tip }; describeGroup(items, node) likewise; onPick(node, item). */
  constructor(host, tree, describe, describeGroup, onPick) {
    Object.assign(this, { host, tree, describe, describeGroup, onPick, open: new Set(), chosen: null, found: null });
    host.replaceChildren();
    host.classList.add('graph');
    host.tabIndex = 0;
    this.svg = draw(host, 'svg', { role: 'img', 'aria-label': 'Graph; arrows move, plus and minus zoom, 0 shows all' });
    const defs = draw(this.svg, 'defs');
    for (const [id, name] of [['arrow', 'arrow'], ['arrow-crosses', 'arrow crosses']]) {
      const marker = draw(defs, 'marker', { id: id + '-' + (GraphView.count = (GraphView.count || 0) + 1), viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto' });
      draw(marker, 'path', { d: 'M0 0L8 4L0 8z', class: name });
      this[id] = 'url(#' + marker.id + ')';
    }
    this.scene = draw(this.svg, 'g');
    this.at = { x: 0, y: 0, k: 1 };
    this.listen();
    this.redraw();
    this.start();
  }
  isOpen(node) { return this.open.has(node); }
  toggle(node) {
    if (!this.tree.children[node].length) return;
    const before = this.boxes.get(node);
    if (this.open.has(node)) this.open.delete(node); else this.open.add(node);
    this.redraw();
    const after = this.boxes.get(node);
    if (before && after) { this.at.x += (before.x - after.x) * this.at.k; this.at.y += (before.y - after.y) * this.at.k; this.move(); }
  }
  /** Opens level after level while no more than `most` boxes are drawn. */
  openAll(most) {
    let level = this.tree.children[0];
    let count = level.length;
    while (level.length) {
      const groups = level.filter((id) => this.tree.children[id].length);
      const next = groups.flatMap((id) => this.tree.children[id]);
      count += next.length;
      if (!next.length || count > most) break;
      groups.forEach((id) => this.open.add(id));
      level = next;
    }
    this.redraw();
    this.fit();
  }
  closeAll() { this.open.clear(); this.redraw(); this.fit(); }

  // ---- Drawing ----
  redraw() {
    this.boxes = new Map();
    this.elements = new Map();
    this.lines = [];
    this.scene.replaceChildren();
    const level = placeLevel(this.tree, 0, (node) => this.open.has(node));
    this.size = { w: level.w, h: level.h };
    const back = draw(this.scene, 'g'), front = draw(this.scene, 'g');
    this.overlay = draw(this.scene, 'g', { class: 'overlay' });
    this.drawLevel(level, 0, 0, back, front);
    this.markChosen();
    this.markFound();
    this.move();
  }
  drawLevel(level, dx, dy, back, front) {
    for (const box of level.boxes) this.drawBox(box, dx, dy, back, front);
    const lines = draw(back, 'g', { transform: 'translate(' + dx + ' ' + dy + ')' });
    for (const line of level.lines) {
      const { graph } = this.tree, from = line.from.node, to = line.to.node;
      const saved = graph.phases[from] === 1 && graph.phases[to] === 2 && !line.route;
      const crosses = line.route !== '';
      // Dashes and arrows of hundreds of long lines take most of the time of a frame.
      const plain = saved && level.lines.length > 120;
      const element = draw(lines, 'path', { d: pathOf(line), class: 'edge' + (crosses ? ' crosses' : '') + (saved ? ' saved' : '') + (plain ? ' plain' : ''), 'marker-end': plain ? 'none' : crosses ? this['arrow-crosses'] : this.arrow });
      draw(element, 'title', {}, graph.titles[from] + ' → ' + graph.titles[to] + (line.bytes ? ': ' + bytesText(line.bytes) : '') + (line.values > 1 ? ' in ' + line.values + ' values' : '') + (line.route ? ', ' + line.route : ''));
      this.lines.push({ element, from, to, arrow: element.getAttribute('marker-end') });
      if (crosses && level.lines.length < 260) {
        const [x, y] = middleOf(line);
        draw(lines, 'text', { x: x + 6, y: y - 3, class: 'edge-label' }, shorten(line.route, 34) + (line.bytes ? ' · ' + bytesText(line.bytes) : ''));
      }
    }
  }
  drawBox(box, dx, dy, back, front) {
    const { graph, children } = this.tree, node = box.node, item = graph.items[node], isGroup = children[node].length > 0;
    const x = dx + box.x, y = dy + box.y, about = isGroup ? this.describeGroup(this.tree.itemsOf(node), node) : this.describe(item);
    this.boxes.set(node, { x, y, w: box.w, h: box.h });
    const element = draw(box.inner ? back : front, 'g', { class: 'node' + (isGroup ? ' group' : '') + (box.inner ? ' open' : '') + (about.isCommunication && !isGroup ? ' communicates' : ''),
      transform: 'translate(' + x.toFixed(1) + ' ' + y.toFixed(1) + ')', 'data-node': node });
    this.elements.set(node, element);
    if (isGroup && !box.inner) draw(element, 'rect', { class: 'sheet', x: 4, y: 4, width: box.w, height: box.h, rx: 8 });
    draw(element, 'rect', { class: 'body', width: box.w, height: box.h, rx: about.isCommunication && !isGroup ? 24 : 8 });
    if (!box.inner) draw(element, 'rect', { class: 'tint', width: box.w, height: box.h, rx: about.isCommunication && !isGroup ? 24 : 8 }).style.fill = about.colour;
    draw(element, 'rect', { width: 6, height: (box.inner ? frameHead : box.h) - 12, x: about.isCommunication && !isGroup ? 14 : 6, y: 6, rx: 3 }).style.fill = about.colour;
    const left = about.isCommunication && !isGroup ? 28 : 20;
    draw(element, 'text', { x: left, y: box.inner ? 17 : 20 }, shorten(graph.titles[node], box.inner ? Math.floor(box.w / 8) : 22));
    if (!box.inner) draw(element, 'text', { x: left, y: 37, class: 'sub' }, fitted(about.sub, Math.floor((box.w - left - 6) / 5.6)));
    if (isGroup) {
      const sign = draw(element, 'g', { class: 'sign', transform: 'translate(' + (box.w - 16) + ' ' + (box.inner ? 13 : 15) + ')' });
      draw(sign, 'rect', { x: -8, y: -8, width: 16, height: 16, rx: 4 });
      draw(sign, 'path', { d: box.inner ? 'M-4 0H4' : 'M-4 0H4M0-4V4' });
    }
    draw(element, 'title', {}, about.tip);
    if (box.inner) this.drawLevel(box.inner, x + framePad + (box.w - 2 * framePad - box.inner.w) / 2, y + frameHead, back, front);
  }
  markChosen() {
    this.overlay.replaceChildren();
    for (const element of this.elements.values()) element.classList.remove('selected');
    const node = this.chosen;
    for (const line of this.lines) {
      const near = node !== null && (line.from === node || line.to === node);
      line.element.classList.toggle('near', near);
      line.element.setAttribute('marker-end', near ? this['arrow-crosses'] : line.arrow);
    }
    if (node === null) return;
    const element = this.elements.get(node);
    if (element) element.classList.add('selected');
    const item = this.tree.graph.items[node];
    if (item < 0) return;
    // Lines of an op that its level does not show: to what stands in other groups, and small ones to many boxes.
    const drawn = new Set(this.lines.map((line) => line.from + ' ' + line.to));
    const connect = (others, outgoing) => (others || []).slice(0, 40).forEach((other) => {
      const there = this.visible(this.tree.nodeOfItem.get(other));
      const a = this.boxes.get(node), b = this.boxes.get(there);
      if (!a || !b || drawn.has(outgoing ? node + ' ' + there : there + ' ' + node)) return;
      const [from, to] = outgoing ? [a, b] : [b, a];
      const start = borderPoint(from, [to.x + to.w / 2, to.y + to.h / 2]), end = borderPoint(to, start);
      draw(this.overlay, 'path', { d: 'M' + start.join(' ') + 'L' + end.join(' '), class: 'edge near far', 'marker-end': this['arrow-crosses'] });
    });
    connect(this.tree.inputs.get(item), false);
    connect(this.tree.outputs.get(item), true);
  }
  /** The innermost drawn box around a node. */
  visible(node) {
    while (node !== undefined && node > 0 && !this.elements.has(node)) node = this.tree.graph.parents[node];
    return node;
  }
  markFound() {
    const hits = this.found && new Set([...this.found].map((item) => this.visible(this.tree.nodeOfItem.get(item))));
    for (const [node, element] of this.elements) element.classList.toggle('dim', hits !== null && !hits.has(node) && !this.open.has(node));
  }
  find(items) { this.found = items; this.markFound(); }
  choose(node) { this.chosen = node === undefined ? null : node; this.markChosen(); }
  /** Opens what is around an op, chooses it and brings it into the middle. */
  reveal(item) {
    const node = this.tree.nodeOfItem.get(item);
    if (node === undefined) return;
    for (let at = this.tree.graph.parents[node]; at > 0; at = this.tree.graph.parents[at]) this.open.add(at);
    this.chosen = node;
    this.redraw();
    this.at.k = Math.max(this.at.k, 0.8);
    this.centre(node);
  }
  /** The part of the drawing that the window shows and the panel does not cover, from the drawing's corner. */
  shownPart() {
    const own = this.host.getBoundingClientRect(), over = side.getBoundingClientRect();
    const covers = !side.hidden && getComputedStyle(side).position === 'fixed';
    const top = Math.max(0, -own.top), bottom = Math.min(own.height, (covers ? over.top : innerHeight) - own.top);
    return { top, bottom: Math.max(bottom, top + 2 * boxHeight), width: own.width };
  }
  centre(node) {
    const box = this.boxes.get(node), part = this.shownPart();
    this.at.x = part.width / 2 - (box.x + box.w / 2) * this.at.k;
    this.at.y = (part.top + part.bottom) / 2 - (box.y + box.h / 2) * this.at.k;
    this.move();
  }
  /** Moves the drawing where the panel, once it is open, covers a box. */
  keepInView(node) {
    const box = node === undefined || node === null ? undefined : this.boxes.get(node), part = this.shownPart();
    if (!box) return;
    const x = this.at.x + (box.x + box.w / 2) * this.at.k, y = this.at.y + (box.y + Math.min(box.h, boxHeight) / 2) * this.at.k;
    if (x < 0 || x > part.width || y < part.top || y > part.bottom) this.centre(node);
  }

  // ---- Moving ----
  move() {
    this.scene.setAttribute('transform', 'translate(' + this.at.x.toFixed(2) + ' ' + this.at.y.toFixed(2) + ') scale(' + this.at.k.toFixed(4) + ')');
    this.host.classList.toggle('far', this.at.k < 0.45);
  }
  zoom(factor, x, y) {
    const k = clamp(this.at.k * factor, 0.02, 4);
    this.at.x = x - (x - this.at.x) * k / this.at.k;
    this.at.y = y - (y - this.at.y) * k / this.at.k;
    this.at.k = k;
    this.move();
  }
  fit() {
    const { clientWidth: w, clientHeight: h } = this.host;
    if (!w || !h) return;
    this.at.k = Math.min(1.2, w / this.size.w, h / this.size.h);
    this.at.x = (w - this.size.w * this.at.k) / 2;
    this.at.y = Math.max(0, (h - this.size.h * this.at.k) / 2);
    this.move();
  }
  /** Paper shows the whole drawing, as large as the sheet allows. */
  forPaper(on) {
    if (on) {
      this.svg.setAttribute('viewBox', '0 0 ' + this.size.w.toFixed(0) + ' ' + this.size.h.toFixed(0));
      this.scene.removeAttribute('transform');
      this.host.classList.remove('far');
    } else {
      this.svg.removeAttribute('viewBox');
      this.move();
    }
  }
  /** At first: readable, from the top, rather than whole and small. */
  start() {
    const { clientWidth: w, clientHeight: h } = this.host;
    if (!w || !h) return;
    this.at.k = clamp(w / this.size.w, 0.62, 1);
    this.at.x = Math.max(8, (w - this.size.w * this.at.k) / 2);
    this.at.y = 8;
    const first = [...this.boxes].filter(([node]) => this.tree.graph.phases[node] === 1).map(([, box]) => box).sort((a, b) => a.y - b.y)[0];
    if (first && this.size.w * this.at.k > w) {
      this.at.x = Math.min(8, w * 0.3 - (first.x + first.w / 2) * this.at.k);
      this.at.y = Math.min(8, 24 - first.y * this.at.k);
    }
    this.move();
  }
  listen() {
    const pointers = new Map();
    let moved = false, spread = 0;
    const place = (event) => { const r = this.host.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
    this.host.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.shiftKey) { this.at.x -= event.deltaY + event.deltaX; this.move(); return; }
      this.zoom(Math.exp(-clamp(event.deltaY, -120, 120) * 0.0022), ...place(event));
    }, { passive: false });
    this.host.addEventListener('pointerdown', (event) => { pointers.set(event.pointerId, place(event)); moved = false; spread = 0; });
    this.host.addEventListener('pointermove', (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) return;
      const now = place(event);
      if (pointers.size === 1) {
        if (!moved && Math.hypot(now[0] - last[0], now[1] - last[1]) < 4) return;
        if (!moved) this.host.setPointerCapture(event.pointerId);
        moved = true;
        this.host.classList.add('dragging');
        this.at.x += now[0] - last[0];
        this.at.y += now[1] - last[1];
        this.move();
      }
      pointers.set(event.pointerId, now);
      if (pointers.size === 2) {
        const [a, b] = [...pointers.values()], wide = Math.hypot(a[0] - b[0], a[1] - b[1]);
        moved = true;
        if (spread) this.zoom(wide / spread, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        spread = wide;
      }
    });
    const end = (event) => { pointers.delete(event.pointerId); spread = 0; this.host.classList.remove('dragging'); };
    this.host.addEventListener('pointerup', end);
    this.host.addEventListener('pointercancel', end);
    this.host.addEventListener('click', (event) => {
      if (moved) return;
      const element = event.target.closest('.node');
      if (!element) return;
      const node = Number(element.dataset.node);
      if (event.target.closest('.sign')) this.toggle(node); else this.pick(node);
    });
    this.host.addEventListener('dblclick', (event) => {
      const element = event.target.closest('.node');
      if (element && !event.target.closest('.sign')) this.toggle(Number(element.dataset.node));
    });
  }
  /** What each key does; the page calls it while this drawing is shown. */
  keys() {
    const middle = [this.host.clientWidth / 2, this.host.clientHeight / 2], by = (x, y) => () => { this.at.x += x; this.at.y += y; this.move(); };
    return { ArrowLeft: by(60, 0), ArrowRight: by(-60, 0), ArrowUp: by(0, 60), ArrowDown: by(0, -60),
      '+': () => this.zoom(1.25, ...middle), '=': () => this.zoom(1.25, ...middle), '-': () => this.zoom(0.8, ...middle), 0: () => this.fit(),
      Enter: () => { if (this.chosen !== null) this.toggle(this.chosen); } };
  }
  pick(node) { this.choose(node); this.onPick(node, this.tree.graph.items[node]); this.keepInView(node); }
  /** The drawing as a file that stands alone. */
  toSvg() {
    const copy = this.svg.cloneNode(true), [back] = [css('--surface')];
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    copy.setAttribute('viewBox', '0 0 ' + this.size.w.toFixed(0) + ' ' + this.size.h.toFixed(0));
    copy.querySelector('g').removeAttribute('transform');
    const originals = this.svg.querySelectorAll('*'), copies = copy.querySelectorAll('*');
    const kept = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'fill-opacity', 'font-size', 'font-weight', 'font-family'];
    originals.forEach((original, i) => { const style = getComputedStyle(original); kept.forEach((name) => copies[i].setAttribute(name, style.getPropertyValue(name))); });
    copy.style.background = back;
    return new XMLSerializer().serializeToString(copy);
  }
}

// ---- The plan's graph ----
let shownGraph = null;
const colourModes = [['stage', 'stage'], ['devices', 'devices'], ['precision', 'precision'], ['fusion', 'fusion'], ['cost', 'cost'], ['work', 'work']];
let colourMode = 'stage';
const fusionOf = (op) => op.op === 'dg.fused' ? 'fused' : op.kind === 'kernel' ? 'one op' : 'moves data';
const keyNames = { devices: (op) => cutOf(op), precision: (op) => outputOf(op) ? outputOf(op).dtype : 'none', fusion: fusionOf };
function graphView() { if (!shownGraph) showGraph(); return shownGraph; }
/** The stronger, the further from the ground: dark on a light page, light on a dark one. */
function costColour(share) {
  const [from, to] = root.dataset.theme === 'dark' ? [[38, 52, 66], [140, 205, 250]] : [[225, 236, 244], [0, 70, 130]], t = Math.sqrt(clamp(share, 0, 1));
  return 'rgb(' + from.map((c, i) => Math.round(c + (to[i] - c) * t)).join(',') + ')';
}
function showGraph() {
  const host = byId('view-graph');
  host.replaceChildren();
  const tree = treeOf(program().graph), ops = tree.itemsOf(0);
  const box = panel(host, 'Graph', '');
  const tools = put(box.head, 'div', { class: 'tools' });
  const legend = put(box.panel, 'div', { class: 'legend' });
  box.panel.insertBefore(legend, box.body);
  const keys = new Map();
  if (keyNames[colourMode]) ops.forEach((id) => { const key = keyNames[colourMode](plan.ops[id]); keys.set(key, (keys.get(key) || 0) + 1); });
  const order = [...keys.keys()].sort((a, b) => keys.get(b) - keys.get(a));
  let mostUs = 0;
  const costOf = (items) => items.reduce((sum, id) => sum + Math.max(0, predictedUs(id)), 0);
  tree.children[0].forEach((child) => { mostUs = Math.max(mostUs, costOf(tree.itemsOf(child))); });
  const colourOf = (items) => {
    const first = plan.ops[items[0]];
    if (colourMode === 'stage') return stageColour(first.stage);
    if (colourMode === 'cost') return costColour(costOf(items) / Math.max(mostUs, 1e-9));
    if (colourMode === 'work') return workColours[view.ops.work[items.find((id) => !isCommunication(plan.ops[id])) ?? items[0]]];
    const counts = new Map();
    items.forEach((id) => { const key = keyNames[colourMode](plan.ops[id]); counts.set(key, (counts.get(key) || 0) + 1); });
    const fused = colourMode === 'fusion' && counts.has('fused');
    return palette[order.indexOf(fused ? 'fused' : [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a))[0]) % palette.length];
  };
  const timeOf = (us) => us > 0 ? timeText(us) : '';
  const describe = (id) => {
    const op = plan.ops[id];
    // What a box is for comes last: it stays when the words before it have no room.
    const parts = isCommunication(op) ? ['⇄ ' + op.kind, op.axis || 'pipe', bytesText(plan.values[op.buffers[0]].bytes)] : [(op.op || op.kind).replace('dg.', ''), op.flops ? flopText(op.flops) : '', timeOf(predictedUs(id))];
    return { sub: parts.filter(Boolean), colour: colourOf([id]), isCommunication: isCommunication(op), tip: op.name + ' (' + phaseOf(id) + ', stage ' + op.stage + ')' };
  };
  const describeGroup = (items, node) => {
    const moving = items.filter((id) => isCommunication(plan.ops[id])).length;
    return { sub: [mesh.pipe > 1 ? 'stage ' + tree.graph.stages[node] : '', (moving ? '⇄ ' : '') + plural(items.length, 'op'), timeOf(costOf(items))].filter(Boolean), colour: colourOf(items),
      isCommunication: false, tip: tree.graph.titles[node] + ': ' + plural(items.length, 'op') + (moving ? ', ' + moving + ' of them communicate' : '') + '. Double-click to open.' };
  };
  box.note.textContent = plural(ops.length, 'op') + ' in ' + plural(tree.children[0].length, 'box', 'boxes') + ' · forward runs down, backward beside it up';
  choice(tools, 'colour', colourModes, colourMode, (mode) => { colourMode = mode; const { open, at, chosen, found } = shownGraph; showGraph(); Object.assign(shownGraph, { open, at, chosen, found }); shownGraph.redraw(); });
  const act = (text, title, action) => button(tools, text, title, () => { action(); shownGraph.host.focus({ preventScroll: true }); });
  act('open all', 'Open every group, as far as the page can show it', () => shownGraph.openAll(3000));
  act('close all', 'Close every group', () => shownGraph.closeAll());
  act('+', 'Zoom in (+)', () => shownGraph.zoom(1.25, shownGraph.host.clientWidth / 2, shownGraph.host.clientHeight / 2));
  act('−', 'Zoom out (-)', () => shownGraph.zoom(0.8, shownGraph.host.clientWidth / 2, shownGraph.host.clientHeight / 2));
  act('fit', 'Show all (0)', () => shownGraph.fit());
  act('SVG', 'Save the drawing as a file', () => save((plan.model.name || 'plan') + '.svg', shownGraph.toSvg(), 'image/svg+xml'));
  if (colourMode === 'stage') plan.memory.slice(0, 12).forEach((_, stage) => swatch(legend, stageColour(stage), 'stage ' + stage + ' · ' + ranksOfStage(stage)));
  if (colourMode === 'work') workNames.forEach((name, i) => swatch(legend, workColours[i], name));
  if (colourMode === 'cost') [0.02, 0.25, 1].forEach((share) => swatch(legend, costColour(share), timeText(mostUs * share)));
  order.slice(0, 8).forEach((key, i) => swatch(legend, palette[i], key + ' (' + keys.get(key) + ')'));
  put(legend, 'span', { class: 'line-key' }, '—  value');
  put(legend, 'span', { class: 'line-key saved' }, '┄  kept for backward');
  put(legend, 'span', { class: 'line-key crosses' }, '━  between devices');
  if ([...tree.outputs.values()].some((others) => others.length > 8)) put(legend, 'span', {}, 'a number that many boxes read: choose its op');
  shownGraph = new GraphView(box.body, tree, describe, describeGroup, (node, item) => {
    if (item >= 0) chooseOp(item, false); else showGroup(tree, node, shownGraph);
  });
  if (state.op !== null) shownGraph.choose(tree.nodeOfItem.get(drawnOp(state.op)));
}
