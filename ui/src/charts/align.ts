/** Lines on one time axis, and stacks. */
import { countUntil } from "../state/column_replay";
import type { ChartLine } from "./specs";

export interface Aligned {
  t: number[];
  values: (number | null)[][];
}

/** Put *lines* on one axis of times, which ends at *end*. Steps hold their value; other lines have gaps. */
export function alignLines(lines: ChartLine[], end: number): Aligned {
  const t = [...new Set([...lines.flatMap((line) => line.t), end])].filter((time) => time <= end).sort((a, b) => a - b);
  const values = lines.map((line) => {
    if (line.isStep) return spreadSteps(line, t);
    const byTime = new Map(line.t.map((time, i) => [time, line.v[i]]));
    return t.map((time) => byTime.get(time) ?? null);
  });
  return { t, values };
}

function spreadSteps(line: ChartLine, t: number[]): (number | null)[] {
  let i = -1;
  return t.map((time) => {
    while (i + 1 < line.t.length && line.t[i + 1] <= time) i++;
    return i < 0 ? null : line.v[i];
  });
}

/** Return the sums of the values of the *stacked* lines until each line, from the first to the last; others unchanged. */
export function stackValues(aligned: Aligned, stacked: boolean[]): (number | null)[][] {
  const sums = aligned.t.map(() => 0);
  return aligned.values.map((values, line) => {
    if (!stacked[line]) return values;
    return values.map((value, i) => (sums[i] += value ?? 0));
  });
}

/** Return the value of a line at time *t*: of a step the last before, of another line the nearest in time. */
export function valueAt(line: ChartLine, t: number): number | null {
  const index = countUntil(line.t, t) - 1;
  if (line.isStep) {
    if (index < 0) return null;
    if (line.interval && t >= line.t[index] + line.interval) return null;
    return line.v[index];
  }
  const after = index + 1;
  if (index < 0) return line.v[after] ?? null;
  if (after >= line.t.length) return line.v[index];
  return t - line.t[index] <= line.t[after] - t ? line.v[index] : line.v[after];
}
