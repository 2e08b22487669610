/** The fleet document, version 1: what the pages and `joiner ui` show. Times are milliseconds since 1970 in UTC. */

export const FORMAT = "joiner.fleet";
export const VERSION = 1;

/** Values of `nodeStates.state`, in the order of their numbers. */
export const NODE_STATES = [
  "requested",
  "launched",
  "registered",
  "ready",
  "cordoned",
  "draining",
  "interrupted",
  "blocked",
  "gone",
  "lost",
] as const;
export type NodeState = (typeof NODE_STATES)[number];
export const READY = 3;
export const GONE = 8;
export const LOST = 9;
/** Values of `podPlaces.node` that are not a node. */
export const PENDING = -1;
export const ENDED = -2;

export interface Source {
  kind: string;
  cluster: string;
  title: string;
  generatedAt: number;
  live: boolean;
  timeZone?: string;
  /** Remarks about the data, such as what could not be read. */
  notes?: string[];
}
export interface NodePool {
  name: string;
  weight: number;
  limits: Record<string, string> | null;
  summary: string;
}
export interface NodeColumns {
  name: number[];
  claim: (number | null)[];
  pool: number[];
  instanceType: number[];
  family: number[];
  zone: number[];
  capacityType: number[];
  arch: number[];
  cpuMilli: number[];
  memoryMiB: number[];
  podCapacity: number[];
  price: (number | null)[];
  start: number[];
  end: (number | null)[];
  why: (number | null)[];
}
export interface PodColumns {
  namespace: number[];
  name: number[];
  workload: number[];
  cpuMilli: number[];
  memoryMiB: number[];
  start: number[];
  end: (number | null)[];
  priority: number[];
}
export interface Decision {
  t: number;
  id: string;
  function: string;
  kind: string;
  title: string;
  lines: string[];
  nodes: number[];
  pods: number[];
  savesUsdPerHour: number | null;
  replay: string | null;
}
export interface Marker {
  t: number;
  kind: string;
  title: string;
  decision: number | null;
  /** A sentence for people who are new to this; may be empty. */
  text?: string;
  end?: number | null;
}
export interface Alternative {
  instanceType: string | number;
  capacityType: string | number;
  zone: string | number;
  price: number | null;
}
export interface Why {
  lines: string[];
  alternatives: Alternative[];
  blockedBy: string[];
}
export interface Series {
  id: string;
  title: string;
  unit: string;
  stack: string | null;
  t: number[];
  v: (number | null)[];
  step: boolean;
}
export interface Totals {
  costUsd: number | null;
  savedUsd: number | null;
  comparedWith: string | null;
  evictionsByReason: Record<string, number>;
}
export interface FleetDocument {
  format: string;
  version: number;
  source: Source;
  start: number;
  end: number;
  strings: string[];
  nodePools: NodePool[];
  nodes: NodeColumns;
  nodeStates: { t: number[]; node: number[]; state: number[] };
  pods: PodColumns;
  podPlaces: { t: number[]; pod: number[]; node: number[]; reason: (number | null)[] };
  decisions: Decision[];
  markers: Marker[];
  why: Why[];
  series: Series[];
  totals: Totals;
}

/** Return *value* as a fleet document. Throws an Error with a text for the user if it is not one of this version. */
export function readDocument(value: unknown): FleetDocument {
  if (typeof value !== "object" || value === null) throw new Error("The data of this page is not a JSON object.");
  const document = value as FleetDocument;
  if (document.format !== FORMAT) {
    throw new Error(`The data of this page has the format "${String(document.format)}". To fix: use data in the format "${FORMAT}".`);
  }
  if (document.version !== VERSION) {
    throw new Error(
      `The data has version ${String(document.version)}, and this page reads version ${VERSION}. ` +
        "To fix: create the page with the version of joiner that wrote the data.",
    );
  }
  for (const name of ["strings", "nodePools", "nodes", "nodeStates", "pods", "podPlaces"] as const) {
    if (typeof document[name] !== "object" || document[name] === null) throw new Error(`The data has no "${name}".`);
  }
  return {
    ...document,
    decisions: document.decisions ?? [],
    markers: document.markers ?? [],
    why: document.why ?? [],
    series: document.series ?? [],
    totals: document.totals ?? { costUsd: null, savedUsd: null, comparedWith: null, evictionsByReason: {} },
  };
}
