/** What the map shows at one time, and the pods of each node. */
import type { Fleet } from "../document/fleet";
import { PENDING } from "../document/format";
import type { FleetState } from "../state/fleet_state";
import type { Filling } from "./grouping";
import type { Box, MapLayout } from "./layout";
import type { Theme } from "./palette";

export interface Scene {
  state: FleetState;
  layout: MapLayout;
  /** Where the map begins, right of or below the pending pods. */
  originX: number;
  originY: number;
  /** The area of pending pods. */
  room: Box;
  theme: Theme;
  filling: Filling;
  /** Nodes that do not match the filter, drawn faint; null without a filter. */
  isDimmed: ((node: number) => boolean) | null;
}

/** Pods by node: those of node i are `pods[offsets[i]]` to `pods[offsets[i + 1] - 1]`. */
export class PodsByNode {
  readonly offsets: Int32Array;
  readonly pods: Int32Array;
  /** A number for the pods of each node, which changes with them. */
  readonly hashes: Int32Array;
  pending: number[] = [];

  constructor(nodeCount: number, podCount: number) {
    this.hashes = new Int32Array(nodeCount);
    this.offsets = new Int32Array(nodeCount + 1);
    this.pods = new Int32Array(podCount);
  }
  update(state: FleetState): void {
    const { podNodes, usedPods } = state;
    const next = new Int32Array(usedPods.length);
    for (let node = 0; node < usedPods.length; node++) {
      next[node] = this.offsets[node];
      this.offsets[node + 1] = this.offsets[node] + usedPods[node];
    }
    this.pending = [];
    this.hashes.fill(17);
    for (let pod = 0; pod < podNodes.length; pod++) {
      const node = podNodes[pod];
      if (node >= 0) {
        this.pods[next[node]++] = pod;
        this.hashes[node] = (Math.imul(this.hashes[node], 31) + pod) | 0;
      }
      else if (node === PENDING) this.pending.push(pod);
    }
  }
}

/** The share of a pod or node for *filling*. */
export function podWeight(fleet: Fleet, pod: number, filling: Filling): number {
  const { pods } = fleet.document;
  return filling === "cpu" ? pods.cpuMilli[pod] : filling === "memory" ? pods.memoryMiB[pod] : 1;
}
export function nodeCapacity(fleet: Fleet, node: number, filling: Filling): number {
  const { nodes } = fleet.document;
  return filling === "cpu" ? nodes.cpuMilli[node] : filling === "memory" ? nodes.memoryMiB[node] : nodes.podCapacity[node];
}
export function nodeUsage(state: FleetState, node: number, filling: Filling): number {
  return filling === "cpu" ? state.usedCpuMilli[node] : filling === "memory" ? state.usedMemoryMiB[node] : state.usedPods[node];
}
