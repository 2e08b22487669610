/** Deep links: the time, the selected object and the settings of the map in the hash of the address. */
import type { ObjectKind, ObjectLink } from "../document/fleet";
import { FILLINGS, Filling, GROUPINGS, Grouping, SIZINGS, Sizing } from "../map/grouping";

export interface MapSettings {
  grouping: Grouping;
  sizing: Sizing;
  filling: Filling;
}
export interface PageLink {
  t: number | null;
  selection: ObjectLink | null;
  map: MapSettings;
}
const KINDS: ObjectKind[] = ["node", "pod", "nodepool", "decision"];
export const DEFAULT_MAP: MapSettings = { grouping: "nodepool", sizing: "vcpu", filling: "cpu" };

function choose<T extends string>(options: readonly T[], value: string | null, otherwise: T): T {
  return options.find((option) => option === value) ?? otherwise;
}

export function readLink(hash: string): PageLink {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const t = Date.parse(values.get("t") ?? "");
  const kind = KINDS.find((candidate) => values.has(candidate));
  return {
    t: Number.isNaN(t) ? null : t,
    selection: kind ? { kind, name: values.get(kind) ?? "" } : null,
    map: {
      grouping: choose(GROUPINGS, values.get("group"), DEFAULT_MAP.grouping),
      sizing: choose(SIZINGS, values.get("size"), DEFAULT_MAP.sizing),
      filling: choose(FILLINGS, values.get("fill"), DEFAULT_MAP.filling),
    },
  };
}

export function writeLink(link: PageLink): string {
  const values = new URLSearchParams();
  if (link.t !== null) values.set("t", new Date(link.t).toISOString());
  if (link.selection) values.set(link.selection.kind, link.selection.name);
  if (link.map.grouping !== DEFAULT_MAP.grouping) values.set("group", link.map.grouping);
  if (link.map.sizing !== DEFAULT_MAP.sizing) values.set("size", link.map.sizing);
  if (link.map.filling !== DEFAULT_MAP.filling) values.set("fill", link.map.filling);
  return `#${values.toString().replaceAll("%3A", ":").replaceAll("%2F", "/")}`;
}
