/** Why an object is as it is: what `joiner explain` says about it, and links to related objects. */
import { useEffect, useState } from "preact/hooks";
import type { ObjectKind, ObjectLink } from "../document/fleet";
import type { Explanation } from "../server";
import { usePage, useTime } from "./context";
import { Lines, Link, Section } from "./parts";
import { DecisionDetails } from "./why_decision";
import { NodeDetails } from "./why_node";
import { NodePoolDetails } from "./why_node_pool";
import { PodDetails } from "./why_pod";

const NAMES: Record<ObjectKind, string> = { node: "Node", pod: "Pod", nodepool: "NodePool", decision: "Decision" };

export function Why() {
  const { fleet, state, selection, select } = usePage();
  const t = useTime(4);
  state.seek(t);
  if (!selection) {
    return (
      <div class="why nothing">
        <p>Choose a node, a pod, a NodePool or a decision to see why it is as it is.</p>
        <ul class="rows">
          {fleet.document.nodePools.map((pool) => (
            <li key={pool.name}>
              NodePool <Link to={{ kind: "nodepool", name: pool.name }} />
            </li>
          ))}
        </ul>
      </div>
    );
  }
  const index = fleet.find(selection);
  return (
    <div class="why">
      <div class="head">
        <div>
          <small>{NAMES[selection.kind]}</small>
          <h2>{index >= 0 && selection.kind === "decision" ? fleet.document.decisions[index].title : selection.name}</h2>
        </div>
        <button type="button" class="close" aria-label="Close the details" title="Close (Esc)" onClick={() => select(null)}>
          ✕
        </button>
      </div>
      {index < 0 ? <p>This object is not in the data of this page.</p> : <Details kind={selection.kind} index={index} />}
      <ServerExplanation selection={selection} />
    </div>
  );
}

function Details({ kind, index }: { kind: ObjectKind; index: number }) {
  switch (kind) {
    case "node":
      return <NodeDetails node={index} />;
    case "pod":
      return <PodDetails pod={index} />;
    case "nodepool":
      return <NodePoolDetails pool={index} />;
    case "decision":
      return <DecisionDetails index={index} />;
  }
}

/** What the server explains about the object, if there is a server. */
function ServerExplanation({ selection }: { selection: ObjectLink }) {
  const { server } = usePage();
  const [answer, setAnswer] = useState<Explanation | string | null>(null);
  useEffect(() => {
    if (!server) return undefined;
    let isCurrent = true;
    setAnswer(null);
    server.explain(selection.kind, selection.name).then(
      (explanation) => isCurrent && setAnswer(explanation),
      (error: unknown) => isCurrent && setAnswer(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [server, selection.kind, selection.name]);
  if (!server) return null;
  return (
    <Section title="joiner explain">
      {answer === null ? <p>Asking…</p> : typeof answer === "string" ? <p class="error">{answer}</p> : <Lines lines={answer.lines} />}
      {answer !== null && typeof answer !== "string" && (answer.links ?? []).length > 0 && (
        <ul class="rows">
          {answer.links.map((link) => (
            <li key={`${link.kind} ${link.name}`}>
              {link.kind} <Link to={{ kind: link.kind as ObjectKind, name: link.name }} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
