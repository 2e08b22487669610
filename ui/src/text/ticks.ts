/** Round ticks for axes. */
import type { TimeZone } from "./times";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
export const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 28].map((n) => n * DAY),
];

export interface TimeTicks {
  step: number;
  ticks: number[];
}
/** Return at most *most* round times from *start* to *end*, in *zone*. */
export function findTimeTicks(start: number, end: number, most: number, zone: TimeZone): TimeTicks {
  const step = TIME_STEPS.find((candidate) => (end - start) / candidate <= most) ?? Math.ceil((end - start) / most / DAY) * DAY;
  const offset = zone === "utc" ? 0 : -new Date(start).getTimezoneOffset() * MINUTE;
  const ticks: number[] = [];
  for (let t = Math.ceil((start + offset) / step) * step - offset; t <= end; t += step) ticks.push(t);
  return { step, ticks };
}

/** Return the round step (1, 2 or 5 times a power of ten) that gives at most *most* steps in *range*. */
export function findStep(range: number, most: number, integers: boolean): number {
  if (!(range > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(range / most));
  const step = [1, 2, 5, 10].map((n) => n * power).find((candidate) => range / candidate <= most * (1 + 1e-9)) ?? 10 * power;
  return integers ? Math.max(1, step) : step;
}
/** Return round values from zero (or below) to a value that is not less than *max*. */
export function findValueTicks(min: number, max: number, most: number, integers: boolean): number[] {
  const step = findStep(max - Math.min(0, min) || 1, most, integers);
  const first = Math.floor(Math.min(0, min) / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(max / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
