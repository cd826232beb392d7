// Numbers for people: units, percentages, types.
function scaled(value, step, units, digits) {
  let unit = 0;
  while (Math.abs(value) >= step && unit + 1 < units.length) { value /= step; ++unit; }
  return (unit === 0 && Number.isInteger(value) ? String(value) : value.toFixed(digits)) + units[unit];
}
const bytesText = (n) => scaled(n, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB'], 2);
const countText = (n) => scaled(n, 1000, ['', ' k', ' M', ' G', ' T', ' P'], 2);
const flopText = (n) => scaled(n, 1000, [' FLOP', ' kFLOP', ' MFLOP', ' GFLOP', ' TFLOP', ' PFLOP'], 2);
const timeText = (us) => Math.abs(us) < 1000 ? us.toFixed(1) + ' µs' : Math.abs(us) < 1e6 ? (us / 1e3).toFixed(2) + ' ms' : (us / 1e6).toFixed(2) + ' s';
const percent = (x) => (x * 100).toFixed(1) + ' %';
const shorten = (text, length) => text.length > length ? text.slice(0, length - 1) + '…' : text;
/** Parts in one line: where they are too long the middle ones go first, then the first is cut; the last is never cut. */
function fitted(parts, length) {
  const kept = [...parts], text = () => kept.join(' · ');
  while (kept.length > 2 && text().length > length) kept.splice(kept.length - 2, 1);
  if (kept.length > 1 && text().length > length) kept[0] = shorten(kept[0], Math.max(2, kept[0].length - (text().length - length)));
  return shorten(text(), Math.max(length, kept[kept.length - 1].length));
}
const typeText = (value, shape) => value.dtype + '[' + shape.join(' × ') + ']';
const plural = (n, one, many) => n + ' ' + (n === 1 ? one : many || one + 's');
const signed = (text, value) => (value > 0 ? '+' : value < 0 ? '−' : '±') + text;

/** Round steps of bytes: 64 KiB, 128 KiB, … */
function byteTicks(end, wanted) {
  const step = Math.pow(2, Math.ceil(Math.log2(Math.max(1, end / wanted))));
  const ticks = [];
  for (let at = 0; at <= end * 1.0001; at += step) ticks.push(at);
  return ticks;
}
/** Round steps for an axis that ends at `end`. */
function ticksOf(end, wanted) {
  const raw = end / Math.max(1, wanted), power = Math.pow(10, Math.floor(Math.log10(raw || 1)));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw) || power;
  const ticks = [];
  for (let at = 0; at <= end * 1.0001; at += step) ticks.push(at);
  return ticks;
}
