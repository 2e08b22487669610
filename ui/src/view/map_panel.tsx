/** The fleet map with its settings, its legend, and a table with the same content. */
import { useState } from "preact/hooks";
import { FILLINGS, GROUPINGS, SIZINGS } from "../map/grouping";
import { GONE, NODE_STATES } from "../document/format";
import { PENDING_COLOR, STATE_STYLES } from "../map/palette";
import { Caption } from "./caption";
import { usePage, useTime } from "./context";
import { FleetMap } from "./fleet_map";
import { NodeTable } from "./node_table";
import { StateSwatch } from "./swatch";

const LABELS = {
  nodepool: "NodePool",
  zone: "Zone",
  capacity: "Capacity type",
  family: "Instance family",
  vcpu: "vCPU",
  price: "Price",
  cpu: "CPU requests",
  memory: "Memory requests",
  count: "Pod count",
};

export function MapPanel() {
  const { map, setMap, search, setSearch } = usePage();
  const [isTable, setIsTable] = useState(false);
  return (
    <section class="map-panel" aria-label="Fleet">
      <div class="toolbar">
        <Choice label="Group by" options={GROUPINGS} value={map.grouping} choose={(grouping) => setMap({ ...map, grouping })} />
        <Choice label="Tile size" options={SIZINGS} value={map.sizing} choose={(sizing) => setMap({ ...map, sizing })} />
        <Choice label="Filled by" options={FILLINGS} value={map.filling} choose={(filling) => setMap({ ...map, filling })} />
        <label class="find">
          <span class="hidden">Find nodes, pods and workloads</span>
          <input id="search" type="search" placeholder="Find a node or pod" value={search} onInput={(event) => setSearch(event.currentTarget.value.toLowerCase())} />
        </label>
        <button type="button" class="switch" aria-pressed={isTable} onClick={() => setIsTable(!isTable)}>
          Table
        </button>
      </div>
      {isTable ? <NodeTable /> : <FleetMap />}
      <Legend />
      <Caption />
    </section>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  options: readonly T[];
  value: T;
  choose: (value: T) => void;
}
function Choice<T extends string>({ label, options, value, choose }: ChoiceProps<T>) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(event) => choose(event.currentTarget.value as T)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {LABELS[option as keyof typeof LABELS]}
          </option>
        ))}
      </select>
    </label>
  );
}

function Legend() {
  const { state, theme, shownState, setShownState } = usePage();
  const t = useTime(6);
  state.seek(t);
  const { nodesByState, pending } = state.summary();
  return (
    <div class="legend" role="group" aria-label="Node states; choose one to highlight its nodes">
      {NODE_STATES.map((name, index) =>
        index === GONE ? null : (
          <button
            type="button"
            key={name}
            class={nodesByState[index] ? "" : "empty"}
            aria-pressed={shownState === index}
            title={`${STATE_STYLES[index].label}: ${STATE_STYLES[index].meaning}`}
            onClick={() => setShownState(shownState === index ? null : index)}
          >
            <StateSwatch state={index} /> {STATE_STYLES[index].label} {nodesByState[index] > 0 && <b>{nodesByState[index]}</b>}
          </button>
        ),
      )}
      <span class="key" title="A pod without a node">
        <span class="dot" style={{ background: PENDING_COLOR[theme] }} aria-hidden="true" /> Pending pod <b>{pending}</b>
      </span>
    </div>
  );
}
