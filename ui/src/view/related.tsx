import type { Decision } from "../document/format";
import { usePage } from "./context";
import { Link, LongList, Moment, Section } from "./parts";

/** The decisions about an object. */
export function RelatedDecisions({ isRelated }: { isRelated: (decision: Decision) => boolean }) {
  const { fleet } = usePage();
  const decisions = fleet.document.decisions.filter(isRelated);
  if (!decisions.length) return null;
  return (
    <Section title={`Decisions: ${decisions.length}`}>
      <LongList
        noun="decisions"
        rows={decisions.map((decision) => (
          <>
            <Moment t={decision.t} /> <Link to={{ kind: "decision", name: decision.id }}>{decision.title}</Link>
          </>
        ))}
      />
    </Section>
  );
}
