/** What charts show, derived from the events of the document in one pass. */
import type { Fleet } from "../document/fleet";
import { PENDING } from "../document/format";
import { ABSENT, isBilled, isPresent, isRegistered } from "./fleet_state";
import { StepRecorder, StepTable, withoutEmptyColumns } from "./step_table";

export interface Derived {
  pods: StepTable;
  nodesByPool: StepTable;
  cpu: StepTable;
  memory: StepTable;
  /** $/h by NodePool and capacity type. */
  cost: StepTable;
  evictions: StepTable;
  /** Times of launches and terminations. */
  launches: number[];
  terminations: number[];
  /** When each pod got its first node, and how long it had been pending, in milliseconds. */
  placements: { t: number; wait: number }[];
}

const MOST_POINTS = 3000;
const EVICTED = /^Evicted:\s*/;

/** Return the reason in "Evicted: Underutilized"; null for other texts. */
export function evictionReason(reason: string): string | null {
  return EVICTED.test(reason) ? reason.replace(EVICTED, "") || "unknown reason" : null;
}

export function deriveTables(fleet: Fleet): Derived {
  const events = fleet.podEvents.t.length + fleet.nodeEvents.t.length;
  const resolution = events > MOST_POINTS ? Math.ceil((fleet.end - fleet.start) / MOST_POINTS) : 0;
  const nodes = deriveNodes(fleet, resolution);
  const pods = derivePods(fleet, resolution);
  return {
    ...nodes,
    pods: pods.pods,
    evictions: pods.evictions,
    placements: pods.placements,
    cpu: joinTables(pods.requested, nodes.allocatable, 0),
    memory: joinTables(pods.requested, nodes.allocatable, 1),
  };
}

function deriveNodes(fleet: Fleet, resolution: number) {
  const { nodes, nodePools } = fleet.document;
  const { t, item, value } = fleet.nodeEvents;
  const pools = [...nodePools.map((pool) => pool.name), "no NodePool"];
  const costLabels: string[] = [];
  const costColumn = Array.from({ length: fleet.nodeCount }, (_, node) => {
    const label = `${fleet.poolName(node)}, ${fleet.text(nodes.capacityType[node]) || "unknown"}`;
    if (!costLabels.includes(label)) costLabels.push(label);
    return label;
  });
  costLabels.sort();
  const byPool = new StepRecorder(pools, fleet.start, resolution);
  const cost = new StepRecorder(costLabels, fleet.start, resolution);
  const allocatable = new StepRecorder(["vCPU", "GiB"], fleet.start, resolution);
  const states = new Int32Array(fleet.nodeCount).fill(ABSENT);
  const launches: number[] = [];
  const terminations: number[] = [];
  for (let i = 0; i < t.length; i++) {
    const node = item[i];
    const [before, after, at] = [states[node], value[i], Math.max(t[i], fleet.start)];
    states[node] = after;
    const pool = nodePools[nodes.pool[node]] ? nodes.pool[node] : pools.length - 1;
    byPool.add(at, pool, Number(isPresent(after)) - Number(isPresent(before)));
    const billed = Number(isBilled(after)) - Number(isBilled(before));
    cost.add(at, costLabels.indexOf(costColumn[node]), billed * (nodes.price[node] ?? 0));
    if (billed > 0 && t[i] > fleet.start) launches.push(t[i]);
    if (billed < 0) terminations.push(t[i]);
    const registered = Number(isRegistered(after)) - Number(isRegistered(before));
    allocatable.add(at, 0, (registered * nodes.cpuMilli[node]) / 1000);
    allocatable.add(at, 1, (registered * nodes.memoryMiB[node]) / 1024);
  }
  return {
    nodesByPool: withoutEmptyColumns(byPool.finish(fleet.end)),
    cost: withoutEmptyColumns(cost.finish(fleet.end)),
    allocatable: allocatable.finish(fleet.end),
    launches,
    terminations,
  };
}

function derivePods(fleet: Fleet, resolution: number) {
  const { cpuMilli, memoryMiB } = fleet.document.pods;
  const { t, item, value, reason } = fleet.podEvents;
  const pods = new StepRecorder(["Running", "Pending"], fleet.start, resolution);
  const requested = new StepRecorder(["vCPU", "GiB"], fleet.start, resolution);
  const reasons = [...new Set(reason.map((r) => evictionReason(fleet.text(r))).filter((r) => r !== null))].sort();
  const evictions = new StepRecorder(reasons, fleet.start, resolution);
  const places = new Int32Array(fleet.podCount).fill(ABSENT);
  const placements: Derived["placements"] = [];
  const hadNode = new Uint8Array(fleet.podCount);
  for (let i = 0; i < t.length; i++) {
    const pod = item[i];
    const [before, after, at] = [places[pod], value[i], Math.max(t[i], fleet.start)];
    places[pod] = after;
    const running = Number(after >= 0) - Number(before >= 0);
    pods.add(at, 0, running);
    pods.add(at, 1, Number(after === PENDING) - Number(before === PENDING));
    requested.add(at, 0, (running * cpuMilli[pod]) / 1000);
    requested.add(at, 1, (running * memoryMiB[pod]) / 1024);
    const evicted = evictionReason(fleet.text(reason[i]));
    if (evicted !== null) evictions.add(at, reasons.indexOf(evicted), 1);
    if (after >= 0 && !hadNode[pod]) {
      hadNode[pod] = 1;
      const start = fleet.document.pods.start[pod];
      if (start >= fleet.start) placements.push({ t: t[i], wait: t[i] - start });
    }
  }
  return {
    pods: pods.finish(fleet.end),
    requested: requested.finish(fleet.end),
    evictions: evictions.finish(fleet.end),
    placements,
  };
}

/** Join one column of two tables on one time axis, as "Requested" and "Allocatable". */
function joinTables(requested: StepTable, allocatable: StepTable, column: number): StepTable {
  const t = [...new Set([...requested.t, ...allocatable.t])].sort((a, b) => a - b);
  const spread = (table: StepTable) => {
    let i = 0;
    return t.map((at) => {
      while (i + 1 < table.t.length && table.t[i + 1] <= at) i++;
      return table.columns[column][i];
    });
  };
  return { t, labels: ["Allocatable", "Requested by pods"], columns: [spread(allocatable), spread(requested)] };
}
