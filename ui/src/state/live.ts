/** The document of a live source while only the time changes: the server then sends the new end, and nothing else. */
import { FleetDocument, READY } from "../document/format";
import { isBilled } from "./fleet_state";

const HOUR_MS = 3_600_000;

/** Return *document* until *end*, with the costs and savings of the time since its end. */
export function extendDocument(document: FleetDocument, end: number): FleetDocument {
  if (end <= document.end) return document;
  const { totals, series } = document;
  const hours = (end - document.end) / HOUR_MS;
  const usdPerHour = sumPricesAtEnd(document);
  const withoutCommands = series.find(({ id }) => id === "usdPerHour.withoutCommands")?.v.at(-1) ?? usdPerHour;
  return {
    ...document,
    end,
    totals: {
      ...totals,
      costUsd: totals.costUsd === null ? null : totals.costUsd + hours * usdPerHour,
      savedUsd: totals.savedUsd === null ? null : totals.savedUsd + hours * (withoutCommands - usdPerHour),
    },
  };
}

function sumPricesAtEnd({ nodes, nodeStates }: FleetDocument): number {
  const states = nodes.end.map((end): number | null => (end === null ? READY : null));
  nodeStates.state.forEach((state, i) => {
    if (states[nodeStates.node[i]] !== null) states[nodeStates.node[i]] = state;
  });
  return states.reduce<number>((sum, state, node) => sum + (state !== null && isBilled(state) ? (nodes.price[node] ?? 0) : 0), 0);
}
