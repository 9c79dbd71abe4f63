// The chart that a person holds: it pans, zooms and points, loads what comes into view, and says
// what is under the crosshair.

import { draw, extent, Geometry, newestRight, palette } from "./draw.js";
import { INTERVALS, timeOf } from "./slots.js";
import { compact, date } from "./text.js";

const STEP = { least: 1.5, most: 48, first: 7 };
const FONT = "11px ui-sans-serif, system-ui, 'Segoe UI', Roboto, Inter, sans-serif";
/** The price axis' share of the width, for prices of many digits. */
const MOST_AXIS = 0.3;
const NAMES = ["O", "H", "L", "C", "V"];

export class Chart {
  constructor(canvas, values, newest) {
    this.canvas = canvas;
    this.values = values;
    this.newest = newest;
    this.series = null;
    this.step = STEP.first;
    this.right = 0;
    this.cross = null;
    this.pointers = new Map();
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
    this.listen();
  }

  /** Shows another series, from its newest candle. */
  show(series) {
    this.series = series;
    this.cross = null;
    this.following = true;
    this.right = newestRight(series);
    this.changed();
  }

  /** The series has changed: new candles move a view that follows them. */
  changed() {
    if (!this.series) return;
    if (this.following) this.right = newestRight(this.series);
    this.paint();
  }

  recolor() {
    this.colors = null;
    this.paint();
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.render();
  }

