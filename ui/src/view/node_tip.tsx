/** What a node shows when the pointer is on it. */
import type { Fleet } from "../document/fleet";
import { STATE_STYLES } from "../map/palette";
import type { FleetState } from "../state/fleet_state";
import { countOf, formatCpu, formatDuration, formatMemory, formatUsdPerHour } from "../text/units";
import { usePage, useTime } from "./context";

/** One sentence about a node, for screen readers. */
export function describeNode(fleet: Fleet, state: FleetState, node: number): string {
  const { nodes } = fleet.document;
  const label = STATE_STYLES[state.nodeStates[node]]?.label ?? "gone";
  return (
    `${fleet.nodeName(node)}: ${label}, ${fleet.text(nodes.instanceType[node])}, ${fleet.text(nodes.capacityType[node])}, ` +
    `${fleet.text(nodes.zone[node])}, NodePool ${fleet.poolName(node)}, ${countOf(state.usedPods[node], "pod")}, ` +
    formatUsdPerHour(nodes.price[node])
  );
}

interface Props {
  node: number;
  x: number;
  y: number;
  width: number;
  height: number;
  mapWidth: number;
}

export function NodeTip({ node, x, y, width, height, mapWidth }: Props) {
  const { fleet, state } = usePage();
  const t = useTime(6);
  state.seek(t);
  const { nodes } = fleet.document;
  const style = STATE_STYLES[state.nodeStates[node]];
  if (!style) return null;
  const isRight = x + width + 250 > mapWidth;
  return (
    <div class="tip" style={{ left: `${isRight ? Math.max(0, x - 246) : x + width + 8}px`, top: `${y + Math.min(height, 20)}px` }}>
      <b>{fleet.nodeName(node)}</b>
      <span>
        {fleet.text(nodes.instanceType[node])} · {fleet.text(nodes.capacityType[node])} · {fleet.text(nodes.zone[node])}
      </span>
      <span>
        {style.label} for {formatDuration(t - state.nodeSince[node])} · {formatUsdPerHour(nodes.price[node])}
      </span>
      <span>
        CPU {formatCpu(state.usedCpuMilli[node])} of {formatCpu(nodes.cpuMilli[node])} vCPU
      </span>
      <span>
        Memory {formatMemory(state.usedMemoryMiB[node])} of {formatMemory(nodes.memoryMiB[node])}
      </span>
      <span>
        {countOf(state.usedPods[node], "pod")} of {nodes.podCapacity[node]}
      </span>
    </div>
  );
}
