/** The picture behind the timeline: pods over time, acts, ticks, and markers with shapes. */
import type { Fleet } from "../document/fleet";
import { PENDING_COLOR, SURFACES, Theme } from "../map/palette";
import type { Derived } from "../state/derived";
import type { StepTable } from "../state/step_table";
import { fontOf } from "../text/font";

export interface Track {
  fleet: Fleet;
  derived: Derived;
  theme: Theme;
  width: number;
  height: number;
  ticks: number[];
  labels: string[];
}
type Context = CanvasRenderingContext2D;

export const MARKER_LABELS: Record<string, string> = {
  launch: "Launch",
  terminate: "Termination",
  interruption: "Interruption",
  failure: "Failure",
  deployment: "Deployment",
  act: "Act",
};
const MARKER_COLORS: Record<string, Record<Theme, string>> = {
  launch: { light: "#1f7a5e", dark: "#35b98f" },
  terminate: { light: "#566272", dark: "#9aa7b8" },
  interruption: { light: "#cc3344", dark: "#f2616f" },
  failure: { light: "#cc3344", dark: "#f2616f" },
  deployment: { light: "#7457c2", dark: "#a68cf0" },
  act: { light: "#2c72d4", dark: "#6ba4ff" },
};
const AXIS = 18;
const MARKERS = 16;

export function paintTrack(context: Context, track: Track): void {
  const { fleet, derived, theme, width, height } = track;
  const surface = SURFACES[theme];
  const x = (t: number) => ((t - fleet.start) / (fleet.end - fleet.start)) * width;
  const bottom = height - AXIS;
  context.clearRect(0, 0, width, height);
  context.fillStyle = surface.group;
  context.fillRect(0, MARKERS, width, bottom - MARKERS);
  const most = Math.max(1, ...derived.pods.t.map((_, i) => derived.pods.columns[0][i] + derived.pods.columns[1][i]));
  const y = (pods: number) => bottom - (pods / most) * (bottom - MARKERS - 4);
  const [running, pending] = derived.pods.columns;
  paintSteps(context, derived.pods, running.map((value, i) => value + pending[i]), x, y, bottom, width, PENDING_COLOR[theme]);
  paintSteps(context, derived.pods, running, x, y, bottom, width, theme === "dark" ? "#1f6b55" : "#8fceb8");
  paintActs(context, track, x, bottom);
  context.globalAlpha = 1;
  context.fillStyle = surface.muted;
  context.strokeStyle = surface.groupLine;
  context.font = fontOf(11);
  context.textBaseline = "middle";
  track.ticks.forEach((t, i) => {
    context.beginPath();
    context.moveTo(x(t), bottom);
    context.lineTo(x(t), bottom + 4);
    context.stroke();
    const half = context.measureText(track.labels[i]).width / 2;
    context.fillText(track.labels[i], Math.min(width - 2 * half, Math.max(0, x(t) - half)), bottom + 11);
  });
  const drawn = new Set<string>();
  for (const marker of fleet.document.markers) {
    const key = `${marker.kind} ${Math.round(x(marker.t) / 3)}`;
    if (drawn.has(key) || marker.kind === "act") continue;
    drawn.add(key);
    const center = Math.min(width - 6, Math.max(6, x(marker.t)));
    paintMarker(context, marker.kind, center, MARKERS / 2, MARKER_COLORS[marker.kind]?.[theme] ?? surface.muted);
  }
}

function paintActs(context: Context, track: Track, x: (t: number) => number, bottom: number): void {
  const acts = track.fleet.document.markers.filter((marker) => marker.kind === "act");
  acts.forEach((act, i) => {
    const left = x(act.t);
    const right = i + 1 < acts.length ? x(acts[i + 1].t) : track.width;
    context.globalAlpha = i % 2 ? 0.0 : 0.06;
    context.fillStyle = MARKER_COLORS.act[track.theme];
    context.fillRect(left, MARKERS, right - left, bottom - MARKERS);
    context.globalAlpha = 0.5;
    context.fillRect(left, MARKERS, 1, bottom - MARKERS);
    if (right - left > 22) {
      context.globalAlpha = 0.9;
      context.fillStyle = SURFACES[track.theme].muted;
      context.font = fontOf(10.5, 600);
      context.textBaseline = "middle";
      context.fillText(String(i + 1), left + 5, MARKERS + 9);
    }
  });
  context.globalAlpha = 1;
}

function paintSteps(
  context: Context,
  table: StepTable,
  values: number[],
  x: (t: number) => number,
  y: (value: number) => number,
  bottom: number,
  width: number,
  color: string,
): void {
  context.beginPath();
  context.moveTo(0, bottom);
  table.t.forEach((t, i) => {
    context.lineTo(x(t), y(values[i]));
    context.lineTo(i + 1 < table.t.length ? x(table.t[i + 1]) : width, y(values[i]));
  });
  context.lineTo(width, bottom);
  context.closePath();
  context.fillStyle = color;
  context.globalAlpha = 1;
  context.fill();
}

/** Draw a marker: triangles for launches and terminations, a bolt, a cross, a flag. */
function paintMarker(context: Context, kind: string, x: number, y: number, color: string): void {
  context.globalAlpha = 0.95;
  context.fillStyle = color;
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  const shapes: Record<string, [number, number][]> = {
    launch: [[0, -5], [5, 4], [-5, 4]],
    terminate: [[0, 5], [5, -4], [-5, -4]],
    interruption: [[1, -6], [-4, 1], [0, 1], [-1, 6], [4, -1], [0, -1]],
    deployment: [[-4, 6], [-4, -6], [5, -3], [-2, 0], [-2, 6]],
  };
  const shape = shapes[kind];
  if (shape) {
    shape.forEach(([dx, dy], i) => (i ? context.lineTo(x + dx, y + dy) : context.moveTo(x + dx, y + dy)));
    context.closePath();
    context.fill();
  } else {
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 4, y + 4);
    context.moveTo(x + 4, y - 4);
    context.lineTo(x - 4, y + 4);
    context.stroke();
  }
  context.globalAlpha = 1;
}
