import { formatUsdPerHour } from "../text/units";
import { usePage } from "./context";
import { labelOf } from "./decision_list";
import { Command } from "./command";
import { Facts, Lines, Link, LongList, Moment, Section } from "./parts";
import type { ComponentChildren } from "preact";

export function DecisionDetails({ index }: { index: number }) {
  const { fleet } = usePage();
  const decision = fleet.document.decisions[index];
  const rows: [string, ComponentChildren][] = [
    ["Time", <Moment t={decision.t} />],
    ["Kind", labelOf(decision)],
  ];
  if (decision.id) rows.push(["Function", decision.function], ["Cycle", decision.id]);
  if (decision.savesUsdPerHour) rows.push(["Saves", formatUsdPerHour(decision.savesUsdPerHour)]);
  return (
    <>
      <Facts rows={rows} />
      {decision.lines.length > 0 && (
        <Section title="Reasons">
          <Lines lines={decision.lines} />
        </Section>
      )}
      {decision.nodes.length > 0 && (
        <Section title={`Nodes: ${decision.nodes.length}`}>
          <LongList
            noun="nodes"
            rows={decision.nodes.map((node) => (
              <>
                <Link to={fleet.link("node", node)} /> <small>{fleet.text(fleet.document.nodes.instanceType[node])}</small>
              </>
            ))}
          />
        </Section>
      )}
      {decision.pods.length > 0 && (
        <Section title={`Pods: ${decision.pods.length}`}>
          <LongList noun="pods" rows={decision.pods.map((pod) => <Link to={fleet.link("pod", pod)} />)} />
        </Section>
      )}
      {decision.replay && (
        <Section title="Replay this decision">
          <Command text={decision.replay} />
        </Section>
      )}
    </>
  );
}
