/** The subtitle of the film: the act, and the last decision. */
import { countUntil } from "../state/column_replay";
import { formatClock } from "../text/times";
import { usePage, useTime } from "./context";

/** Return the title of an act without its number: "3. 20 pods" becomes "20 pods". */
export function withoutNumber(title: string): string {
  return title.replace(/^\d+\.\s+/, "");
}

/** Return whether *title* has all words of *line*, as after "Node launched: m5.large spot". */
export function repeats(title: string, line: string): boolean {
  const words = (text: string) => text.toLowerCase().split(/[\s,;:()]+/).filter(Boolean);
  const known = new Set(words(title));
  return words(line).every((word) => known.has(word));
}

export function Caption() {
  const { fleet, select, zone } = usePage();
  const t = useTime(6);
  const { markers, decisions } = fleet.document;
  const acts = markers.filter((marker) => marker.kind === "act");
  const act = countUntil(acts.map((marker) => marker.t), t) - 1;
  const index = countUntil(decisions.map((decision) => decision.t), t) - 1;
  const decision = decisions[index];
  if (acts.length === 0 && decisions.length === 0) return null;
  return (
    <div class="caption">
      {acts.length > 0 && (
        <p class="act">
          {act < 0 ? (
            <b>Before the first act</b>
          ) : (
            <>
              <b>
                {act + 1} of {acts.length}
              </b>{" "}
              <strong>{withoutNumber(acts[act].title)}</strong> {acts[act].text}
            </>
          )}
        </p>
      )}
      <p class="latest">
        {decision ? (
          <>
            <time>{formatClock(decision.t, zone)}</time>
            <button type="button" class="link" onClick={() => select(fleet.link("decision", index))}>
              {decision.title}
            </button>
            {decision.lines.length > 0 && !repeats(decision.title, decision.lines[0]) && <span> {decision.lines[0]}</span>}
          </>
        ) : (
          "No decisions yet. Press Play (space) to start."
        )}
      </p>
    </div>
  );
}
