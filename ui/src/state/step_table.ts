/** Values that change in steps, on one time axis. */
import { countUntil } from "./column_replay";

export interface StepTable {
  t: number[];
  labels: string[];
  /** One column for each label; each value holds until the next time. */
  columns: number[][];
}

/** Records changes of counters in the order of time. */
export class StepRecorder {
  private readonly current: number[];
  private readonly table: StepTable;

  /** *resolution*: changes within so many milliseconds become one point; 0 keeps all. */
  constructor(
    labels: string[],
    start: number,
    private readonly resolution: number,
  ) {
    this.current = labels.map(() => 0);
    this.table = { t: [start], labels, columns: labels.map(() => [0]) };
  }

  add(t: number, column: number, change: number): void {
    if (change === 0) return;
    this.current[column] += change;
    const { t: times, columns } = this.table;
    const start = times[0];
    const at = this.resolution > 0 ? start + Math.ceil((t - start) / this.resolution) * this.resolution : t;
    if (at > times[times.length - 1]) {
      times.push(at);
      columns.forEach((values, i) => values.push(this.current[i]));
    } else {
      columns[column][times.length - 1] = this.current[column];
    }
  }

  /** Return the table until *end*, without the rounding errors of sums. */
  finish(end: number): StepTable {
    const { t, columns, labels } = this.table;
    if (t[t.length - 1] < end) {
      t.push(end);
      columns.forEach((values) => values.push(values[values.length - 1]));
    }
    return { t, labels, columns: columns.map((values) => values.map((value) => Math.round(value * 1e6) / 1e6)) };
  }
}

/** Return the values of *table* at time *t*, or null before its first time. */
export function valuesAt(table: StepTable, t: number): (number | null)[] {
  const index = countUntil(table.t, t) - 1;
  return table.columns.map((values) => (index < 0 ? null : values[index]));
}
/** Return the table with only the columns that are not always zero. */
export function withoutEmptyColumns(table: StepTable): StepTable {
  const kept = table.columns.map((_, i) => i).filter((i) => table.columns[i].some((value) => value !== 0));
  return { t: table.t, labels: kept.map((i) => table.labels[i]), columns: kept.map((i) => table.columns[i]) };
}
