import assert from "node:assert/strict";
import { test } from "node:test";
import { findTimeTicks, findValueTicks } from "../src/text/ticks";
import { formatClock, formatMoment, formatTick } from "../src/text/times";
import { countOf, formatCpu, formatDuration, formatMemory, formatPercent, formatUsd, formatUsdPerHour, formatValue } from "../src/text/units";
import { at } from "./fixture";

test("numbers have one form with their unit", () => {
  assert.deepEqual([0.0537, 12.3456, 351.554, 0, null].map((usd) => formatUsdPerHour(usd)), ["$0.0537/h", "$12.346/h", "$351.55/h", "$0/h", "price unknown"]);
  assert.deepEqual([0.0957, 3.214, 12345.6, -2].map(formatUsd), ["$0.0957", "$3.21", "$12,346", "-$2.00"]);
  assert.deepEqual([500, 4000, 15890, 1234567].map(formatCpu), ["0.5", "4", "15.9", "1,235"]);
  assert.deepEqual([512, 7680, 204800].map(formatMemory), ["512 MiB", "7.5 GiB", "200 GiB"]);
  assert.deepEqual([8000, 92_000, 46 * 60_000, 192 * 60_000, 52 * 3_600_000].map(formatDuration), ["8s", "1m32s", "46m", "3h12m", "2d4h"]);
  assert.deepEqual([countOf(1, "pod"), countOf(7, "pod")], ["1 pod", "7 pods"]);
  assert.deepEqual([formatPercent(1, 4), formatPercent(1, 0)], ["25%", "–"]);
  assert.deepEqual([formatValue(2, "vCPU"), formatValue(90, "s"), formatValue(null, "pods"), formatValue(1234, "pods")], ["2 vCPU", "1m30s", "unknown", "1,234"]);
});

test("ticks of values are round and contain all values", () => {
  assert.deepEqual(findValueTicks(0, 7, 4, true), [0, 2, 4, 6, 8]);
  assert.deepEqual(findValueTicks(0, 0.37, 4, false), [0, 0.1, 0.2, 0.3, 0.4]);
  assert.deepEqual(findValueTicks(-6, 9, 4, true), [-10, -5, 0, 5, 10]);
  assert.deepEqual(findValueTicks(0, 0, 4, true), [0, 1]);
  for (const max of [0.0003, 1, 3, 99, 101, 123456]) {
    const ticks = findValueTicks(0, max, 4, false);
    assert.ok(ticks[ticks.length - 1] >= max && ticks.length <= 6, String(max));
  }
});

test("ticks of times are round: seconds to days", () => {
  const { step, ticks } = findTimeTicks(at(7), at(2400), 8, "utc");
  assert.equal(step, 300_000);
  assert.deepEqual(ticks.map((t) => formatTick(t, step, "utc")), ["09:05", "09:10", "09:15", "09:20", "09:25", "09:30", "09:35", "09:40"]);
  const days = findTimeTicks(at(0), at(86400 * 7), 8, "utc");
  assert.equal(formatTick(days.ticks[0], days.step, "utc"), "11-28");
});

test("times are in UTC or local", () => {
  assert.equal(formatMoment(at(0), "utc"), "2026-11-27 09:00:00Z");
  const local = new Date(at(0));
  assert.equal(formatClock(at(0), "local").slice(0, 2), String(local.getHours()).padStart(2, "0"));
});
