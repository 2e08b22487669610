/** Keys of the whole page. Inputs keep their own keys. */
import { useEffect } from "preact/hooks";
import { countUntil } from "../state/column_replay";
import type { PageContext } from "./context";

/** Return the time of the next marker after (direction 1) or the last before (-1) *t*; null without one. */
export function findMarkerTime(times: number[], t: number, direction: 1 | -1): number | null {
  const index = direction > 0 ? countUntil(times, t) : countUntil(times, t - 1) - 1;
  return times[index] ?? null;
}

export function useKeys(page: PageContext): void {
  const { clock, fleet, select } = page;
  useEffect(() => {
    const times = fleet.document.markers.map((marker) => marker.t).sort((a, b) => a - b);
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target.matches("input:not([type=range]), textarea, select")) return;
      if (event.key === " " && !target.matches("button, a, summary, [role=tab]")) {
        event.preventDefault();
        clock.toggle();
      } else if (event.key === "[" || event.key === "]") {
        clock.pause();
        const t = findMarkerTime(times, clock.t, event.key === "]" ? 1 : -1);
        if (t !== null) clock.seek(t);
      } else if (event.key === "Escape") {
        select(null);
      } else if (event.key === "/") {
        event.preventDefault();
        document.getElementById("search")?.focus();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [clock, fleet]);
}
