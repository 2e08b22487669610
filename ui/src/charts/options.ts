/** Options of a uPlot chart: round ticks, axis titles, stacks as bands. */
import uPlot from "uplot";
import { SERIES_COLORS, SURFACES, Theme } from "../map/palette";
import { fontOf } from "../text/font";
import { findTimeTicks, findValueTicks } from "../text/ticks";
import { TimeZone, formatTick } from "../text/times";
import { trimZeros } from "../text/units";
import type { ChartSpec } from "./specs";

/** Charts are higher on a screen that would be half empty otherwise. */
export const CHART_HEIGHT = globalThis.innerHeight >= 1600 ? 320 : 190;
const FONT = fontOf(11);

export interface Span {
  start: number;
  end: number;
}

/** The color of line *index*; running pods are green, pending pods amber, as on the map. */
export function lineColor(spec: ChartSpec, index: number, theme: Theme): string {
  const colors = SERIES_COLORS[theme];
  if (spec.lines[index].isDashed) return SURFACES[theme].muted;
  if (spec.id === "pods") return colors[[1, 2][index]];
  if (spec.id === "cpu" || spec.id === "memory") return colors[[0, 1][index]];
  if (spec.id === "launches") return colors[[1, 4][index]];
  return colors[index % colors.length];
}

export function buildOptions(spec: ChartSpec, visible: number[], width: number, span: Span, theme: Theme, zone: TimeZone): uPlot.Options {
  const surface = SURFACES[theme];
  const most = Math.max(2, Math.floor(width / 95));
  const axis = { stroke: surface.muted, font: FONT, grid: { stroke: surface.groupLine, width: 1 }, ticks: { show: false } };
  const stacked = visible.filter((line) => spec.lines[line].isStacked);
  return {
    width,
    height: CHART_HEIGHT,
    legend: { show: false },
    padding: [8, 24, 0, 0],
    cursor: { sync: { key: "fleet" }, drag: { x: false, y: false }, y: false, points: { show: false } },
    scales: {
      x: { time: false, range: [span.start, span.end] },
      y: { range: (_plot, min, max) => spanOf(findValueTicks(min ?? 0, max ?? 1, 4, spec.isInteger)) },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        ticks: { show: true, stroke: surface.groupLine, size: 4 },
        size: 28,
        splits: () => findTimeTicks(span.start, span.end, most, zone).ticks,
        values: (_plot, ticks) => ticks.map((t) => formatTick(t, findTimeTicks(span.start, span.end, most, zone).step, zone)),
      },
      {
        ...axis,
        size: 52,
        label: spec.axis,
        labelSize: 18,
        labelFont: FONT,
        labelGap: 0,
        splits: (plot) => findValueTicks(plot.scales.y.min ?? 0, plot.scales.y.max ?? 1, 4, spec.isInteger),
        values: (_plot, ticks) => ticks.map((value) => formatAxis(spec.isBars ? Math.abs(value) : value, spec.unit)),
      },
    ],
    series: [{}, ...visible.map((line) => buildSeries(spec, line, line === stacked[0], theme))],
    bands: stacked.slice(1).map((line, i) => ({
      series: [visible.indexOf(line) + 1, visible.indexOf(stacked[i]) + 1] as [number, number],
      fill: withAlpha(lineColor(spec, line, theme), 0.45),
    })),
  };
}

function buildSeries(spec: ChartSpec, index: number, isLowest: boolean, theme: Theme): uPlot.Series {
  const line = spec.lines[index];
  const color = lineColor(spec, index, theme);
  const isArea = (spec.id === "cpu" || spec.id === "memory") && index === 1;
  return {
    label: line.label,
    stroke: color,
    width: line.isDashed ? 2 : 1.5,
    ...(line.isDashed ? { dash: [6, 4] } : {}),
    ...(isLowest || spec.isBars || isArea ? { fill: withAlpha(color, spec.isBars ? 0.8 : isArea ? 0.2 : 0.45) } : {}),
    points: { show: !line.isStep, size: 5, fill: color },
    spanGaps: !line.isStep,
    ...(spec.isBars ? { paths: uPlot.paths.bars!({ size: [0.7, 24], align: 1 }) } : line.isStep ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
  };
}

function spanOf(ticks: number[]): [number, number] {
  return [ticks[0], ticks[ticks.length - 1]];
}
export function withAlpha(color: string, alpha: number): string {
  return `${color}${Math.round(alpha * 255).toString(16).padStart(2, "0")}`;
}
export function formatAxis(value: number, unit: string): string {
  const digits = Math.abs(value) < 0.1 ? 3 : 2;
  const text = Math.abs(value) >= 10_000 ? `${trimZeros(value / 1000, 1)}k` : trimZeros(value, digits);
  return unit === "USD/h" ? `$${text}` : text;
}
