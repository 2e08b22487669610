import { isPresent } from "../state/fleet_state";
import { STATE_STYLES } from "../map/palette";
import { countOf, formatCpu, formatDuration, formatMemory, formatUsdPerHour } from "../text/units";
import { usePage } from "./context";
import { Facts, Lines, Link, LongList, Moment, Section, State, Usage } from "./parts";
import { RelatedDecisions } from "./related";

export function NodeDetails({ node }: { node: number }) {
  const { fleet, state } = usePage();
  const { nodes, why } = fleet.document;
  const now = state.nodeStates[node];
  const reasons = nodes.why[node] == null ? null : why[nodes.why[node]!];
  const pods = isPresent(now) ? state.podsOf(node) : [];
  const end = nodes.end[node];
  return (
    <>
      <Facts
        rows={[
          ["State", now === -3 ? "not created yet" : <State state={now} />],
          ["NodePool", <Link to={{ kind: "nodepool", name: fleet.poolName(node) }} />],
          ["Instance type", fleet.text(nodes.instanceType[node])],
          ["Capacity type", fleet.text(nodes.capacityType[node])],
          ["Zone", fleet.text(nodes.zone[node])],
          ["Architecture", fleet.text(nodes.arch[node])],
          ["Price", formatUsdPerHour(nodes.price[node])],
          ["Age", isPresent(now) ? formatDuration(state.t - nodes.start[node]) : end == null ? "–" : `lived ${formatDuration(end - nodes.start[node])}`],
          ["NodeClaim", fleet.claimName(node) || "–"],
        ]}
      />
      <Usage name="CPU" part={state.usedCpuMilli[node]} whole={nodes.cpuMilli[node]} text={`${formatCpu(state.usedCpuMilli[node])} of ${formatCpu(nodes.cpuMilli[node])} vCPU`} />
      <Usage
        name="Memory"
        part={state.usedMemoryMiB[node]}
        whole={nodes.memoryMiB[node]}
        text={`${formatMemory(state.usedMemoryMiB[node])} of ${formatMemory(nodes.memoryMiB[node])}`}
      />
      <Usage name="Pods" part={state.usedPods[node]} whole={nodes.podCapacity[node]} text={`${state.usedPods[node]} of ${nodes.podCapacity[node]}`} />
      <Section title="Why this instance type">
        {reasons?.lines.length ? <Lines lines={reasons.lines} /> : <p>The data has no launch decision for this node.</p>}
        <Alternatives node={node} />
      </Section>
      <Section title="What prevents its removal (last check)">
        {reasons?.blockedBy.length ? <Lines lines={reasons.blockedBy} /> : <p>Nothing is recorded.</p>}
      </Section>
      <Section title={`Pods at this time: ${pods.length}`}>
        {pods.length > 0 && <LongList noun="pods" rows={pods.map((pod) => <PodRow pod={pod} />)} />}
      </Section>
      <History node={node} />
      <RelatedDecisions isRelated={(decision) => decision.nodes.includes(node)} />
    </>
  );
}

function PodRow({ pod }: { pod: number }) {
  const { fleet } = usePage();
  const { pods } = fleet.document;
  return (
    <>
      <Link to={fleet.link("pod", pod)} />{" "}
      <small>
        {formatCpu(pods.cpuMilli[pod])} vCPU, {formatMemory(pods.memoryMiB[pod])}
      </small>
    </>
  );
}

function Alternatives({ node }: { node: number }) {
  const { fleet } = usePage();
  const { nodes, why } = fleet.document;
  const alternatives = nodes.why[node] == null ? [] : (why[nodes.why[node]!]?.alternatives ?? []);
  if (!alternatives.length) return null;
  const price = nodes.price[node];
  return (
    <table class="alternatives">
      <caption>Alternatives, {countOf(alternatives.length, "offering")}</caption>
      <thead>
        <tr>
          <th scope="col">Instance type</th>
          <th scope="col">Capacity</th>
          <th scope="col">Zone</th>
          <th scope="col" class="n">Price</th>
          <th scope="col" class="n">Difference</th>
        </tr>
      </thead>
      <tbody>
        {alternatives.slice(0, 15).map((offer, index) => (
          <tr key={index}>
            <th scope="row">{fleet.indexedText(offer.instanceType)}</th>
            <td>{fleet.indexedText(offer.capacityType)}</td>
            <td>{fleet.indexedText(offer.zone)}</td>
            <td class="n">{formatUsdPerHour(offer.price)}</td>
            <td class="n">{price != null && price > 0 && offer.price != null ? signedPercent(offer.price / price - 1) : "–"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function signedPercent(part: number): string {
  const percent = Math.round(100 * part);
  return `${percent > 0 ? "+" : ""}${percent}%`;
}

function History({ node }: { node: number }) {
  const { fleet, state } = usePage();
  const { t, item, value } = fleet.nodeEvents;
  const events: { t: number; state: number }[] = [];
  for (let i = 0; i < t.length; i++) if (item[i] === node) events.push({ t: t[i], state: value[i] });
  return (
    <Section title="History">
      <ol class="rows history">
        {events.map((event, index) => (
          <li key={index} class={event.t > state.t ? "future" : ""}>
            <Moment t={event.t} /> {STATE_STYLES[event.state]?.label ?? "unknown"}
            {index > 0 && <small> after {formatDuration(event.t - events[index - 1].t)}</small>}
          </li>
        ))}
      </ol>
    </Section>
  );
}
