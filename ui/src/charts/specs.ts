/** Which charts a page has, and their data. */
import type { Fleet } from "../document/fleet";
import { countByInterval, quantilesByInterval } from "../state/buckets";
import type { Derived } from "../state/derived";
import type { StepTable } from "../state/step_table";

export interface ChartLine {
  label: string;
  t: number[];
  v: (number | null)[];
  /** The value holds until the next time. */
  isStep: boolean;
  /** Part of the stack; lines that are not are drawn over it. */
  isStacked: boolean;
  isDashed: boolean;
  /** Milliseconds; only of bars. */
  interval?: number;
}
export interface ChartSpec {
  id: string;
  title: string;
  /** The title of the y axis. */
  axis: string;
  unit: string;
  isBars: boolean;
  isInteger: boolean;
  lines: ChartLine[];
  note?: string;
}

const MOST_BUCKETS = 60;

function toLines(table: StepTable, isStacked: boolean): ChartLine[] {
  return table.labels.map((label, i) => ({ label, t: table.t, v: table.columns[i], isStep: true, isStacked, isDashed: false }));
}

export function buildCharts(fleet: Fleet, derived: Derived): ChartSpec[] {
  const plain = { isBars: false, isInteger: false };
  const charts: ChartSpec[] = [
    { id: "pods", title: "Pods", axis: "pods", unit: "pods", ...plain, isInteger: true, lines: toLines(derived.pods, true) },
    { id: "nodes", title: "Nodes by NodePool", axis: "nodes", unit: "nodes", ...plain, isInteger: true, lines: toLines(derived.nodesByPool, true) },
    {
      id: "cost",
      title: "Cost by NodePool and capacity type",
      axis: "$ per hour",
      unit: "USD/h",
      ...plain,
      lines: [...toLines(derived.cost, true), ...comparisons(fleet)],
    },
    { id: "cpu", title: "CPU", axis: "vCPU", unit: "vCPU", ...plain, lines: toLines(derived.cpu, false) },
    { id: "memory", title: "Memory", axis: "GiB", unit: "GiB", ...plain, lines: toLines(derived.memory, false) },
    launchChart(fleet, derived),
    waitChart(fleet, derived),
    { id: "evictions", title: "Evictions by reason, total", axis: "evictions", unit: "evictions", ...plain, isInteger: true, lines: toLines(derived.evictions, true) },
    ...otherCharts(fleet),
  ];
  return charts.filter((chart) => chart.lines.length > 0);
}

function comparisons(fleet: Fleet): ChartLine[] {
  return fleet.document.series
    .filter((series) => series.unit === "USD/h")
    .map((series) => ({ label: series.title, t: series.t, v: series.v, isStep: series.step, isStacked: false, isDashed: true }));
}

function launchChart(fleet: Fleet, derived: Derived): ChartSpec {
  const counts = countByInterval(["Launches", "Terminations"], [derived.launches, derived.terminations], fleet.start, fleet.end, MOST_BUCKETS);
  const lines = counts.labels.map((label, i) => ({
    label,
    t: counts.t,
    v: counts.columns[i].map((count) => (i === 1 ? -count : count)),
    isStep: true,
    isStacked: false,
    isDashed: false,
    interval: counts.interval,
  }));
  return { id: "launches", title: "Launches and terminations", axis: "nodes", unit: "nodes", isBars: true, isInteger: true, lines };
}

const WAIT = /p50|p95/i;

function waitChart(fleet: Fleet, derived: Derived): ChartSpec {
  const recorded = fleet.document.series.filter((series) => series.unit === "s" && WAIT.test(`${series.id} ${series.title}`));
  const chart = { id: "wait", axis: "seconds", unit: "s", isBars: false, isInteger: false };
  if (recorded.length) {
    const lines = recorded.map((series) => ({
      label: WAIT.exec(`${series.id} ${series.title}`)![0].toLowerCase(),
      t: series.t,
      v: series.v,
      isStep: series.step,
      isStacked: false,
      isDashed: false,
    }));
    return { ...chart, title: "Time from pending to running", lines };
  }
  if (!derived.placements.length) return { ...chart, title: "Time from pending to scheduled", lines: [] };
  const { t, p50, p95 } = quantilesByInterval(derived.placements, fleet.start, fleet.end, MOST_BUCKETS);
  const line = (label: string, v: (number | null)[]) => ({ label, t: t.filter((_, i) => v[i] !== null), v: v.filter((value) => value !== null), isStep: false, isStacked: false, isDashed: false });
  return { ...chart, title: "Time from pending to scheduled", lines: [line("p50", p50), line("p95", p95)] };
}

/** Series of the document that belong to none of the charts above, by unit. */
function otherCharts(fleet: Fleet): ChartSpec[] {
  const byUnit = new Map<string, ChartSpec>();
  for (const series of fleet.document.series) {
    if (series.unit === "USD/h" || (series.unit === "s" && WAIT.test(`${series.id} ${series.title}`))) continue;
    const key = series.stack ?? series.unit;
    const chart = byUnit.get(key) ?? { id: `other-${key}`, title: series.title, axis: series.unit, unit: series.unit, isBars: false, isInteger: false, lines: [] };
    chart.lines.push({ label: series.title, t: series.t, v: series.v, isStep: series.step, isStacked: series.stack !== null, isDashed: false });
    byUnit.set(key, chart);
  }
  return [...byUnit.values()];
}
