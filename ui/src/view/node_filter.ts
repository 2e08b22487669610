/** Which nodes the search and the legend leave out. */
import { useMemo } from "preact/hooks";
import type { Fleet } from "../document/fleet";
import { usePage } from "./context";

export function nodeMatches(fleet: Fleet, node: number, search: string): boolean {
  const { nodes } = fleet.document;
  return [fleet.nodeName(node), fleet.claimName(node), fleet.poolName(node), fleet.text(nodes.instanceType[node]), fleet.text(nodes.zone[node])].some((text) =>
    text.toLowerCase().includes(search),
  );
}
export function podMatches(fleet: Fleet, pod: number, search: string): boolean {
  return fleet.podName(pod).toLowerCase().includes(search) || fleet.workload(pod).toLowerCase().includes(search);
}

/** Return whether a node is drawn faint; null if there is no filter. */
export function useNodeFilter(): ((node: number) => boolean) | null {
  const { fleet, state, search, shownState } = usePage();
  return useMemo(() => {
    if (!search && shownState === null) return null;
    const names = new Uint8Array(fleet.nodeCount);
    const pods: number[] = [];
    if (search) {
      for (let node = 0; node < fleet.nodeCount; node++) names[node] = nodeMatches(fleet, node, search) ? 1 : 0;
      for (let pod = 0; pod < fleet.podCount; pod++) if (podMatches(fleet, pod, search)) pods.push(pod);
    }
    let at = NaN;
    let withPods = new Set<number>();
    return (node: number) => {
      if (state.t !== at) {
        at = state.t;
        withPods = new Set(pods.map((pod) => state.podNodes[pod]));
      }
      if (shownState !== null && state.nodeStates[node] !== shownState) return true;
      return search !== "" && !names[node] && !withPods.has(node);
    };
  }, [fleet, state, search, shownState]);
}
