/** The value of each item at a time, from a column of changes: binary search, checkpoints and a cursor. */
import type { Events } from "../document/fleet";

/** Return the number of values in the sorted *times* that are not after *t*. */
export function countUntil(times: ArrayLike<number>, t: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface Checkpoint {
  values: Int32Array;
  since: Float64Array;
}

export class ColumnReplay {
  /** The value of each item at the time of the last `seek`. */
  readonly values: Int32Array;
  /** When each item got its value. */
  readonly since: Float64Array;
  private cursor = 0;
  private readonly checkpoints: Checkpoint[] = [];

  constructor(
    private readonly events: Events,
    itemCount: number,
    initial: number,
    private readonly checkpointEvery = 4096,
  ) {
    this.values = new Int32Array(itemCount).fill(initial);
    this.since = new Float64Array(itemCount);
    for (let next = 0; next <= events.t.length; next += checkpointEvery) {
      this.apply(next);
      this.checkpoints.push({ values: this.values.slice(), since: this.since.slice() });
    }
  }

  /** Set the values to those at time *t*, including the changes at *t*. Return the number of changes until then. */
  seek(t: number): number {
    const target = countUntil(this.events.t, t);
    const index = Math.floor(target / this.checkpointEvery);
    const start = index * this.checkpointEvery;
    if (target < this.cursor || start > this.cursor) {
      this.values.set(this.checkpoints[index].values);
      this.since.set(this.checkpoints[index].since);
      this.cursor = start;
    }
    this.apply(target);
    return target;
  }

  private apply(target: number): void {
    const { t, item, value } = this.events;
    for (; this.cursor < target; this.cursor++) {
      this.values[item[this.cursor]] = value[this.cursor];
      this.since[item[this.cursor]] = t[this.cursor];
    }
  }
}
