/** A fleet document with complete events and indexes by name. */
import { ENDED, FleetDocument, GONE, PENDING, READY } from "./format";

/** Changes of items (nodes or pods), sorted by time. */
export interface Events {
  t: Float64Array;
  item: Int32Array;
  value: Int32Array;
  reason: (number | null)[];
}
export type ObjectKind = "node" | "pod" | "nodepool" | "decision";
export interface ObjectLink {
  kind: ObjectKind;
  name: string;
}

export class Fleet {
  readonly nodeEvents: Events;
  readonly podEvents: Events;
  readonly nodeCount: number;
  readonly podCount: number;
  /** A name of each decision that no other has: its cycle, with a number if the cycle has several. */
  readonly decisionNames: string[];
  private readonly nodesByName = new Map<string, number>();
  private readonly podsByName = new Map<string, number>();
  private readonly decisionsById = new Map<string, number>();

  constructor(readonly document: FleetDocument) {
    this.nodeCount = document.nodes.name.length;
    this.podCount = document.pods.name.length;
    this.nodeEvents = completeNodeEvents(document);
    this.podEvents = completePodEvents(document);
    for (let node = 0; node < this.nodeCount; node++) {
      this.nodesByName.set(this.nodeName(node), node);
      const claim = this.claimName(node);
      if (claim && !this.nodesByName.has(claim)) this.nodesByName.set(claim, node);
    }
    for (let pod = 0; pod < this.podCount; pod++) this.podsByName.set(this.podName(pod), pod);
    this.decisionNames = document.decisions.map((decision, index) => {
      const name = decision.id === "" || this.decisionsById.has(decision.id) ? `${decision.id}#${index + 1}` : decision.id;
      this.decisionsById.set(name, index);
      return name;
    });
  }

  get start(): number {
    return this.document.start;
  }
  /** The end of the span; at least a second after its start, so that the span can be drawn. */
  get end(): number {
    return Math.max(this.document.end, this.document.start + 1000);
  }
  /** Whether the document shows one moment, as the state of files or of a cluster, and no span. */
  get isMoment(): boolean {
    return this.document.end <= this.document.start;
  }
  text(index: number | null | undefined): string {
    return index == null ? "" : (this.document.strings[index] ?? "");
  }
  nodeName(node: number): string {
    return this.text(this.document.nodes.name[node]);
  }
  claimName(node: number): string {
    return this.text(this.document.nodes.claim[node]);
  }
  poolName(node: number): string {
    return this.document.nodePools[this.document.nodes.pool[node]]?.name ?? "no NodePool";
  }
  /** The name of a pod with its namespace: `namespace/name`. */
  podName(pod: number): string {
    return `${this.text(this.document.pods.namespace[pod])}/${this.text(this.document.pods.name[pod])}`;
  }
  workload(pod: number): string {
    return this.text(this.document.pods.workload[pod]);
  }
  /** The name of the workload of a pod without its kind: `web` of `Deployment/web`; of a pod without workload its own. */
  workloadName(pod: number): string {
    return this.workload(pod).split("/").pop() || this.text(this.document.pods.name[pod]);
  }
  /** A text of the document that is either an index into `strings` or the text itself. */
  indexedText(value: string | number | null): string {
    return typeof value === "number" ? this.text(value) : (value ?? "");
  }

  /** Return the index of the object that *link* names, or -1. */
  find(link: ObjectLink): number {
    switch (link.kind) {
      case "node":
        return this.nodesByName.get(link.name) ?? -1;
      case "pod":
        return this.podsByName.get(link.name) ?? this.findPodWithoutNamespace(link.name);
      case "nodepool":
        return this.document.nodePools.findIndex((pool) => pool.name === link.name);
      case "decision":
        return this.decisionsById.get(link.name) ?? -1;
    }
  }
  link(kind: ObjectKind, index: number): ObjectLink {
    const names = {
      node: () => this.nodeName(index),
      pod: () => this.podName(index),
      nodepool: () => this.document.nodePools[index].name,
      decision: () => this.decisionNames[index],
    };
    return { kind, name: names[kind]() };
  }
  private findPodWithoutNamespace(name: string): number {
    return name.includes("/") ? -1 : this.document.pods.name.findIndex((index) => this.text(index) === name);
  }
}

type Row = [t: number, item: number, value: number, reason: number | null];

function packEvents(rows: Row[]): Events {
  rows.sort((a, b) => a[0] - b[0]);
  return {
    t: Float64Array.from(rows, (row) => row[0]),
    item: Int32Array.from(rows, (row) => row[1]),
    value: Int32Array.from(rows, (row) => row[2]),
    reason: rows.map((row) => row[3]),
  };
}

/** Add the events that the times of the nodes imply: a node without events is ready, and ends at its `end`. */
function completeNodeEvents(document: FleetDocument): Events {
  const { nodes, nodeStates } = document;
  const rows: Row[] = nodeStates.t.map((t, i) => [t, nodeStates.node[i], nodeStates.state[i], null]);
  const hasEvents = new Uint8Array(nodes.name.length);
  const isGone = new Uint8Array(nodes.name.length);
  for (const [, node, state] of rows) {
    hasEvents[node] = 1;
    if (state === GONE) isGone[node] = 1;
  }
  for (let node = 0; node < nodes.name.length; node++) {
    if (!hasEvents[node]) rows.push([nodes.start[node], node, READY, null]);
    const end = nodes.end[node];
    if (end !== null && end !== undefined && !isGone[node]) rows.push([end, node, GONE, null]);
  }
  return packEvents(rows);
}

/** Add the events that the times of the pods imply: a pod is pending from its `start`, and ends at its `end`. */
function completePodEvents(document: FleetDocument): Events {
  const { pods, podPlaces } = document;
  const places: Row[] = podPlaces.t.map((t, i) => [t, podPlaces.pod[i], podPlaces.node[i], podPlaces.reason[i] ?? null]);
  const first = new Float64Array(pods.name.length).fill(Infinity);
  const hasEnded = new Uint8Array(pods.name.length);
  for (const [t, pod, node] of places) {
    first[pod] = Math.min(first[pod], t);
    hasEnded[pod] = node === ENDED ? 1 : 0;
  }
  const starts: Row[] = [];
  const ends: Row[] = [];
  for (let pod = 0; pod < pods.name.length; pod++) {
    if (pods.start[pod] < first[pod]) starts.push([pods.start[pod], pod, PENDING, null]);
    const end = pods.end[pod];
    if (end !== null && end !== undefined && !hasEnded[pod]) ends.push([end, pod, ENDED, null]);
  }
  return packEvents([...starts, ...places, ...ends]);
}
