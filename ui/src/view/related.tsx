import type { Decision } from "../document/format";
import { usePage } from "./context";
import { Link, LongList, Moment, Section } from "./parts";

/** The decisions about an object. */
export function RelatedDecisions({ isRelated }: { isRelated: (decision: Decision) => boolean }) {
  const { fleet } = usePage();
  const decisions = fleet.document.decisions.map((decision, index) => ({ decision, index })).filter(({ decision }) => isRelated(decision));
  if (!decisions.length) return null;
  return (
    <Section title={`Decisions: ${decisions.length}`}>
      <LongList
        noun="decisions"
        rows={decisions.map(({ decision, index }) => (
          <>
            <Moment t={decision.t} /> <Link to={fleet.link("decision", index)}>{decision.title}</Link>
          </>
        ))}
      />
    </Section>
  );
}
