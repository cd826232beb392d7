// Facts that several views need, and what is chosen at the moment.
// What each op touches: a kernel lists [value, access], the others name their values; a finish has its communication's.
plan.ops.forEach((op) => {
  const start = op.kind === 'finish' ? plan.ops[op.finishes] : op;
  const access = { all_reduce: 'read_write', send: 'read', receive: 'write', zero: 'write' }[start.kind];
  op.operands = start.kind === 'kernel' ? (op.operands || op.buffers) : start.value !== undefined ? [[start.value, access]]
    : start.from !== undefined ? [[start.from, 'read'], [start.to, 'write']] : [];
  op.buffers = op.operands.map(([value]) => value);
  op.reads = op.operands.filter(([, access]) => access !== 'write').map(([value]) => value);
  op.writes = op.operands.filter(([, access]) => access !== 'read').map(([value]) => value);
});
const chunkOf = new Array(plan.ops.length).fill(-1);
plan.stages.forEach((chunk, id) => chunk.ops.forEach((op) => { chunkOf[op] = id; }));
const phaseOf = (op) => chunkOf[op] < 0 ? '' : plan.stages[chunkOf[op]].phase;
const mesh = plan.mesh;
const replicas = mesh.replica || 1;
const ranks = replicas * mesh.pipe * mesh.data * mesh.tensor;
const ranksPerStage = mesh.data * mesh.tensor;
const meshText = ['replica', 'data', 'tensor', 'pipe'].filter((axis) => mesh[axis] > 1).map((axis) => axis + ' ' + mesh[axis]).join(' × ') || 'one device';
const phaseNames = ['begin', 'forward', 'backward', 'update'];
const isCollective = (op) => ['all_reduce', 'all_gather', 'reduce_scatter'].includes(op.kind);
const isCommunication = (op) => isCollective(op) || op.kind === 'send' || op.kind === 'receive';
const ranksOfStage = (stage) => ranksPerStage === 1 ? 'rank ' + stage : 'ranks ' + stage * ranksPerStage + '–' + ((stage + 1) * ranksPerStage - 1);
const outputOf = (op) => op.writes.length ? plan.values[op.writes[0]] : null;
/** The mesh axes that cut what an op makes: "data + tensor". */
function cutOf(op) {
  const value = outputOf(op);
  if (!value) return isCommunication(op) ? 'moves data' : 'makes nothing';
  return [...new Set(value.sharding.filter((axis) => axis && mesh[axis] > 1))].sort().join(' + ') || 'whole on every device';
}
/** The op that writes a value; ops of the current program come first. */
const writers = new Map();
plan.ops.forEach((op, id) => op.writes.forEach((value) => { if (!writers.has(value)) writers.set(value, id); }));

/** What a communication's finish stands for: its start, which is what is drawn. */
const drawnOp = (id) => plan.ops[id].kind === 'finish' ? plan.ops[id].finishes : id;

// ---- Trees: the columns of the data block as lists of children, and the ops of a box ----
function makeTree(graph) {
  const children = graph.parents.map(() => []), position = graph.parents.map(() => 0), nodeOfItem = new Map();
  graph.parents.forEach((parent, id) => { if (parent >= 0) { position[id] = children[parent].length; children[parent].push(id); } });
  graph.items.forEach((item, id) => { if (item >= 0) nodeOfItem.set(item, id); });
  const inputs = new Map(), outputs = new Map();
  const add = (map, key, other) => { if (map.has(key)) map.get(key).push(other); else map.set(key, [other]); };
  for (let i = 0; i < graph.flow.length; i += 2) {
    add(outputs, graph.flow[i], graph.flow[i + 1]);
    add(inputs, graph.flow[i + 1], graph.flow[i]);
  }
  const itemsCache = new Map();
  const itemsOf = (id) => {
    if (!itemsCache.has(id)) itemsCache.set(id, graph.items[id] >= 0 ? [graph.items[id]] : children[id].flatMap(itemsOf));
    return itemsCache.get(id);
  };
  return { graph, children, position, nodeOfItem, inputs, outputs, itemsOf, size: graph.parents.length };
}
const trees = new Map();
function treeOf(graph) {
  if (!trees.has(graph)) trees.set(graph, makeTree(graph));
  return trees.get(graph);
}

const state = { program: 0, view: 'summary', op: null };
const program = () => view.programs[state.program];
const planProgram = () => plan.programs[state.program];
const predictedUs = (op) => view.ops.predicted_us[op];
const measuredUs = (op) => view.ops.measured_us[op];
