import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { alignLines, stackValues, valueAt } from "../charts/align";
import { CHART_HEIGHT, buildOptions, lineColor } from "../charts/options";
import { ChartSpec, buildCharts } from "../charts/specs";
import { formatMoment } from "../text/times";
import { formatValue } from "../text/units";
import { usePage, useTime, useWidth } from "./context";

export function Charts() {
  const { fleet, derived } = usePage();
  const [hovered, setHovered] = useState<number | null>(null);
  const charts = useMemo(() => buildCharts(fleet, derived), [fleet, derived]);
  if (fleet.isMoment) return null;
  return (
    <section class="charts" aria-label="Charts">
      {charts.map((spec) => (
        <Chart key={spec.id} spec={spec} hovered={hovered} setHovered={setHovered} />
      ))}
    </section>
  );
}

interface Props {
  spec: ChartSpec;
  hovered: number | null;
  setHovered: (t: number | null) => void;
}

function Chart({ spec, hovered, setHovered }: Props) {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const visible = useMemo(() => spec.lines.map((_, i) => i).filter((i) => !hidden.has(spec.lines[i].label)), [spec, hidden]);
  const toggle = (label: string) => {
    const next = new Set(hidden);
    if (!next.delete(label)) next.add(label);
    setHidden(next);
  };
  return (
    <figure class="chart" id={`chart-${spec.id}`}>
      <figcaption>{spec.title}</figcaption>
      <Plot spec={spec} visible={visible} setHovered={setHovered} />
      <ChartLegend spec={spec} hidden={hidden} toggle={toggle} hovered={hovered} />
    </figure>
  );
}

function Plot({ spec, visible, setHovered }: { spec: ChartSpec; visible: number[]; setHovered: Props["setHovered"] }) {
  const { fleet, clock, theme, zone } = usePage();
  const [ref, width] = useWidth<HTMLDivElement>();
  const set = useRef(setHovered);
  set.current = setHovered;
  useEffect(() => {
    if (!ref.current || width < 80) return undefined;
    const span = { start: fleet.start, end: fleet.end };
    const lines = visible.map((line) => spec.lines[line]);
    const aligned = alignLines(lines, fleet.end);
    const sums = stackValues(aligned, lines.map((line) => line.isStacked));
    const values = spec.isBars ? sums.map((line) => line.map((value) => value || null)) : sums;
    const options = buildOptions(spec, visible, width, span, theme, zone);
    const plot = new uPlot(options, [aligned.t, ...values] as uPlot.AlignedData, ref.current);
    const line = document.createElement("div");
    line.className = "now-line";
    plot.over.append(line);
    // Reading the width at each move would compute the layout of the page at each frame.
    const plotWidth = plot.over.clientWidth;
    const move = (t: number) => {
      line.style.transform = `translateX(${((t - fleet.start) / (fleet.end - fleet.start)) * plotWidth}px)`;
    };
    const timeAt = (event: MouseEvent) => plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x");
    plot.over.addEventListener("mousemove", (event) => set.current(timeAt(event)));
    plot.over.addEventListener("mouseleave", () => set.current(null));
    plot.over.addEventListener("click", (event) => {
      clock.pause();
      clock.seek(timeAt(event));
    });
    move(clock.t);
    const end = clock.onTime(move);
    return () => {
      end();
      plot.destroy();
    };
  }, [spec, visible, width, theme, zone, fleet]);
  return <div class="plot" ref={ref} style={{ height: `${CHART_HEIGHT}px` }} role="img" aria-label={`${spec.title}, ${spec.axis}. The list below has the values.`} />;
}

interface LegendProps {
  spec: ChartSpec;
  hidden: ReadonlySet<string>;
  toggle: (label: string) => void;
  hovered: number | null;
}
function ChartLegend({ spec, hidden, toggle, hovered }: LegendProps) {
  const { theme, zone } = usePage();
  const now = useTime(4);
  const t = hovered ?? now;
  return (
    <div class="values" role="group" aria-label={`${spec.title}: lines and values`}>
      {spec.lines.map((line, index) => {
        const value = valueAt(line, t);
        return (
          <button type="button" key={line.label} aria-pressed={!hidden.has(line.label)} title="Show or hide this line" onClick={() => toggle(line.label)}>
            <span class={line.isDashed ? "line dashed" : "line"} style={{ borderColor: lineColor(spec, index, theme) }} aria-hidden="true" />
            {line.label} <b>{value === null ? "–" : formatValue(spec.isBars ? Math.abs(value) : value, spec.unit)}</b>
          </button>
        );
      })}
      <small>{hovered === null ? "" : formatMoment(hovered, zone)}</small>
    </div>
  );
}
