/** Colors of states and charts in the light and the dark theme; patterns tell states apart without color. */
import { NODE_STATES, NodeState } from "../document/format";

export type Theme = "light" | "dark";
export type Pattern = "none" | "dashed" | "dots" | "lines" | "hatch" | "cross" | "lock" | "unknown";

export interface StateStyle {
  state: NodeState;
  label: string;
  meaning: string;
  pattern: Pattern;
  light: string;
  dark: string;
}

const STYLES: Record<NodeState, Omit<StateStyle, "state">> = {
  requested: { label: "Requested", meaning: "NodeClaim created, no instance yet", pattern: "dashed", light: "#7b8794", dark: "#8b98a9" },
  launched: { label: "Launched", meaning: "the instance boots", pattern: "dashed", light: "#3b82c4", dark: "#5aa9e6" },
  registered: { label: "Registered", meaning: "joined the cluster, not ready yet", pattern: "dots", light: "#2c72d4", dark: "#6ba4ff" },
  ready: { label: "Ready", meaning: "runs pods", pattern: "none", light: "#1f9d78", dark: "#35b98f" },
  cordoned: { label: "Cordoned", meaning: "accepts no new pods", pattern: "lines", light: "#b7860b", dark: "#d9a92e" },
  draining: { label: "Draining", meaning: "its pods move to other nodes", pattern: "hatch", light: "#d2691e", dark: "#ee8f4d" },
  interrupted: { label: "Interrupted", meaning: "EC2 takes the instance back", pattern: "cross", light: "#cc3344", dark: "#f2616f" },
  blocked: { label: "Blocked", meaning: "runs pods; disruption is blocked", pattern: "lock", light: "#7457c2", dark: "#a68cf0" },
  gone: { label: "Gone", meaning: "terminated", pattern: "none", light: "#a7b0ba", dark: "#4a5462" },
  lost: { label: "Lost", meaning: "not seen any more; may still exist", pattern: "unknown", light: "#6b7280", dark: "#9ca3af" },
};
export const STATE_STYLES: StateStyle[] = NODE_STATES.map((state) => ({ state, ...STYLES[state] }));
export const PENDING_COLOR = { light: "#d98e04", dark: "#f0b441" };

/** Colors of series, which people with color vision deficiencies can tell apart. */
export const SERIES_COLORS: Record<Theme, string[]> = {
  light: ["#2c72d4", "#1f9d78", "#d98e04", "#a14bb8", "#cc3344", "#2593a6", "#7a6a53", "#5b6ee1"],
  dark: ["#6ba4ff", "#35b98f", "#f0b441", "#cb86e0", "#f2616f", "#4bc0d3", "#b8a68c", "#93a1ff"],
};
/** Return *color* over *ground* with the opacity *alpha*; both like "#rrggbb". */
export function blend(color: string, ground: string, alpha: number): string {
  const channel = (text: string, at: number) => parseInt(text.slice(at, at + 2), 16);
  const mix = (at: number) => Math.round(channel(color, at) * alpha + channel(ground, at) * (1 - alpha));
  return `#${[1, 3, 5].map((at) => mix(at).toString(16).padStart(2, "0")).join("")}`;
}

export interface Surface {
  page: string;
  group: string;
  groupLine: string;
  tile: string;
  text: string;
  muted: string;
  onColor: string;
  select: string;
}
export const SURFACES: Record<Theme, Surface> = {
  light: {
    page: "#ffffff",
    group: "#f4f6f9",
    groupLine: "#e2e7ee",
    tile: "#ffffff",
    text: "#1b2430",
    muted: "#566272",
    onColor: "#ffffff",
    select: "#0b4fd6",
  },
  dark: {
    page: "#12171f",
    group: "#181f2a",
    groupLine: "#263041",
    tile: "#0f141b",
    text: "#e6ebf2",
    muted: "#9aa7b8",
    onColor: "#0c1016",
    select: "#8fb8ff",
  },
};
