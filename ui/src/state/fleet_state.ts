/** The fleet at one time: the state of each node, the place of each pod, and sums. */
import type { Fleet } from "../document/fleet";
import { GONE, LOST, PENDING } from "../document/format";
import { ColumnReplay } from "./column_replay";

/** The value of nodes and pods that do not exist yet. */
export const ABSENT = -3;

export interface Summary {
  nodes: number;
  nodesByState: number[];
  running: number;
  pending: number;
  usdPerHour: number;
  /** Nodes whose price is unknown, which `usdPerHour` does not contain. */
  unpriced: number;
  requestedCpuMilli: number;
  allocatableCpuMilli: number;
  requestedMemoryMiB: number;
  allocatableMemoryMiB: number;
}

/** Whether a node in *state* is shown; a lost node is, because nobody knows that it is gone. */
export function isPresent(state: number): boolean {
  return state >= 0 && state !== GONE;
}
/** Whether EC2 bills a node in *state*: from the launch until it is gone. */
export function isBilled(state: number): boolean {
  return state >= 1 && state !== GONE;
}
/** Whether a node in *state* has capacity for pods: from its registration until it is gone or lost. */
export function isRegistered(state: number): boolean {
  return state >= 2 && state < GONE;
}

export class FleetState {
  t = NaN;
  readonly nodeStates: Int32Array;
  readonly nodeSince: Float64Array;
  readonly podNodes: Int32Array;
  readonly podSince: Float64Array;
  readonly usedCpuMilli: Float64Array;
  readonly usedMemoryMiB: Float64Array;
  readonly usedPods: Int32Array;
  private readonly nodeReplay: ColumnReplay;
  private readonly podReplay: ColumnReplay;

  constructor(readonly fleet: Fleet) {
    this.nodeReplay = new ColumnReplay(fleet.nodeEvents, fleet.nodeCount, ABSENT);
    this.podReplay = new ColumnReplay(fleet.podEvents, fleet.podCount, ABSENT);
    this.nodeStates = this.nodeReplay.values;
    this.nodeSince = this.nodeReplay.since;
    this.podNodes = this.podReplay.values;
    this.podSince = this.podReplay.since;
    this.usedCpuMilli = new Float64Array(fleet.nodeCount);
    this.usedMemoryMiB = new Float64Array(fleet.nodeCount);
    this.usedPods = new Int32Array(fleet.nodeCount);
    this.seek(fleet.start);
  }

  seek(t: number): void {
    if (t === this.t) return;
    this.t = t;
    this.nodeReplay.seek(t);
    this.podReplay.seek(t);
    this.sumRequests();
  }

  private sumRequests(): void {
    const { cpuMilli, memoryMiB } = this.fleet.document.pods;
    this.usedCpuMilli.fill(0);
    this.usedMemoryMiB.fill(0);
    this.usedPods.fill(0);
    for (let pod = 0; pod < this.podNodes.length; pod++) {
      const node = this.podNodes[pod];
      if (node < 0) continue;
      this.usedCpuMilli[node] += cpuMilli[pod];
      this.usedMemoryMiB[node] += memoryMiB[pod];
      this.usedPods[node]++;
    }
  }

  pendingPods(): number[] {
    const pods: number[] = [];
    for (let pod = 0; pod < this.podNodes.length; pod++) if (this.podNodes[pod] === PENDING) pods.push(pod);
    return pods;
  }
  podsOf(node: number): number[] {
    const pods: number[] = [];
    for (let pod = 0; pod < this.podNodes.length; pod++) if (this.podNodes[pod] === node) pods.push(pod);
    return pods;
  }

  summary(): Summary {
    const { nodes } = this.fleet.document;
    const sums: Summary = {
      nodes: 0,
      nodesByState: new Array<number>(LOST + 1).fill(0),
      running: 0,
      pending: 0,
      usdPerHour: 0,
      unpriced: 0,
      requestedCpuMilli: 0,
      allocatableCpuMilli: 0,
      requestedMemoryMiB: 0,
      allocatableMemoryMiB: 0,
    };
    for (let node = 0; node < this.nodeStates.length; node++) {
      const state = this.nodeStates[node];
      if (!isPresent(state)) continue;
      sums.nodes++;
      sums.nodesByState[state]++;
      sums.requestedCpuMilli += this.usedCpuMilli[node];
      sums.requestedMemoryMiB += this.usedMemoryMiB[node];
      if (isBilled(state)) {
        const price = nodes.price[node];
        if (price == null) sums.unpriced++;
        else sums.usdPerHour += price;
      }
      if (isRegistered(state)) {
        sums.allocatableCpuMilli += nodes.cpuMilli[node];
        sums.allocatableMemoryMiB += nodes.memoryMiB[node];
      }
    }
    for (let pod = 0; pod < this.podNodes.length; pod++) {
      if (this.podNodes[pod] === PENDING) sums.pending++;
      else if (this.podNodes[pod] >= 0) sums.running++;
    }
    return sums;
  }
}
