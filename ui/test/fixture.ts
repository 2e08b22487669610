/** A fleet of two nodes and three pods. Times are seconds after the start. */
import { Fleet } from "../src/document/fleet";
import { FORMAT, FleetDocument, VERSION } from "../src/document/format";

export const START = 1_795_770_000_000;
export const at = (seconds: number) => START + seconds * 1000;

export function buildDocument(): FleetDocument {
  const strings = ["", "node-a", "node-b", "m5.large", "m5", "zone-a", "spot", "on-demand", "shop", "web-1", "web-2", "job-1", "Deployment/web", "Job/job", "Evicted: Underutilized", "zone-b"];
  return {
    format: FORMAT,
    version: VERSION,
    source: { kind: "journal", cluster: "test", title: "Test", generatedAt: at(100), live: false },
    start: at(0),
    end: at(100),
    strings,
    nodePools: [{ name: "default", weight: 0, limits: null, summary: "" }],
    nodes: {
      name: [1, 2], claim: [null, null], pool: [0, -1], instanceType: [3, 3], family: [4, 4], zone: [5, 15], capacityType: [6, 7], arch: [0, 0],
      cpuMilli: [2000, 4000], memoryMiB: [4096, 8192], podCapacity: [10, 20], price: [0.1, null], start: [at(-50), at(10)], end: [at(80), null], why: [null, null],
    },
    nodeStates: { t: [at(-50), at(-20), at(10), at(12), at(30), at(35), at(60)], node: [0, 0, 1, 1, 1, 1, 0], state: [0, 3, 0, 1, 2, 3, 5] },
    pods: {
      namespace: [8, 8, 8], name: [9, 10, 11], workload: [12, 12, 13], cpuMilli: [500, 500, 1000], memoryMiB: [512, 512, 1024],
      start: [at(-40), at(5), at(5)], end: [null, null, at(90)], priority: [0, 0, 0],
    },
    podPlaces: { t: [at(-10), at(5), at(40), at(41), at(62), at(65)], pod: [0, 1, 1, 2, 0, 0], node: [0, -1, 1, 1, -1, 1], reason: [null, null, null, null, 14, null] },
    decisions: [
      { t: at(10), id: "cycle-1", function: "provision", kind: "launch", title: "launches node-b", lines: ["cheapest"], nodes: [1], pods: [1, 2], savesUsdPerHour: null, replay: null },
      { t: at(60), id: "cycle-1", function: "disrupt", kind: "consolidate", title: "removes node-a", lines: [], nodes: [0], pods: [], savesUsdPerHour: 0.1, replay: "joiner replay 1" },
    ],
    markers: [],
    why: [],
    series: [],
    totals: { costUsd: 1, savedUsd: null, comparedWith: null, evictionsByReason: {} },
  };
}
export const buildFleet = () => new Fleet(buildDocument());
