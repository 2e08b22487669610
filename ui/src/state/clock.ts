/** The time that the page shows, and its playback. */
import { countUntil } from "./column_replay";

export type Listener = (t: number) => void;

export class Clock {
  t: number;
  isPlaying = false;
  /** Milliseconds of the fleet per millisecond of the wall clock. */
  speed: number;
  /** Whether playback passes quickly over times without events. */
  skipsQuiet = true;
  /** The sorted times of the events. */
  events: ArrayLike<number> = [];
  /** The sorted times at which playback stands still for a moment, so that people can read. */
  holds: ArrayLike<number> = [];
  private heldUntil = 0;
  private readonly listeners = new Set<Listener>();
  private readonly playListeners = new Set<() => void>();
  private frame = 0;
  private last = 0;

  constructor(
    public start: number,
    public end: number,
    t: number,
  ) {
    this.t = t;
    this.speed = chooseSpeed(end - start, PLAYBACK);
  }

  seek(t: number): void {
    const next = Math.min(this.end, Math.max(this.start, Math.round(t)));
    if (next === this.t) return;
    this.t = next;
    this.listeners.forEach((listener) => listener(next));
  }
  play(): void {
    if (this.isPlaying) return;
    if (this.t >= this.end) this.seek(this.start);
    this.isPlaying = true;
    this.last = 0;
    this.frame = requestAnimationFrame(this.advance);
    this.notifyPlaying();
  }
  pause(): void {
    if (!this.isPlaying) return;
    this.isPlaying = false;
    cancelAnimationFrame(this.frame);
    this.notifyPlaying();
  }
  toggle(): void {
    if (this.isPlaying) this.pause();
    else this.play();
  }
  setSkipsQuiet(skipsQuiet: boolean): void {
    this.skipsQuiet = skipsQuiet;
    this.notifyPlaying();
  }
  setSpeed(speed: number): void {
    this.speed = speed;
    this.notifyPlaying();
  }
  /** Call *listener* at each change of the time; returns the function that ends this. */
  onTime(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  onPlaying(listener: () => void): () => void {
    this.playListeners.add(listener);
    return () => this.playListeners.delete(listener);
  }
  private notifyPlaying(): void {
    this.playListeners.forEach((listener) => listener());
  }
  private readonly advance = (now: number): void => {
    if (!this.isPlaying) return;
    if (this.last && now >= this.heldUntil) {
      const next = this.t + playStep(this, Math.min(now - this.last, 200));
      const hold = this.holds[countUntil(this.holds, this.t)] ?? Infinity;
      if (hold <= next) this.heldUntil = now + HOLD;
      this.seek(Math.min(hold, next));
    }
    this.last = now;
    if (this.t >= this.end) this.pause();
    else this.frame = requestAnimationFrame(this.advance);
  };
}

/** A time is quiet if the next event is further away than this, in milliseconds of the wall clock. */
const QUIET = 1500;
const QUIET_FACTOR = 12;

/** Return how far the time moves in *elapsed* milliseconds of the wall clock; never over the beginning of an event. */
export function playStep(clock: Pick<Clock, "t" | "speed" | "skipsQuiet" | "events">, elapsed: number): number {
  const step = elapsed * clock.speed;
  if (!clock.skipsQuiet) return step;
  const next = clock.events[countUntil(clock.events, clock.t)] ?? Infinity;
  const last = clock.events[countUntil(clock.events, clock.t) - 1] ?? -Infinity;
  const isQuiet = next - clock.t > QUIET * clock.speed && clock.t - last > QUIET * clock.speed;
  return isQuiet ? Math.max(step, Math.min(step * QUIET_FACTOR, next - clock.t - QUIET * clock.speed)) : step;
}

export const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600];
/** The longest playback at the speed that the page chooses, in milliseconds of the wall clock. */
export const PLAYBACK = 90_000;
/** The same of a demo, whose captions people read. */
export const DEMO_PLAYBACK = 150_000;
const HOLD = 2200;

/** Return the slowest of the speeds with which *span* plays in at most *playback*. */
export function chooseSpeed(span: number, playback: number): number {
  return SPEEDS.find((speed) => span / speed <= playback) ?? SPEEDS[SPEEDS.length - 1];
}
