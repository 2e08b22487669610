/** Groups of nodes on the map, and the places of nodes in a group. */
import type { Fleet } from "../document/fleet";

export const GROUPINGS = ["nodepool", "zone", "capacity", "family"] as const;
export type Grouping = (typeof GROUPINGS)[number];
export const SIZINGS = ["vcpu", "price"] as const;
export type Sizing = (typeof SIZINGS)[number];
export const FILLINGS = ["cpu", "memory", "count"] as const;
export type Filling = (typeof FILLINGS)[number];

/** A place on the map. Nodes that don't exist at the same time share a slot, so that no node ever moves. */
export interface Slot {
  /** The length of a side relative to the smallest node. */
  side: number;
  nodes: number[];
}
export interface Group {
  label: string;
  slots: Slot[];
}

/** The largest side of a tile, relative to the smallest. */
const MAX_SIDE = 4;

export function groupKey(fleet: Fleet, node: number, grouping: Grouping): string {
  const { nodes } = fleet.document;
  switch (grouping) {
    case "nodepool":
      return fleet.poolName(node);
    case "zone":
      return fleet.text(nodes.zone[node]) || "no zone";
    case "capacity":
      return fleet.text(nodes.capacityType[node]) || "no capacity type";
    case "family":
      return fleet.text(nodes.family[node]) || "no family";
  }
}

/** Return the side of each node: the root of its share, in steps of a quarter, so that equal nodes look equal. */
export function computeSides(fleet: Fleet, sizing: Sizing): number[] {
  const { cpuMilli, price } = fleet.document.nodes;
  const weights = Array.from({ length: fleet.nodeCount }, (_, node) => (sizing === "vcpu" ? cpuMilli[node] : (price[node] ?? 0)));
  const least = weights.reduce((min, weight) => (weight > 0 ? Math.min(min, weight) : min), Infinity);
  return weights.map((weight) => {
    if (!(weight > 0) || !Number.isFinite(least)) return 1;
    return Math.min(MAX_SIDE, Math.round(Math.sqrt(weight / least) * 4) / 4);
  });
}

/** Return the groups in the order of their names (NodePools: as declared), and a slot for each node. */
export function buildGroups(fleet: Fleet, grouping: Grouping, sizing: Sizing): Group[] {
  const sides = computeSides(fleet, sizing);
  const { start } = fleet.document.nodes;
  const order = Array.from({ length: fleet.nodeCount }, (_, node) => node).sort(
    (a, b) => start[a] - start[b] || compareText(fleet.nodeName(a), fleet.nodeName(b)),
  );
  const slotsByKey = new Map<string, Slot[]>();
  if (grouping === "nodepool") for (const pool of fleet.document.nodePools) slotsByKey.set(pool.name, []);
  const ends = lastSeen(fleet);
  for (const node of order) {
    const key = groupKey(fleet, node, grouping);
    const slots = slotsByKey.get(key) ?? [];
    slotsByKey.set(key, slots);
    addToSlot(slots, node, sides[node], start, ends);
  }
  const groups = [...slotsByKey].map(([label, slots]) => ({ label, slots: slots.sort((a, b) => b.side - a.side) }));
  if (grouping !== "nodepool") groups.sort((a, b) => compareText(a.label, b.label));
  return groups;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The time of the last event of each node that ends; infinite for the others. */
function lastSeen(fleet: Fleet): Float64Array {
  const ends = Float64Array.from(fleet.document.nodes.end, (end) => end ?? Infinity);
  const { t, item } = fleet.nodeEvents;
  for (let i = 0; i < t.length; i++) if (ends[item[i]] < t[i]) ends[item[i]] = t[i];
  return ends;
}

function addToSlot(slots: Slot[], node: number, side: number, start: number[], ends: Float64Array): void {
  for (const slot of slots) {
    if (slot.side === side && ends[slot.nodes[slot.nodes.length - 1]] <= start[node]) {
      slot.nodes.push(node);
      return;
    }
  }
  slots.push({ side, nodes: [node] });
}
