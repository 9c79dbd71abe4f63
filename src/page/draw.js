// Draws a chart's slots on a canvas. It knows places and colours, and nothing of input or loading.

import { slotOf, timeOf } from "./slots.js";
import { MONTHS, pad } from "./text.js";

const TIME_AXIS = 24;
const VOLUME_SHARE = 0.16;
const TICK_X = 76,
  TICK_Y = 46;
/** Pixels from one label of the price axis to the next, at least. */
const LABEL = 15;

const COLORS = ["ground", "ink", "quiet", "faint", "grid", "up", "down", "hatch", "on-accent"];

/** The colours of the style sheet, by name, as they are now in light or dark. */
export function palette(element) {
  const style = getComputedStyle(element);
  const colors = {};
  for (const name of COLORS) {
    element.style.color = `var(--${name})`;
    colors[name] = style.color;
  }
  element.style.color = "";
  return colors;
}

/** Where things are: slots to x, prices to y. `right` is the slot at the right edge. */
export class Geometry {
  constructor(width, height, axis, right, step, low, high) {
    this.plot = { width: Math.max(40, width - axis), height: Math.max(40, height - TIME_AXIS) };
    this.right = right;
    this.step = step;
    const room = this.plot.height * (1 - VOLUME_SHARE) - 34;
    this.top = 26;
    this.low = low;
    this.scale = high > low ? room / (high - low) : 0;
    this.room = room;
  }
  x(slot) {
    return this.plot.width - (this.right - slot) * this.step;
  }
  slot(x) {
    return Math.round(this.right - (this.plot.width - x) / this.step);
  }
  y(price) {
    return this.scale ? this.top + this.room - (price - this.low) * this.scale : this.top + this.room / 2;
  }
  price(y) {
    return this.scale ? this.low + (this.top + this.room - y) / this.scale : this.low;
  }
  get first() {
    return Math.floor(this.right - this.plot.width / this.step);
  }
  get last() {
    return Math.ceil(this.right);
  }
  /** Pixels of a candle's body: odd, so that the wick is in its middle. */
  get body() {
    const width = Math.max(1, Math.floor(this.step * 0.72));
    return width > 2 && width % 2 === 0 ? width - 1 : width;
  }
}

/** Lowest and highest price of the visible candles, with some air. */
export function extent(series, first, last) {
  let low = Infinity,
    high = -Infinity,
    volume = 0;
  for (let slot = first; slot <= last; slot++) {
    const candle = series.candles.get(slot);
    if (!candle) continue;
    if (candle.low < low) low = candle.low;
    if (candle.high > high) high = candle.high;
    if (candle.volume > volume) volume = candle.volume;
  }
  if (low > high) return null;
  const air = (high - low || Math.abs(high) * 0.001 || 1) * 0.05;
  return { low: low - air, high: high + air, volume };
}

export function draw(context, series, geometry, view) {
  const { plot } = geometry;
  const { colors, range } = view;
  context.fillStyle = colors.ground;
  context.fillRect(0, 0, view.width, view.height);
  context.font = view.font;
  context.lineWidth = 1;
  timeAxis(context, series, geometry, view);
  if (range) priceAxis(context, series, geometry, view);
  ranges(context, series, geometry, view);
  if (range) candles(context, series, geometry, view);
  line(context, colors.grid, plot.width + 0.5, 0, plot.width + 0.5, plot.height);
  line(context, colors.grid, 0, plot.height + 0.5, view.width, plot.height + 0.5);
  if (range) lastPrice(context, series, geometry, view);
  if (view.cross) crosshair(context, series, geometry, view);
}

