// Elements, tips and tables. Everything from the plan is inserted with textContent or as a number: nothing of it is ever
// parsed as HTML.
const root = document.documentElement;
const byId = (id) => document.getElementById(id);
const plan = JSON.parse(byId('plan-data').textContent);
const view = JSON.parse(byId('view-data').textContent);

function fill(element, attributes, text) {
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
function put(parent, name, attributes, text) {
  const element = fill(document.createElement(name), attributes, text);
  if (parent) parent.append(element);
  return element;
}
function draw(parent, name, attributes, text) {
  const element = fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, text);
  if (parent) parent.append(element);
  return element;
}
function button(parent, text, title, action, attributes) {
  const element = put(parent, 'button', { type: 'button', title, ...(attributes || {}) }, text);
  element.addEventListener('click', action);
  return element;
}
function swatch(parent, colour, text, className) {
  const span = put(parent, 'span', className ? { class: className } : {});
  put(span, 'i').style.background = colour;
  span.append(text);
  return span;
}
/** A panel with a head; returns { panel, head, body }. */
function panel(parent, title, note, className) {
  const box = put(parent, 'section', { class: 'panel ' + (className || '') });
  const head = put(box, 'div', { class: 'panel-head' });
  put(head, 'h2', {}, title);
  const noteElement = put(head, 'span', { class: 'muted' }, note || '');
  return { panel: box, head, note: noteElement, body: put(box, 'div', { class: 'panel-body' }) };
}
function choice(parent, label, options, chosen, onChange) {
  const box = put(parent, 'label', { class: 'choice' }, label + ' ');
  const select = put(box, 'select');
  for (const [value, text] of options) {
    const option = put(select, 'option', { value }, text);
    if (value === chosen) option.selected = true;
  }
  select.addEventListener('change', () => onChange(select.value));
  return select;
}
function tick(parent, label, checked, onChange) {
  const box = put(parent, 'label', { class: 'choice' });
  const input = put(box, 'input', { type: 'checkbox' });
  input.checked = checked;
  box.append(' ' + label);
  input.addEventListener('change', () => onChange(input.checked));
  return input;
}
/** columns: [title, isNumber]; rows: { cells, total, action, order }. A click on a title sorts by `order`, else by text. */
function table(host, columns, rows, empty) {
  host.replaceChildren();
  if (!rows.length) { put(host, 'div', { class: 'empty' }, empty || 'none'); return; }
  const element = put(put(host, 'div', { class: 'scroll' }), 'table');
  const line = put(put(element, 'thead'), 'tr');
  const body = put(element, 'tbody');
  const lines = rows.map((row) => {
    const tr = put(body, 'tr', { class: (row.total ? 'total ' : '') + (row.action ? 'action' : '') });
    row.cells.forEach((text, i) => put(tr, 'td', columns[i][1] ? { class: 'number' } : {}, text));
    if (row.action) {
      tr.tabIndex = 0;
      tr.addEventListener('click', row.action);
      tr.addEventListener('keydown', (event) => { if (event.key === 'Enter') row.action(); });
    }
    return { row, tr };
  });
  columns.forEach(([text, number], i) => {
    const th = put(line, 'th', number ? { class: 'number' } : {}, text);
    if (!rows.some((row) => row.order)) return;
    let down = false;
    th.classList.add('sorts');
    th.title = 'Sort';
    th.addEventListener('click', () => {
      down = !down;
      const keyOf = ({ row }) => row.order ? row.order[i] : row.cells[i];
      lines.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0) * (down && number ? -1 : down ? 1 : number ? 1 : -1));
      lines.forEach(({ tr }) => body.append(tr));
    });
  });
}

// ---- Tips ----
const tip = byId('tip');
function showTip(event, lines) {
  tip.replaceChildren();
  lines.forEach((text, i) => put(tip, 'div', i ? { class: 'muted' } : {}, text));
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + 'px';
  tip.style.top = (event.clientY + height + 24 > innerHeight ? event.clientY - height - 12 : event.clientY + 16) + 'px';
}
function hideTip() { tip.hidden = true; }

/** A download of text that was made here; nothing leaves the browser. */
function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// ---- Colours: Okabe and Ito's, which people with any colour vision can tell apart; words or numbers stand beside each. ----
const palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a800', '#7f7f7f'];
const stageColour = (stage) => palette[stage % palette.length];
const workNames = ['forward', 'input gradient', 'weight gradient', 'update', 'communication', 'other'];
const workColours = ['#56b4e9', '#cc79a7', '#e69f00', '#8a93a0', '#009e73', '#c3c9d1'];
const holdingNames = ['parameters', 'optimizer', 'activations', 'gradients', 'buffers'];
const holdingColours = ['#0072b2', '#56b4e9', '#e69f00', '#cc79a7', '#8a93a0'];
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
