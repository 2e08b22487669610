/** The nodes of the map as a table. */
import { useState } from "preact/hooks";
import { STATE_STYLES } from "../map/palette";
import { isPresent } from "../state/fleet_state";
import { formatCpu, formatDuration, formatMemory, formatUsdPerHour } from "../text/units";
import { usePage, useTime } from "./context";
import { useNodeFilter } from "./node_filter";
import { StateSwatch } from "./swatch";

const COLUMNS = ["Node", "State", "NodePool", "Instance type", "Capacity type", "Zone", "CPU", "Memory", "Pods", "Price", "Age"] as const;
type Column = (typeof COLUMNS)[number];
const MOST_ROWS = 200;

export function NodeTable() {
  const { fleet, state, select } = usePage();
  const t = useTime(2);
  const isLeftOut = useNodeFilter();
  const [order, setOrder] = useState<{ column: Column; sign: 1 | -1 }>({ column: "Node", sign: 1 });
  const [most, setMost] = useState(MOST_ROWS);
  state.seek(t);
  const { nodes } = fleet.document;
  const values: Record<Column, (node: number) => string | number> = {
    Node: (node) => fleet.nodeName(node),
    State: (node) => state.nodeStates[node],
    NodePool: (node) => fleet.poolName(node),
    "Instance type": (node) => fleet.text(nodes.instanceType[node]),
    "Capacity type": (node) => fleet.text(nodes.capacityType[node]),
    Zone: (node) => fleet.text(nodes.zone[node]),
    CPU: (node) => state.usedCpuMilli[node] / nodes.cpuMilli[node],
    Memory: (node) => state.usedMemoryMiB[node] / nodes.memoryMiB[node],
    Pods: (node) => state.usedPods[node],
    Price: (node) => nodes.price[node] ?? -1,
    Age: (node) => t - nodes.start[node],
  };
  const rows = Array.from({ length: fleet.nodeCount }, (_, node) => node)
    .filter((node) => isPresent(state.nodeStates[node]) && !isLeftOut?.(node))
    .map((node) => ({ node, key: values[order.column](node), name: fleet.nodeName(node) }))
    .sort((a, b) => order.sign * (a.key < b.key ? -1 : a.key > b.key ? 1 : 0) || (a.name < b.name ? -1 : 1));
  const sort = (column: Column) => setOrder({ column, sign: order.column === column && order.sign === 1 ? -1 : 1 });
  return (
    <div class="table-view" tabIndex={0} role="region" aria-label="Nodes">
      <table>
        <thead>
          <tr>
            {COLUMNS.map((column) => (
              <th key={column} scope="col" aria-sort={order.column === column ? (order.sign === 1 ? "ascending" : "descending") : undefined}>
                <button type="button" onClick={() => sort(column)}>
                  {column}
                  <span aria-hidden="true">{order.column === column ? (order.sign === 1 ? " ▲" : " ▼") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map(({ node, name }) => (
            <tr key={node}>
              <th scope="row">
                <button type="button" class="link" onClick={() => select(fleet.link("node", node))}>
                  {name}
                </button>
              </th>
              <td>
                <StateSwatch state={state.nodeStates[node]} /> {STATE_STYLES[state.nodeStates[node]].label}
              </td>
              <td>{fleet.poolName(node)}</td>
              <td>{fleet.text(nodes.instanceType[node])}</td>
              <td>{fleet.text(nodes.capacityType[node])}</td>
              <td>{fleet.text(nodes.zone[node])}</td>
              <td class="n">
                {formatCpu(state.usedCpuMilli[node])} / {formatCpu(nodes.cpuMilli[node])}
              </td>
              <td class="n">
                {formatMemory(state.usedMemoryMiB[node])} / {formatMemory(nodes.memoryMiB[node])}
              </td>
              <td class="n">
                {state.usedPods[node]} / {nodes.podCapacity[node]}
              </td>
              <td class="n">{formatUsdPerHour(nodes.price[node])}</td>
              <td class="n">{formatDuration(t - nodes.start[node])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="nothing">No nodes at this time.</p>}
      {rows.length > most && (
        <button type="button" onClick={() => setMost(most + 1000)}>
          Show {rows.length - most} more
        </button>
      )}
    </div>
  );
}
