import { ENDED, PENDING } from "../document/format";
import { formatCpu, formatDuration, formatMemory } from "../text/units";
import { usePage } from "./context";
import { Facts, Link, Moment, Section } from "./parts";
import { RelatedDecisions } from "./related";

export function PodDetails({ pod }: { pod: number }) {
  const { fleet, state } = usePage();
  const { pods } = fleet.document;
  const place = state.podNodes[pod];
  const where =
    place >= 0 ? (
      <>
        on <Link to={fleet.link("node", place)} />
      </>
    ) : place === PENDING ? (
      `pending for ${formatDuration(state.t - state.podSince[pod])}`
    ) : place === ENDED ? (
      "ended"
    ) : (
      "not there yet"
    );
  return (
    <>
      <Facts
        rows={[
          ["State", where],
          ["Workload", fleet.workload(pod) || "–"],
          ["CPU request", `${formatCpu(pods.cpuMilli[pod])} vCPU`],
          ["Memory request", formatMemory(pods.memoryMiB[pod])],
          ["Priority", String(pods.priority[pod])],
        ]}
      />
      <Places pod={pod} />
      <RelatedDecisions isRelated={(decision) => decision.pods.includes(pod)} />
    </>
  );
}

function Places({ pod }: { pod: number }) {
  const { fleet, state } = usePage();
  const { t, item, value, reason } = fleet.podEvents;
  const rows: { t: number; node: number; reason: string }[] = [];
  for (let i = 0; i < t.length; i++) if (item[i] === pod) rows.push({ t: t[i], node: value[i], reason: fleet.text(reason[i]) });
  return (
    <Section title="History">
      <ol class="rows history">
        {rows.map((row, index) => (
          <li key={index} class={row.t > state.t ? "future" : ""}>
            <Moment t={row.t} />{" "}
            {row.node >= 0 ? (
              <>
                scheduled to <Link to={fleet.link("node", row.node)} />
              </>
            ) : row.node === PENDING ? (
              "pending"
            ) : (
              "ended"
            )}
            {row.reason && <small> {row.reason}</small>}
            {index > 0 && <small> after {formatDuration(row.t - rows[index - 1].t)}</small>}
          </li>
        ))}
      </ol>
    </Section>
  );
}
