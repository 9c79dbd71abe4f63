// A live stream that comes back: an EventSource that is opened again when it was closed for good,
// and when it has been silent for too long. A hidden tab gives its connection back after a while,
// because a browser has only six of them for one host.

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 10_000;
/** A stream that is open says so every 15 seconds, unless the limit is set otherwise. */
const SILENCE_MS = 60_000;
const HIDDEN_MS = 60_000;

export class Feed {
  /** `on` has a function for each event's name, and `state(state, retryAt)`. */
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.state = "connecting";
    this.pause = FIRST_PAUSE_MS;
    this.onVisible = () => this.visibility();
    document.addEventListener("visibilitychange", this.onVisible);
    this.open();
  }

  open() {
    this.drop();
    const source = (this.source = new EventSource(this.url));
    this.heard();
    source.onopen = () => {
      this.pause = FIRST_PAUSE_MS;
      this.set("live");
      this.heard();
    };
    source.onerror = () => this.failed();
    for (const name of ["quote", "candle", "status", "gone", "alive", "bye"]) {
      source.addEventListener(name, (event) => {
        this.heard();
        if (name === "bye") return this.set("lost");
        this.on[name]?.(JSON.parse(event.data));
      });
    }
  }

  /** The browser tries again by itself unless it got a response that is no stream. */
  failed() {
    if (this.source.readyState !== EventSource.CLOSED) return this.set("lost");
    const wait = this.pause * (0.75 + Math.random() / 2);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
    this.timer = setTimeout(() => this.open(), wait);
    this.set("lost", Date.now() + wait);
  }

  heard() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.open(), SILENCE_MS);
  }

  visibility() {
    clearTimeout(this.hidden);
    if (document.hidden)
      this.hidden = setTimeout(() => {
        this.drop();
        this.set("paused");
      }, HIDDEN_MS);
    else if (!this.source) this.open();
  }

  set(state, retryAt) {
    this.state = state;
    this.on.state?.(state, retryAt);
  }

  drop() {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.source?.close();
    this.source = null;
  }

  close() {
    this.drop();
    clearTimeout(this.hidden);
    document.removeEventListener("visibilitychange", this.onVisible);
  }
}
