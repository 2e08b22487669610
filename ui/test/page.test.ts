import assert from "node:assert/strict";
import { test } from "node:test";
import { alignLines, stackValues, valueAt } from "../src/charts/align";
import { buildCharts } from "../src/charts/specs";
import { FORMAT, readDocument } from "../src/document/format";
import { parseEvent } from "../src/server";
import { deriveTables } from "../src/state/derived";
import { repeats, withoutNumber } from "../src/view/caption";
import { decisionMatches } from "../src/view/decision_list";
import { findMarkerTime } from "../src/view/keys";
import { DEFAULT_MAP, readLink, writeLink } from "../src/view/link";
import { consolidationLines, parsePrices } from "../src/view/what_if";
import { Fleet } from "../src/document/fleet";
import { at, buildDocument, buildFleet } from "./fixture";

test("documents of another format or version are refused with the fix", () => {
  assert.throws(() => readDocument({ format: FORMAT, version: 2 }), /version 2.*reads version 1/s);
  assert.throws(() => readDocument({ format: "other" }), /"other".*To fix/s);
  assert.throws(() => readDocument([]), /format/);
  assert.throws(() => readDocument({ format: FORMAT, version: 1 }), /"strings"/);
  assert.equal(readDocument({ ...buildDocument(), future: 1 }).strings.length, 16);
});

test("objects are found by name, and decisions of one cycle have names of their own", () => {
  const fleet = buildFleet();
  assert.equal(fleet.find({ kind: "node", name: "node-b" }), 1);
  assert.equal(fleet.find({ kind: "pod", name: "shop/web-2" }), 1);
  assert.equal(fleet.find({ kind: "pod", name: "web-2" }), 1);
  assert.equal(fleet.find({ kind: "pod", name: "other/web-2" }), -1);
  assert.deepEqual(fleet.decisionNames, ["cycle-1", "cycle-1#2"]);
  for (const index of [0, 1]) assert.equal(fleet.find(fleet.link("decision", index)), index);
  assert.equal(fleet.workloadName(0), "web");
});

test("links keep time, object and map", () => {
  const link = { t: at(61), selection: { kind: "pod" as const, name: "shop/web-1 &=#?" }, map: { ...DEFAULT_MAP, grouping: "zone" as const } };
  assert.deepEqual(readLink(writeLink(link)), link);
  assert.deepEqual(readLink("#group=nonsense&t=never"), { t: null, selection: null, map: DEFAULT_MAP });
});

test("stacks add up, and steps hold their value", () => {
  const line = (t: number[], v: (number | null)[]) => ({ label: "x", t, v, isStep: true, isStacked: true, isDashed: false });
  const lines = [line([0, 10], [1, 2]), line([5], [4])];
  const aligned = alignLines(lines, 20);
  assert.deepEqual(aligned.t, [0, 5, 10, 20]);
  assert.deepEqual(stackValues(aligned, [true, true]), [[1, 1, 2, 2], [1, 5, 6, 6]]);
  assert.deepEqual([-1, 0, 9, 10, 99].map((t) => valueAt(lines[0], t)), [null, 1, 1, 2, 2]);
  assert.equal(valueAt({ ...lines[0], isStep: false }, 6), 2, "of points, the nearest");
});

test("charts show recorded series, and derive the others", () => {
  const value = buildDocument();
  const ids = (fleet: Fleet) => buildCharts(fleet, deriveTables(fleet)).map((chart) => chart.id);
  assert.deepEqual(ids(buildFleet()), ["pods", "nodes", "cost", "cpu", "memory", "launches", "wait", "evictions"]);
  const series = { stack: null, t: [at(1)], v: [3], step: false };
  value.series = [
    { id: "wait.p50", title: "p50", unit: "s", ...series },
    { id: "greedy", title: "greedy plan", unit: "USD/h", ...series },
    { id: "queue", title: "Queue", unit: "messages", ...series },
  ];
  const fleet = new Fleet(value);
  const charts = buildCharts(fleet, deriveTables(fleet));
  assert.equal(charts.find((chart) => chart.id === "wait")?.title, "Time from pending to running");
  assert.deepEqual(charts.find((chart) => chart.id === "cost")?.lines.map((l) => l.isDashed), [false, true], "lines that are always zero are left out");
  assert.ok(charts.some((chart) => chart.title === "Queue"));
});

test("decisions are filtered by kind and text", () => {
  const [launch] = buildDocument().decisions;
  assert.ok(decisionMatches(launch, "", "cheapest") && decisionMatches(launch, "launch", "node-b"));
  assert.ok(!decisionMatches(launch, "drift", "") && !decisionMatches(launch, "", "node-a"));
});

test("keys find the next and the last marker", () => {
  assert.deepEqual([findMarkerTime([10, 20], 10, 1), findMarkerTime([10, 20], 10, -1), findMarkerTime([10, 20], 15, -1), findMarkerTime([], 1, 1)], [20, null, 10, null]);
});

test("titles of acts lose their number", () => {
  assert.deepEqual([withoutNumber("3. 20 pods"), withoutNumber("20 pods")], ["20 pods", "20 pods"]);
});

test("prices of what-if are read line by line", () => {
  assert.deepEqual(parsePrices("m5.large/spot 0.08\n\nc5.large: $1.5\n"), { "m5.large/spot": 0.08, "c5.large": 1.5 });
  assert.throws(() => parsePrices("m5.large cheap"), /"m5.large cheap" is not a price/);
  assert.deepEqual(consolidationLines({ lines: ["a"] }), ["a"]);
  assert.deepEqual(consolidationLines({ savesUsdPerHour: 1 }), ["savesUsdPerHour: 1"]);
});

test("server-sent events have a name and data", () => {
  assert.deepEqual(parseEvent("event: fleet\ndata: {\ndata: }"), { name: "fleet", data: "{\n}" });
  assert.deepEqual(parseEvent(": comment"), { name: "message", data: "" });
});

test("the subtitle leaves out a reason that repeats the title", () => {
  assert.ok(repeats("Node a launched: m5.large spot in us-east-1c, $0.0400/h", "m5.large, spot, in us-east-1c, $0.0400/h"));
  assert.ok(!repeats("Node a launched: m5.large spot", "cheapest of 3 instance types"));
});