function line(context, color, x1, y1, x2, y2) {
  context.strokeStyle = color;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** Hatches what is not known, and marks slots in which nobody traded. */
function ranges(context, series, geometry, view) {
  const { colors } = view;
  let start = null,
    kind = null;
  const flush = (end) => {
    if (start === null) return;
    const left = Math.max(0, geometry.x(start) - geometry.step / 2);
    const right = Math.min(geometry.plot.width, geometry.x(end) - geometry.step / 2);
    if (kind === "empty") {
      context.fillStyle = colors.faint;
      context.fillRect(left, geometry.plot.height - 3, right - left, 2);
    } else hatch(context, left, right, geometry.plot.height, view, kind);
    start = null;
  };
  for (let slot = geometry.first; slot <= geometry.last + 1; slot++) {
    let now = series.kind(slot);
    if (now === "before") now = series.oldest !== null && !series.mayHaveOlder ? "unknown" : "loading";
    const marked = now === "empty" || now === "unknown" || (now === "loading" && series.oldest !== null);
    if (start !== null && (now !== kind || !marked)) flush(slot);
    if (marked && start === null && slot <= geometry.last) {
      start = slot;
      kind = now;
    }
  }
  flush(geometry.last + 1);
}

function hatch(context, left, right, height, view, kind) {
  if (right - left < 1) return;
  context.save();
  context.beginPath();
  context.rect(left, 0, right - left, height);
  context.clip();
  if (kind === "unknown") {
    context.strokeStyle = view.colors.hatch;
    context.beginPath();
    for (let x = left - height - ((left - height) % 8); x < right; x += 8) {
      context.moveTo(x, height);
      context.lineTo(x + height, 0);
    }
    context.stroke();
  }
  const words = kind === "unknown" ? "not known" : "loading";
  const width = context.measureText(words).width;
  if (right - left > width + 16) {
    const middle = (left + right - width) / 2;
    context.fillStyle = view.colors.ground;
    context.fillRect(middle - 6, height / 2 - 11, width + 12, 20);
    context.fillStyle = view.colors.quiet;
    context.textAlign = "left";
    context.fillText(words, middle, height / 2 + 3);
  }
  context.restore();
}

function candles(context, series, geometry, view) {
  const { colors, range } = view;
  const body = geometry.body;
  const depth = geometry.plot.height * VOLUME_SHARE;
  context.save();
  context.beginPath();
  context.rect(0, 0, geometry.plot.width, geometry.plot.height);
  context.clip();
  for (let slot = geometry.first; slot <= geometry.last + 1; slot++) {
    const candle = series.candles.get(slot);
    if (!candle) continue;
    const x = Math.round(geometry.x(slot) - 0.5);
    const left = x - (body - 1) / 2;
    const color = candle.close < candle.open ? colors.down : colors.up;
    context.fillStyle = color;
    if (range.volume > 0 && candle.volume > 0) {
      const tall = Math.max(1, (candle.volume / range.volume) * depth);
      context.globalAlpha = 0.28;
      context.fillRect(Math.floor(left), geometry.plot.height - tall, body, tall);
      context.globalAlpha = 1;
    }
    const top = Math.round(geometry.y(candle.high)),
      bottom = Math.round(geometry.y(candle.low));
    context.fillRect(x, top, 1, Math.max(1, bottom - top));
    if (body < 2) continue;
    const open = Math.round(geometry.y(candle.open)),
      close = Math.round(geometry.y(candle.close));
    context.fillRect(Math.floor(left), Math.min(open, close), body, Math.max(1, Math.abs(open - close)));
  }
  context.restore();
}

/** A step of 1, 2 or 5 times a power of ten, and the decimal places that it needs. */
function priceStep(geometry) {
  const least = TICK_Y / geometry.scale;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= least);
  return { step, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** Decimal places that the axis needs; the crosshair shows one more. */
export function axisPlaces(geometry) {
  return geometry.scale ? priceStep(geometry).places : 2;
}

function priceAxis(context, series, geometry, view) {
  if (!geometry.scale) return;
  const newest = series.candles.get(series.newest);
  const taken = newest ? geometry.y(newest.close) : -Infinity;
  const { step, places } = priceStep(geometry);
  const lowest = Math.ceil(geometry.price(geometry.top + geometry.room + 8) / step);
  const highest = Math.floor(geometry.price(6) / step);
  context.textAlign = "left";
  for (let i = lowest; i <= highest; i++) {
    const y = Math.round(geometry.y(i * step)) + 0.5;
    line(context, view.colors.grid, 0, y, geometry.plot.width, y);
    if (Math.abs(y - taken) < LABEL) continue;
    context.fillStyle = view.colors.quiet;
    context.fillText((i * step).toFixed(places), geometry.plot.width + 8, y + 4);
  }
}

const DAY = 86_400_000;
const month = (t) => {
  const d = new Date(t);
  return d.getUTCFullYear() * 12 + d.getUTCMonth();
};
const every = (ms) => [ms, (t) => Math.floor(t / ms)];
const months = (n) => [n * 30 * DAY, (t) => Math.floor(month(t) / n)];
const LEVELS = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720].map((m) => every(m * 60_000)),
  every(DAY),
  every(2 * DAY),
  [7 * DAY, (t) => Math.floor((t / DAY - 4) / 7)],
  [14 * DAY, (t) => Math.floor((t / DAY - 4) / 14)],
  ...[1, 3, 6, 12, 24, 60, 120, 240].map(months),
];

