// Where boxes and lines of a graph go when some of its groups are open. Graphviz laid out each level by itself; opening a
// group stretches the level around it: every coordinate inside the group's box is spread over the room that the group
// now needs, and everything beyond moves aside. Lines keep their course, because their points are moved by the same rule.
const [boxWidth, boxHeight] = view.box;
const frameHead = 26, framePad = 6;

/** A monotone map of one coordinate; `wishes` are [from, to, wanted length]. Where wishes overlap the larger one counts. */
function stretchOf(wishes) {
  const ends = [...new Set(wishes.flatMap(([from, to]) => [from, to]))].sort((a, b) => a - b);
  const pieces = []; // [from, to, extra for each unit, extra before]
  let before = 0;
  for (let i = 0; i + 1 < ends.length; ++i) {
    let density = 0;
    for (const [from, to, wanted] of wishes)
      if (from <= ends[i] && to >= ends[i + 1]) density = Math.max(density, (wanted - (to - from)) / (to - from));
    pieces.push([ends[i], ends[i + 1], density, before]);
    before += density * (ends[i + 1] - ends[i]);
  }
  return (x) => {
    let low = 0, high = pieces.length - 1;
    if (high < 0 || x <= pieces[0][0]) return x;
    if (x >= pieces[high][1]) return x + before;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x < pieces[middle][1]) high = middle; else low = middle + 1;
    }
    const [from, , density, extra] = pieces[low];
    return x + extra + density * (x - from);
  };
}

/** The level inside `node`: { w, h, boxes: [{ node, x, y, w, h, inner }], lines: [{ points, edge… }] }, from its corner. */
function placeLevel(tree, node, isOpen) {
  const layout = view.layouts[tree.graph.layouts[node]], children = tree.children[node];
  const inner = children.map((child) => tree.children[child].length && isOpen(child) ? placeLevel(tree, child, isOpen) : null);
  const size = inner.map((level) => level ? [Math.max(level.w + 2 * framePad, boxWidth), level.h + frameHead + framePad] : [boxWidth, boxHeight]);
  const at = (i) => [layout.boxes[2 * i], layout.boxes[2 * i + 1]];
  const wishesX = [], wishesY = [];
  inner.forEach((level, i) => {
    if (!level) return;
    const [x, y] = at(i);
    wishesX.push([x - boxWidth / 2, x + boxWidth / 2, size[i][0]]);
    wishesY.push([y - boxHeight / 2, y + boxHeight / 2, size[i][1]]);
  });
  const moveX = stretchOf(wishesX), moveY = stretchOf(wishesY);
  const boxes = children.map((child, i) => {
    const [x, y] = at(i), [w, h] = size[i];
    const centreX = (moveX(x - boxWidth / 2) + moveX(x + boxWidth / 2)) / 2, centreY = (moveY(y - boxHeight / 2) + moveY(y + boxHeight / 2)) / 2;
    return { node: child, x: centreX - w / 2, y: centreY - h / 2, w, h, inner: inner[i] };
  });
  const columns = tree.graph.lines[node], lines = [];
  for (let i = 0; 5 * i < columns.length; ++i) {
    const [from, to, bytes, values, route] = columns.slice(5 * i, 5 * i + 5), points = layout.lines[i], moved = [];
    for (let p = 0; p < points.length; p += 2) moved.push([moveX(points[p]), moveY(points[p + 1])]);
    lines.push({ points: moved, from: boxes[from], to: boxes[to], bytes, values, route: tree.graph.routes[route] });
  }
  return { w: moveX(layout.w), h: moveY(layout.h), boxes, lines };
}

const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
/** The point of a box's border nearest to a point. */
function borderPoint(box, [x, y]) {
  const inX = clamp(x, box.x, box.x + box.w), inY = clamp(y, box.y, box.y + box.h);
  if (inX !== x || inY !== y) return [inX, inY];
  const sides = [[x - box.x, [box.x, y]], [box.x + box.w - x, [box.x + box.w, y]], [y - box.y, [x, box.y]], [box.y + box.h - y, [x, box.y + box.h]]];
  return sides.sort((a, b) => a[0] - b[0])[0][1];
}
/** Path data of a line: from border to border, with Graphviz' curve between. */
function pathOf(line) {
  const format = ([x, y]) => x.toFixed(1) + ' ' + y.toFixed(1);
  if (line.points.length < 4) {
    const middle = (box) => [box.x + box.w / 2, box.y + box.h / 2];
    return 'M' + format(borderPoint(line.from, middle(line.to))) + 'L' + format(borderPoint(line.to, middle(line.from)));
  }
  const first = line.points[0], last = line.points[line.points.length - 1];
  let path = 'M' + format(borderPoint(line.from, first)) + 'L' + format(first);
  for (let i = 1; i + 2 < line.points.length; i += 3) path += 'C' + line.points.slice(i, i + 3).map(format).join(' ');
  return path + 'L' + format(borderPoint(line.to, last));
}
/** The point half-way along a line: of its middle curve, or where its two middle curves meet. */
function middleOf(line) {
  const { points } = line, curves = Math.floor((points.length - 1) / 3);
  if (curves < 1) return [(line.from.x + line.from.w / 2 + line.to.x + line.to.w / 2) / 2, (line.from.y + line.to.y + line.to.h) / 2];
  const first = 3 * Math.floor(curves / 2);
  if (curves % 2 === 0) return points[first];
  return [0, 1].map((axis) => (points[first][axis] + 3 * points[first + 1][axis] + 3 * points[first + 2][axis] + points[first + 3][axis]) / 8);
}
