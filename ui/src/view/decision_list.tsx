/** The decisions, with the last one before the time of the page marked. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Decision } from "../document/format";
import { countUntil } from "../state/column_replay";
import { formatClock } from "../text/times";
import { formatUsdPerHour } from "../text/units";
import { usePage, useTime } from "./context";

const WINDOW = 120;
export const KIND_LABELS: Record<string, string> = {
  launch: "Launch",
  terminate: "Termination",
  consolidate: "Consolidation",
  drift: "Drift",
  empty: "Emptiness",
  expire: "Expiration",
  interrupt: "Interruption",
  repair: "Repair",
  evict: "Eviction",
  refuse: "Not possible",
  fault: "Failure",
  deploy: "Deployment",
  other: "Other",
};

/** The kind of a decision as a word; steps of a demo scenario are not decisions of Joiner. */
export function labelOf(decision: Decision): string {
  if (decision.function === "you") return "You";
  if (decision.function === "fault") return "Injected fault";
  return KIND_LABELS[decision.kind] ?? decision.kind;
}

export function decisionMatches(decision: Decision, kind: string, search: string): boolean {
  if (kind && decision.kind !== kind) return false;
  return !search || [decision.title, ...decision.lines].some((text) => text.toLowerCase().includes(search));
}

export function DecisionList() {
  const { fleet, clock, select, zone, search } = usePage();
  const t = useTime(5);
  const [kind, setKind] = useState("");
  const list = useRef<HTMLOListElement>(null);
  const kinds = useMemo(() => [...new Set(fleet.document.decisions.map((decision) => decision.kind))].sort(), [fleet]);
  const decisions = useMemo(
    () => fleet.document.decisions.map((decision, number) => ({ decision, number })).filter(({ decision }) => decisionMatches(decision, kind, search)),
    [fleet, kind, search],
  );
  const times = useMemo(() => decisions.map(({ decision }) => decision.t), [decisions]);
  const current = countUntil(times, t) - 1;
  const first = Math.max(0, Math.min(current - WINDOW / 2, decisions.length - WINDOW));
  useEffect(() => {
    const row = list.current?.querySelector<HTMLElement>("[aria-current]");
    const box = list.current?.closest<HTMLElement>(".content");
    if (row && box && !list.current?.matches(":hover")) box.scrollTop = row.offsetTop - box.clientHeight / 3;
  }, [current, first]);
  return (
    <div class="decisions">
      <div class="filter">
        <label class="choice">
          <span class="hidden">Kind of decision</span>
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="">All decisions ({fleet.document.decisions.length})</option>
            {kinds.map((name) => (
              <option key={name} value={name}>
                {KIND_LABELS[name] ?? name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {decisions.length === 0 && <p class="nothing">No decisions{search || kind ? " match the filter" : " in this span"}.</p>}
      <ol ref={list} start={first + 1}>
        {decisions.slice(first, first + WINDOW).map(({ decision, number }, index) => (
          <li key={number} class={first + index > current ? "future" : ""} aria-current={first + index === current ? "step" : undefined}>
            <button
              type="button"
              onClick={() => {
                clock.pause();
                clock.seek(decision.t);
                select(fleet.link("decision", number));
              }}
            >
              <time>{formatClock(decision.t, zone)}</time>
              <span class={`kind ${decision.function === "you" ? "you" : decision.kind}`}>{labelOf(decision)}</span>
              <span class="text">{decision.title}</span>
              {!!decision.savesUsdPerHour && !decision.title.includes("saves") && <span class="saves">saves {formatUsdPerHour(decision.savesUsdPerHour)}</span>}
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}
