/** The subtitle of the film: the act, and the last decision. */
import { countUntil } from "../state/column_replay";
import { formatClock } from "../text/times";
import { usePage, useTime } from "./context";

export function Caption() {
  const { fleet, select, zone } = usePage();
  const t = useTime(6);
  const { markers, decisions } = fleet.document;
  const acts = markers.filter((marker) => marker.kind === "act");
  const act = countUntil(acts.map((marker) => marker.t), t) - 1;
  const index = countUntil(decisions.map((decision) => decision.t), t) - 1;
  const decision = decisions[index];
  return (
    <div class="caption">
      {acts.length > 0 && (
        <p class="act">
          <b>{act < 0 ? "Before the first act" : `${act + 1} of ${acts.length}`}</b> {act >= 0 && acts[act].title}
        </p>
      )}
      <p class="latest">
        {decision ? (
          <>
            <time>{formatClock(decision.t, zone)}</time>
            <button type="button" class="link" onClick={() => select({ kind: "decision", name: decision.id })}>
              {decision.title}
            </button>
          </>
        ) : (
          "No decisions yet. Press Play (space) to start."
        )}
      </p>
    </div>
  );
}