function timeLabel(time, length, before) {
  const d = new Date(time);
  if (new Date(before).getUTCFullYear() !== d.getUTCFullYear()) return [String(d.getUTCFullYear()), true];
  if (length >= 28 * DAY) return [MONTHS[d.getUTCMonth()], false];
  if (length >= DAY) {
    return month(before) !== month(time) ? [MONTHS[d.getUTCMonth()], true] : [String(d.getUTCDate()), false];
  }
  if (Math.floor(before / DAY) !== Math.floor(time / DAY))
    return [`${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`, true];
  return [`${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}`, false];
}

function timeAxis(context, series, geometry, view) {
  const { interval } = series;
  const slotMs =
    (timeOf(interval, geometry.last) - timeOf(interval, geometry.first)) /
    Math.max(1, geometry.last - geometry.first);
  const [length, key] =
    LEVELS.find(([ms]) => (ms / slotMs) * geometry.step >= TICK_X) ?? LEVELS[LEVELS.length - 1];
  context.textAlign = "center";
  let before = timeOf(interval, geometry.first - 1),
    lastX = -Infinity,
    labelled = before;
  for (let slot = geometry.first; slot <= geometry.last; slot++) {
    const time = timeOf(interval, slot);
    const turn = key(time) !== key(before);
    before = time;
    const x = Math.round(geometry.x(slot)) + 0.5;
    if (!turn || x - lastX < TICK_X / 2 || x < 0) continue;
    const [label, strong] = timeLabel(time, length, labelled);
    labelled = time;
    lastX = x;
    line(context, view.colors.grid, x, 0, x, geometry.plot.height);
    context.fillStyle = strong ? view.colors.ink : view.colors.quiet;
    if (x < geometry.plot.width - 16 && x > 16) context.fillText(label, x, geometry.plot.height + 16);
  }
}

/** A label on the price axis, of which the text is what was sent. */
function tag(context, geometry, view, y, text, back, ink) {
  const middle = Math.max(10, Math.min(geometry.plot.height - 10, y));
  context.fillStyle = back;
  context.fillRect(geometry.plot.width + 1, middle - 9, view.width - geometry.plot.width - 1, 18);
  context.fillStyle = ink;
  context.textAlign = "left";
  context.fillText(text, geometry.plot.width + 8, middle + 4);
}

function lastPrice(context, series, geometry, view) {
  const candle = series.newest === null ? null : series.candles.get(series.newest);
  if (!candle) return;
  const color = candle.close < candle.open ? view.colors.down : view.colors.up;
  const y = Math.round(geometry.y(candle.close)) + 0.5;
  if (y > 0 && y < geometry.plot.height) {
    context.setLineDash([1, 3]);
    line(context, color, 0, y, geometry.plot.width, y);
    context.setLineDash([]);
  }
  tag(context, geometry, view, y, candle.text[3], color, view.colors["on-accent"]);
}

function crosshair(context, series, geometry, view) {
  const { cross, colors } = view;
  const x = Math.round(geometry.x(cross.slot) - 0.5) + 0.5;
  context.setLineDash([3, 3]);
  line(context, colors.quiet, x, 0, x, geometry.plot.height);
  if (cross.y !== null && cross.y < geometry.plot.height) {
    line(context, colors.quiet, 0, Math.round(cross.y) + 0.5, geometry.plot.width, Math.round(cross.y) + 0.5);
  }
  context.setLineDash([]);
  if (cross.y !== null && cross.y < geometry.plot.height && geometry.scale) {
    tag(
      context,
      geometry,
      view,
      cross.y,
      geometry.price(cross.y).toFixed(axisPlaces(geometry) + 1),
      colors.ink,
      colors.ground,
    );
  }
}

/** The slot at which a view that shows the newest candle ends. */
export function newestRight(series) {
  return (series.newest ?? slotOf(series.interval, Date.now())) + 3;
}
