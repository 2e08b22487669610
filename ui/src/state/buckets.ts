/** Events counted, and waits summarized, in round intervals of time. */
import type { StepTable } from "./step_table";
import { TIME_STEPS } from "../text/ticks";

/** Return the round interval, in milliseconds, that divides a span into at most *most* parts. */
export function findInterval(start: number, end: number, most: number): number {
  return TIME_STEPS.find((step) => (end - start) / step <= most) ?? Math.ceil((end - start) / most);
}

function bucketStarts(start: number, end: number, interval: number): number[] {
  const first = Math.floor(start / interval) * interval;
  const starts: number[] = [];
  for (let t = first; t <= end; t += interval) starts.push(t);
  return starts;
}

/** Count the times of each of *lists* per interval. */
export function countByInterval(labels: string[], lists: number[][], start: number, end: number, most: number): StepTable & { interval: number } {
  const interval = findInterval(start, end, most);
  const t = bucketStarts(start, end, interval);
  const columns = lists.map((times) => {
    const counts = t.map(() => 0);
    for (const time of times) counts[Math.floor((time - t[0]) / interval)] += 1;
    return counts;
  });
  return { t, labels, columns, interval };
}

/** Return the *part* quantile (0 to 1) of *sorted* by the nearest rank. */
export function quantile(sorted: number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
}

/** Return p50 and p95 of the waits per interval, in seconds; null without any. */
export function quantilesByInterval(
  placements: { t: number; wait: number }[],
  start: number,
  end: number,
  most: number,
): { t: number[]; p50: (number | null)[]; p95: (number | null)[] } {
  const interval = findInterval(start, end, most);
  const t = bucketStarts(start, end, interval);
  const waits: number[][] = t.map(() => []);
  for (const placement of placements) waits[Math.floor((placement.t - t[0]) / interval)]?.push(placement.wait / 1000);
  waits.forEach((list) => list.sort((a, b) => a - b));
  const pick = (part: number) => waits.map((list) => (list.length ? quantile(list, part) : null));
  return { t, p50: pick(0.5), p95: pick(0.95) };
}
