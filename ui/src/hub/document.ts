/** The document of `joiner hub`, and what of it needs attention. `null` is unknown. */

export interface NextStep {
  purpose: string;
  command: string;
}
export interface HubCluster {
  name: string;
  /** Why the cluster could not be read; then all values are missing. */
  error: string | null;
  remarks: string[];
  nextSteps: NextStep[];
  lastEntryAt?: string;
  silent?: boolean;
  fleetAt?: string | null;
  nodes?: number | null;
  usdPerHour?: number | null;
  nodePools?: { name: string; nodes: number; usdPerHour: number }[] | null;
  dayUsd?: number | null;
  monthUsd?: number | null;
  billedUntil?: string | null;
  pendingPods?: number | null;
  pauses?: string[] | null;
  driftedNodes?: number | null;
  kubernetesVersion?: string | null;
  code?: string | null;
  messages?: string[];
}
export interface HubDocument {
  at: string;
  readIntervalSeconds: number;
  totals: {
    nodes: number | null;
    usdPerHour: number | null;
    dayUsd: number | null;
    monthUsd: number | null;
    pendingPods: number | null;
    driftedNodes: number | null;
    missing: { cluster: string; values: string[] }[];
  };
  clusters: HubCluster[];
}

/** States of a cluster, the most urgent one first. The symbol and the label say the same as the color. */
export const STATES = {
  unseen: { symbol: "✕", label: "could not be read", tone: "red" },
  silent: { symbol: "!", label: "no recent entries", tone: "red" },
  incomplete: { symbol: "?", label: "partly read", tone: "amber" },
  pending: { symbol: "…", label: "pods pending", tone: "amber" },
  paused: { symbol: "‖", label: "paused", tone: "amber" },
  drifted: { symbol: "≠", label: "nodes drifted", tone: "amber" },
  ok: { symbol: "✓", label: "running", tone: "green" },
} as const;
export type ClusterState = keyof typeof STATES;

export function clusterState(cluster: HubCluster): ClusterState {
  if (cluster.error !== null) return "unseen";
  if (cluster.silent) return "silent";
  if (cluster.messages?.length) return "incomplete";
  if (cluster.pendingPods) return "pending";
  if (cluster.pauses?.length) return "paused";
  return cluster.driftedNodes ? "drifted" : "ok";
}

/** The version of Joiner that most clusters run; null if it is unknown, or if several are as frequent. */
export function commonCode(clusters: HubCluster[]): string | null {
  const counts = new Map<string, number>();
  for (const { code } of clusters) if (code) counts.set(code, (counts.get(code) ?? 0) + 1);
  const [first, second] = [...counts].sort((a, b) => b[1] - a[1]);
  return first && first[1] !== second?.[1] ? first[0] : null;
}

export const COLUMNS = ["Cluster", "State", "Nodes", "Price", "Today", "This month", "Pending", "Pauses", "Drifted", "Kubernetes", "Joiner", "Last entry"] as const;
export type Column = (typeof COLUMNS)[number];

const ORDER = Object.keys(STATES) as ClusterState[];
const KEYS: Record<Column, (cluster: HubCluster) => string | number | null | undefined> = {
  Cluster: (cluster) => cluster.name,
  State: (cluster) => ORDER.indexOf(clusterState(cluster)),
  Nodes: (cluster) => cluster.nodes,
  Price: (cluster) => cluster.usdPerHour,
  Today: (cluster) => cluster.dayUsd,
  "This month": (cluster) => cluster.monthUsd,
  Pending: (cluster) => cluster.pendingPods,
  Pauses: (cluster) => cluster.pauses?.length,
  Drifted: (cluster) => cluster.driftedNodes,
  Kubernetes: (cluster) => cluster.kubernetesVersion,
  Joiner: (cluster) => cluster.code,
  "Last entry": (cluster) => cluster.lastEntryAt,
};

/** The clusters in the order of *column*; those with an unknown value are last, in both directions. */
export function sortClusters(clusters: HubCluster[], column: Column, sign: 1 | -1): HubCluster[] {
  const key = KEYS[column];
  return [...clusters].sort((a, b) => {
    const [left, right] = [key(a) ?? null, key(b) ?? null];
    if (left === null || right === null) return Number(left === null) - Number(right === null) || (a.name < b.name ? -1 : 1);
    return sign * compare(left, right) || (a.name < b.name ? -1 : 1);
  });
}
function compare(left: string | number, right: string | number): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right), "en", { numeric: true });
}

/** The clusters whose name, version or state contains all words. */
export function filterClusters(clusters: HubCluster[], text: string, needsAttention: boolean): HubCluster[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return clusters.filter((cluster) => {
    const state = clusterState(cluster);
    const searched = [cluster.name, STATES[state].label, cluster.kubernetesVersion, cluster.code, cluster.error].join(" ").toLowerCase();
    return (!needsAttention || state !== "ok") && words.every((word) => searched.includes(word));
  });
}

/** Why the totals are incomplete, "" if they are not. */
export function missingText({ totals, clusters }: HubDocument): string {
  const unseen = new Set(clusters.filter((cluster) => cluster.error !== null).map((cluster) => cluster.name));
  const parts = totals.missing.filter(({ cluster }) => !unseen.has(cluster)).map(({ cluster, values }) => `${cluster} (${values.join(", ")})`);
  const missing = [...[...unseen].map((name) => `${name} (could not be read)`), ...parts];
  return missing.length ? `Not in the totals: ${missing.join("; ")}` : "";
}
