import { isBilled, isPresent } from "../state/fleet_state";
import { formatUsdPerHour } from "../text/units";
import { usePage } from "./context";
import { Facts, Link, LongList, Section, State } from "./parts";
import { RelatedDecisions } from "./related";

export function NodePoolDetails({ pool }: { pool: number }) {
  const { fleet, state } = usePage();
  const { nodes, nodePools } = fleet.document;
  const nodePool = nodePools[pool];
  const members: number[] = [];
  let price = 0;
  for (let node = 0; node < fleet.nodeCount; node++) {
    if (nodes.pool[node] !== pool || !isPresent(state.nodeStates[node])) continue;
    members.push(node);
    if (isBilled(state.nodeStates[node])) price += nodes.price[node] ?? 0;
  }
  const limits = Object.entries(nodePool.limits ?? {});
  return (
    <>
      <Facts
        rows={[
          ["Weight", String(nodePool.weight)],
          ["Limits", limits.length ? limits.map(([name, value]) => `${name}: ${value}`).join(", ") : "none"],
          ["Cost at this time", formatUsdPerHour(price)],
        ]}
      />
      {nodePool.summary && (
        <Section title="Disruption">
          <p>{nodePool.summary}</p>
        </Section>
      )}
      <Section title={`Nodes at this time: ${members.length}`}>
        <LongList
          noun="nodes"
          most={20}
          rows={members.map((node) => (
            <>
              <Link to={fleet.link("node", node)} />{" "}
              <small>
                {fleet.text(nodes.instanceType[node])} <State state={state.nodeStates[node]} />
              </small>
            </>
          ))}
        />
      </Section>
      <RelatedDecisions isRelated={(decision) => decision.nodes.some((node) => nodes.pool[node] === pool)} />
    </>
  );
}
