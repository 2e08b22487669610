import assert from "node:assert/strict";
import { test } from "node:test";
import { ColumnReplay, countUntil } from "../src/state/column_replay";
import { deriveTables, evictionReason } from "../src/state/derived";
import { ABSENT, FleetState } from "../src/state/fleet_state";
import { extendDocument } from "../src/state/live";
import { StepRecorder, valuesAt } from "../src/state/step_table";
import { playStep, chooseSpeed } from "../src/state/clock";
import { countByInterval, quantile } from "../src/state/buckets";
import { at, buildDocument, buildFleet } from "./fixture";

test("binary search counts the times until t, including t", () => {
  const times = [1, 3, 3, 7];
  assert.deepEqual([0, 1, 2, 3, 7, 9].map((t) => countUntil(times, t)), [0, 1, 1, 3, 4, 4]);
});

test("seeking in any order gives the values of a replay from the start", () => {
  const count = 500;
  let seed = 7;
  const next = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  const t = Float64Array.from({ length: count }, () => next(1000)).sort();
  const item = Int32Array.from({ length: count }, () => next(9));
  const value = Int32Array.from({ length: count }, () => next(5));
  const replay = new ColumnReplay({ t, item, value, reason: [] }, 9, -3, 16);
  for (let i = 0; i < 300; i++) {
    const time = next(1100);
    replay.seek(time);
    const expected = new Int32Array(9).fill(-3);
    for (let k = 0; k < count && t[k] <= time; k++) expected[item[k]] = value[k];
    assert.deepEqual(replay.values, expected);
  }
});

test("the state at a time has nodes, places and sums", () => {
  const state = new FleetState(buildFleet());
  state.seek(at(0));
  assert.deepEqual([...state.nodeStates], [3, ABSENT]);
  assert.deepEqual([...state.podNodes], [0, ABSENT, ABSENT]);
  state.seek(at(20));
  const launching = state.summary();
  assert.deepEqual([launching.nodes, launching.running, launching.pending, launching.unpriced], [2, 1, 2, 1]);
  assert.equal(launching.allocatableCpuMilli, 2000);
  state.seek(at(70));
  assert.deepEqual([...state.podNodes], [1, 1, 1]);
  assert.equal(state.usedCpuMilli[1], 2000);
  assert.deepEqual(state.podsOf(1), [0, 1, 2]);
  state.seek(at(95));
  assert.deepEqual([...state.nodeStates], [8, 3], "node-a ends at its `end`, though it has no event");
  assert.equal(state.podNodes[2], -2);
});

test("tables derived from events agree with the state at every time", () => {
  const fleet = buildFleet();
  const state = new FleetState(fleet);
  const derived = deriveTables(fleet);
  for (let seconds = 0; seconds <= 100; seconds++) {
    state.seek(at(seconds));
    const now = state.summary();
    assert.deepEqual(valuesAt(derived.pods, at(seconds)), [now.running, now.pending], `pods at ${seconds}`);
    const cost = valuesAt(derived.cost, at(seconds)).reduce<number>((sum, value) => sum + (value ?? 0), 0);
    assert.ok(Math.abs(cost - now.usdPerHour) < 1e-6, `cost at ${seconds}`);
    assert.deepEqual(valuesAt(derived.cpu, at(seconds)), [now.allocatableCpuMilli / 1000, now.requestedCpuMilli / 1000], `CPU at ${seconds}`);
    assert.equal(valuesAt(derived.nodesByPool, at(seconds)).reduce<number>((a, b) => a + (b ?? 0), 0), now.nodes);
  }
  assert.deepEqual(derived.launches, [at(12)]);
  assert.deepEqual(derived.terminations, [at(80)]);
  assert.deepEqual(derived.evictions.labels, ["Underutilized"]);
  assert.deepEqual(derived.placements.map((p) => p.wait), [35_000, 36_000]);
});

test("only reasons of evictions count as evictions", () => {
  assert.equal(evictionReason("Evicted: Drifted"), "Drifted");
  assert.equal(evictionReason("Completed"), null);
});

test("a table with a resolution keeps the last value of each interval", () => {
  const recorder = new StepRecorder(["x"], 0, 10);
  for (let t = 1; t <= 25; t++) recorder.add(t, 0, 1);
  const table = recorder.finish(30);
  assert.deepEqual(table.t, [0, 10, 20, 30]);
  assert.deepEqual(table.columns[0], [0, 10, 20, 25]);
});

test("intervals are round and quantiles are of the nearest rank", () => {
  const counts = countByInterval(["n"], [[61_000, 62_000, 185_000]], 60_000, 240_000, 4);
  assert.equal(counts.interval, 60_000);
  assert.deepEqual(counts.columns, [[2, 0, 1, 0]]);
  assert.deepEqual([0.5, 0.95, 0].map((part) => quantile([1, 2, 3, 4], part)), [2, 4, 1]);
});

test("playback passes quickly over quiet times and never over an event", () => {
  const clock = { t: 500_000, speed: 10, skipsQuiet: true, events: [0, 1_000_000] };
  assert.ok(playStep(clock, 100) > 1000);
  assert.equal(playStep({ ...clock, skipsQuiet: false }, 100), 1000);
  assert.equal(playStep({ ...clock, t: 999_000 }, 100), 1000);
  assert.ok(clock.t + playStep({ ...clock, t: 984_000 }, 100) <= 1_000_000);
  assert.equal(playStep({ ...clock, t: 10_000 }, 100), 1000, "what has just happened stays in sight");
});

test("a span plays in at most the wished time", () => {
  assert.equal(chooseSpeed(40 * 60_000, 90_000), 30);
  assert.equal(chooseSpeed(40 * 60_000, 150_000), 20);
  assert.equal(chooseSpeed(86_400_000, 90_000), 1800);
  assert.equal(chooseSpeed(0, 90_000), 1);
});

test("a document that only gets older costs what its nodes cost at its end", () => {
  const document = buildDocument();
  document.nodes.end[0] = null;
  const later = extendDocument(document, at(100 + 3600));
  assert.equal(later.end, at(3700));
  assert.equal(later.totals.costUsd, 1.1);
  assert.equal(later.totals.savedUsd, null);
  assert.equal(extendDocument(document, at(100)), document);
  const series = [{ id: "usdPerHour.withoutCommands", title: "", unit: "USD/h", stack: null, t: [at(0)], v: [0.3], step: true }];
  const saving = { ...document, series, totals: { ...document.totals, savedUsd: 2 } };
  assert.ok(Math.abs(extendDocument(saving, at(100 + 1800)).totals.savedUsd! - 2.1) < 1e-9);
});
