import assert from "node:assert/strict";
import { test } from "node:test";
import { fitSquares, layOutCells } from "../src/map/cells";
import { FILLINGS, GROUPINGS, Group, SIZINGS, buildGroups, computeSides } from "../src/map/grouping";
import { findNeighbor, findNodeAt, layOutMap } from "../src/map/layout";
import { STATE_STYLES, SURFACES, blend } from "../src/map/palette";
import { NODE_STATES } from "../src/document/format";
import { Fleet } from "../src/document/fleet";
import { at, buildDocument, buildFleet } from "./fixture";

test("groups contain each node once, for every grouping and size", () => {
  const fleet = buildFleet();
  for (const grouping of GROUPINGS) {
    for (const sizing of SIZINGS) {
      const nodes = buildGroups(fleet, grouping, sizing).flatMap((group) => group.slots.flatMap((slot) => slot.nodes));
      assert.deepEqual(nodes.sort(), [0, 1], `${grouping} ${sizing}`);
    }
  }
  assert.deepEqual(buildGroups(fleet, "nodepool", "vcpu").map((group) => group.label), ["default", "no NodePool"]);
  assert.deepEqual(buildGroups(fleet, "capacity", "vcpu").map((group) => group.label), ["on-demand", "spot"]);
  assert.deepEqual([...FILLINGS], ["cpu", "memory", "count"]);
});

test("nodes share a place only if they don't exist at the same time", () => {
  const value = buildDocument();
  value.nodes.pool = [0, 0];
  value.nodes.cpuMilli = [2000, 2000];
  assert.equal(buildGroups(new Fleet(value), "nodepool", "vcpu")[0].slots.length, 2);
  value.nodes.start[1] = at(85);
  value.nodeStates = { t: [at(-50), at(85)], node: [0, 1], state: [3, 3] };
  assert.deepEqual(buildGroups(new Fleet(value), "nodepool", "vcpu")[0].slots.map((slot) => slot.nodes), [[0, 1]]);
});

test("the area of a tile follows its vCPU, and a node without price is small", () => {
  assert.deepEqual(computeSides(buildFleet(), "vcpu"), [1, 1.5]);
  assert.deepEqual(computeSides(buildFleet(), "price"), [1, 1]);
});

function groupsOf(...sizes: number[][]): Group[] {
  let node = 0;
  return sizes.map((sides, i) => ({ label: `group ${i}`, slots: sides.map((side) => ({ side, nodes: [node++] })) }));
}

test("tiles are inside of their group and do not overlap", () => {
  for (const [width, height] of [[1200, 600], [330, 300], [3600, 1800]]) {
    const groups = groupsOf([4, 4, 2, 2, 1, 1, 1, 1], Array.from({ length: 300 }, (_, i) => (i < 50 ? 2 : 1)), [1]);
    const layout = layOutMap(groups, 309, width, height);
    for (let a = 0; a < 309; a++) {
      const [x, y, w, h] = layout.tiles.subarray(4 * a, 4 * a + 4);
      const box = layout.groups[layout.groupOf[a]];
      assert.ok(x >= box.x && y >= box.y && x + w <= box.x + box.width + 1 && y + h <= box.y + box.height + 1, `node ${a} in ${width}`);
      for (let b = 0; b < a; b++) {
        const [bx, by, bw, bh] = layout.tiles.subarray(4 * b, 4 * b + 4);
        assert.ok(x >= bx + bw || bx >= x + w || y >= by + bh || by >= y + h, `${a} and ${b} overlap at ${width}`);
      }
    }
  }
});

test("2,000 nodes fit a screen, and the map grows where the smallest tiles don't fit", () => {
  const groups = groupsOf(new Array(2000).fill(1));
  assert.ok(layOutMap(groups, 2000, 1400, 700).height <= 700);
  assert.ok(layOutMap(groups, 2000, 360, 300).height > 300);
});

test("points and arrow keys find nodes", () => {
  const layout = layOutMap(groupsOf([1, 1, 1, 1]), 4, 400, 100);
  const [x, y] = layout.tiles;
  assert.equal(findNodeAt(layout, x + 2, y + 2, () => true), 0);
  assert.equal(findNodeAt(layout, x + 2, y + 2, () => false), -1);
  assert.equal(findNodeAt(layout, 0, 0, () => true), -1);
  const right = findNeighbor(layout, 0, 1, 0, () => true);
  assert.notEqual(right, 0);
  assert.equal(findNeighbor(layout, right, -1, 0, () => true), 0);
});

test("the cells of pods have the area of their requests and stay inside of the node", () => {
  for (const weights of [[500, 500], [4000, 100, 100, 50], new Array(40).fill(390), [16000]]) {
    const boxes = layOutCells(weights, 16000, 200, 120);
    weights.forEach((weight, i) => {
      const [x, y, w, h] = boxes.subarray(4 * i, 4 * i + 4);
      assert.ok(Math.abs(w * h - (weight / 16000) * 200 * 120) < 1, "area");
      assert.ok(x >= -0.01 && y >= -0.01 && x + w <= 200.01 && y + h <= 120.01, `inside: ${x} ${y} ${w} ${h}`);
    });
  }
  assert.deepEqual([...layOutCells([0], 0, 10, 10)], [0, 0, 0, 0]);
});

test("pending pods fit into their area as long as they are visible", () => {
  for (const count of [0, 1, 100, 3000]) {
    const { pitch, columns } = fitSquares(count, 110, 500, 15);
    assert.ok(pitch === 3 || Math.ceil(count / columns) * pitch <= 500 + pitch);
  }
});

test("each state has its own color, and states differ by pattern where colors are near", () => {
  for (const theme of ["light", "dark"] as const) assert.equal(new Set(STATE_STYLES.map((style) => style[theme])).size, NODE_STATES.length);
  const running = STATE_STYLES.filter((style) => !["ready", "gone", "requested", "launched"].includes(style.state));
  assert.equal(new Set(running.map((style) => style.pattern)).size, running.length);
});

test("texts have a contrast of 4.5 or more", () => {
  const luminance = (color: string) => {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a: string, b: string) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
  for (const surface of Object.values(SURFACES)) {
    for (const text of [surface.text, surface.muted]) {
      for (const ground of [surface.page, surface.group, surface.tile]) assert.ok(contrast(text, ground) >= 4.5, `${text} on ${ground}`);
    }
  }
  assert.equal(blend("#ffffff", "#000000", 0.5), "#808080");
});