  paint() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.render();
    });
  }

  geometry() {
    this.context.font = FONT;
    const newest = this.series.candles.get(this.series.newest);
    const texts = newest ? newest.text.slice(0, 4) : ["00000"];
    const widest = Math.max(...texts.map((text) => this.context.measureText(text + "0").width));
    const axis = Math.min(Math.ceil(widest) + 18, this.width * MOST_AXIS);
    const seen = (this.width - axis) / this.step;
    this.range = extent(this.series, Math.ceil(this.right - seen), Math.floor(this.right));
    return new Geometry(
      this.width,
      this.height,
      axis,
      this.right,
      this.step,
      this.range?.low ?? 0,
      this.range?.high ?? 0,
    );
  }

  render() {
    if (!this.context || !this.series || !this.canvas.clientWidth) return;
    this.colors ??= palette(this.canvas);
    const geometry = (this.now = this.geometry());
    draw(this.context, this.series, geometry, {
      width: this.width,
      height: this.height,
      colors: this.colors,
      range: this.range,
      cross: this.cross,
      font: FONT,
    });
    this.say();
    this.newest.hidden = this.series.newest === null || geometry.last >= this.series.newest;
    // Half a view more than what is seen, so that a slow hand never reaches the end.
    if (
      this.series.oldest !== null &&
      geometry.first - geometry.plot.width / this.step / 2 < this.series.oldest
    ) {
      this.series.older();
    }
  }

  /** Writes the values under the crosshair, or of the newest candle. */
  say() {
    const { series } = this;
    const slot = this.cross ? this.cross.slot : series.newest;
    if (slot === null) return this.write("", []);
    const candle = series.candles.get(slot);
    const when = date(timeOf(series.interval, slot), INTERVALS[series.interval] < INTERVALS["1d"]);
    if (candle) {
      const forming = series.lastClosed !== null && candle.time > series.lastClosed;
      return this.write(
        when,
        candle.text,
        candle.close < candle.open ? "down" : "up",
        forming ? "forming" : "",
      );
    }
    const words = {
      empty: "nobody traded",
      after: "not yet",
      before: series.mayHaveOlder ? "loading" : "not known",
      unknown: "not known: the exchange has not said whether anybody traded",
    };
    this.write(when, [], "", words[series.kind(slot)]);
  }

  write(when, texts, direction = "", note = "") {
    const key = [when, ...texts, note].join("|");
    if (key === this.written) return;
    this.written = key;
    const parts = [element("time", when)];
    texts.forEach((text, i) => {
      const value = element("span", text, i < 4 ? direction : "");
      if (i === 4) {
        value.textContent = compact(text);
        value.title = text;
      }
      const pair = element("b", "");
      pair.append(element("i", NAMES[i]), value);
      parts.push(pair);
    });
    if (note) parts.push(element("em", note));
    this.values.replaceChildren(...parts);
  }

  /** Moves the view by slots. */
  pan(slots) {
    const most = newestRight(this.series) + this.width / this.step / 2;
    const least = (this.series.oldest ?? 0) - this.width / this.step / 2;
    this.right = Math.max(least, Math.min(most, this.right + slots));
    this.following = Math.abs(this.right - newestRight(this.series)) < 0.5;
    this.touched();
  }

  /** Zooms around a place. */
  zoom(factor, x = this.now.plot.width) {
    const step = Math.max(STEP.least, Math.min(STEP.most, this.step * factor));
    const away = this.now.plot.width - x;
    const atNewest = this.following && away < 1;
    this.right += away / step - away / this.step;
    this.step = step;
    if (!atNewest) this.following = false;
    this.touched();
  }

  toNewest() {
    this.cross = null;
    this.following = true;
    this.touched();
    this.changed();
  }

  touched() {
    this.series.again();
    this.paint();
  }

  point(x, y) {
    if (!this.now || x > this.now.plot.width) this.cross = null;
    else this.cross = { slot: this.now.slot(x), y };
    this.touched();
  }

  listen() {
    const { canvas } = this;
    const place = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (!this.now) return;
        const sideways = event.shiftKey ? event.deltaY : event.deltaX;
        const unit = event.deltaMode === 1 ? 16 : 1;
        if (sideways && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)))
          this.pan((sideways * unit) / this.step);
        else this.zoom(Math.exp(-event.deltaY * unit * 0.0015), event.offsetX);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, place(event));
      this.moved = false;
    });
    canvas.addEventListener("pointermove", (event) => this.move(event, ...place(event)));
    const up = (event) => {
      if (event.pointerType !== "mouse" && !this.moved && event.type === "pointerup")
        this.point(...place(event));
      this.pointers.delete(event.pointerId);
      canvas.classList.remove("held");
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && this.cross) {
        this.cross = null;
        this.paint();
      }
    });
    canvas.addEventListener("dblclick", () => this.toNewest());
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.newest.addEventListener("click", () => this.toNewest());
  }

  move(event, x, y) {
    const from = this.pointers.get(event.pointerId);
    if (!this.series || !this.now) return;
    if (!from) {
      if (event.pointerType === "mouse") this.point(x, y);
      return;
    }
    if (!this.moved && Math.hypot(x - from[0], y - from[1]) < 4) return;
    this.moved = true;
    this.canvas.classList.add("held");
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const [ox] = others[0][1];
      const before = Math.abs(from[0] - ox),
        after = Math.abs(x - ox);
      if (before > 10 && after > 10) this.zoom(after / before, (x + ox) / 2);
    } else {
      this.cross = null;
      this.pan((from[0] - x) / this.step);
    }
    this.pointers.set(event.pointerId, [x, y]);
  }

  /** Arrow keys move the crosshair and take the view along; with Shift they move by ten. */
  key(event) {
    if (!this.series || !this.now || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? 10 : 1;
    switch (event.key) {
      case "ArrowLeft":
        this.stepCross(-by);
        break;
      case "ArrowRight":
        this.stepCross(by);
        break;
      case "ArrowUp":
      case "+":
      case "=":
        this.zoom(1.25);
        break;
      case "ArrowDown":
      case "-":
        this.zoom(0.8);
        break;
      case "PageUp":
        this.pan(-this.now.plot.width / this.step);
        break;
      case "PageDown":
        this.pan(this.now.plot.width / this.step);
        break;
      case "Home":
        if (this.series.oldest !== null) this.pan(this.series.oldest - this.now.first);
        break;
      case "End":
        this.toNewest();
        break;
      case "Escape":
        if (!this.cross) return;
        this.cross = null;
        this.paint();
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  stepCross(by) {
    const { series, now } = this;
    if (series.newest === null) return;
    const at = this.cross ? this.cross.slot + by : Math.min(series.newest, now.last - 1);
    const slot = Math.min(at, series.newest);
    this.cross = { slot, y: null };
    this.values.setAttribute("aria-live", "polite");
    if (slot < now.first + 2) this.pan(slot - now.first - 2);
    else if (slot > now.right - 1) this.pan(slot + 1 - now.right);
    this.touched();
  }
}

function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
