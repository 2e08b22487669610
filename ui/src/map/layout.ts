/** Where groups, nodes and pods are on the map, in CSS pixels. */
import type { Group } from "./grouping";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface GroupBox extends Box {
  label: string;
}
export interface MapLayout {
  groups: GroupBox[];
  /** x, y, width and height of node i are at 4 i. */
  tiles: Float32Array;
  /** The number of the group of each node. */
  groupOf: Int32Array;
  width: number;
  height: number;
  /** The width of the smallest tile. */
  unit: number;
}

export const HEADER = 26;
const PADDING = 8;
const GROUP_GAP = 10;
/** Height of a tile as a part of its width. */
const RATIO = 0.78;
const MIN_UNIT = 9;
/** The smallest node of a small fleet is at most so wide: pixels, or a part of the map if that is more. */
const MAX_UNIT = 176;
const MAX_UNIT_PART = 1 / 7;

interface Packed {
  boxes: Box[];
  height: number;
}

/** Place tiles with *sides* (sorted, largest first) in rows of *width*; smaller tiles stand on each other in a row. */
function packShelves(sides: number[], unit: number, width: number): Packed {
  const gap = unit > 40 ? 6 : unit > 16 ? 3 : 2;
  const boxes: Box[] = [];
  let [x, y, row] = [0, 0, 0];
  /** The column that smaller tiles are stacked in: its left edge, width, and the next free place in it. */
  let column = { x: 0, width: 0, nextX: 0, nextY: 0, line: 0 };
  for (const side of sides) {
    const tileWidth = Math.min(side * unit, width);
    const tileHeight = side * unit * RATIO;
    if (column.nextX > column.x && column.nextX + tileWidth > column.x + column.width + 0.01) {
      column = { ...column, nextX: column.x, nextY: column.nextY + column.line + gap, line: 0 };
    }
    const fits = column.nextX + tileWidth <= column.x + column.width + 0.01 && column.nextY + tileHeight <= y + row + 0.01;
    if (!fits) {
      if (x > 0 && x + tileWidth > width + 0.01) [x, y, row] = [0, y + row + gap, 0];
      column = { x, width: tileWidth, nextX: x, nextY: y, line: 0 };
      x += tileWidth + gap;
      row = Math.max(row, tileHeight);
    }
    boxes.push({ x: column.nextX, y: column.nextY, width: tileWidth, height: tileHeight });
    column.nextX += tileWidth + gap;
    column.line = Math.max(column.line, tileHeight);
  }
  return { boxes, height: y + row };
}

/** Return the width that makes a group about 1.7 times as wide as high. */
function wishWidth(sides: number[], unit: number, width: number): number {
  const gap = unit > 40 ? 6 : 3;
  const area = sides.reduce((sum, side) => sum + (side * unit + gap) * (side * unit * RATIO + gap), 0);
  const widest = (sides[0] ?? 1) * unit;
  return Math.min(width, Math.max(widest, Math.sqrt(area * 1.7), 90) + 2 * PADDING);
}

interface Placement {
  groups: GroupBox[];
  boxes: Box[][];
  height: number;
}

function place(groups: Group[], unit: number, width: number): Placement {
  const sides = groups.map((group) => group.slots.map((slot) => slot.side));
  const rows: number[][] = [];
  let used = 0;
  groups.forEach((_, i) => {
    const wish = wishWidth(sides[i], unit, width);
    if (rows.length === 0 || used + wish > width) {
      rows.push([]);
      used = 0;
    }
    rows[rows.length - 1].push(i);
    used += wish + GROUP_GAP;
  });
  const placement: Placement = { groups: [], boxes: [], height: 0 };
  let y = 0;
  for (const row of rows) {
    const wishes = row.map((i) => wishWidth(sides[i], unit, width));
    const spare = (width - GROUP_GAP * (row.length - 1)) / wishes.reduce((a, b) => a + b, 0);
    const widths = wishes.map((wish) => Math.floor(wish * spare));
    const packed = row.map((i, n) => packShelves(sides[i], unit, widths[n] - 2 * PADDING));
    const height = Math.max(...packed.map((p) => p.height), unit * RATIO) + HEADER + PADDING;
    let x = 0;
    row.forEach((i, n) => {
      placement.groups.push({ label: groups[i].label, x, y, width: widths[n], height });
      placement.boxes.push(packed[n].boxes.map((b) => ({ ...b, x: b.x + x + PADDING, y: b.y + y + HEADER })));
      x += widths[n] + GROUP_GAP;
    });
    y += height + GROUP_GAP;
  }
  placement.height = Math.max(0, y - GROUP_GAP);
  return placement;
}

/** Place *groups* in *width* with the largest tiles that fit *height*; the map becomes higher if not even the smallest fit. */
export function layOutMap(groups: Group[], nodeCount: number, width: number, height: number): MapLayout {
  let low = MIN_UNIT;
  let high = Math.min(Math.max(MAX_UNIT, width * MAX_UNIT_PART), width - 2 * PADDING);
  for (let i = 0; i < 12 && high - low > 0.5; i++) {
    const middle = (low + high) / 2;
    if (place(groups, middle, width).height <= height) low = middle;
    else high = middle;
  }
  const unit = Math.max(MIN_UNIT, Math.floor(low * 2) / 2);
  const placement = place(groups, unit, width);
  const tiles = new Float32Array(4 * nodeCount);
  const groupOf = new Int32Array(nodeCount);
  placement.boxes.forEach((boxes, i) => {
    groups[i].slots.forEach((slot, n) => {
      const { x, y, width: w, height: h } = boxes[n];
      for (const node of slot.nodes) {
        tiles.set([Math.round(x), Math.round(y), Math.floor(w), Math.floor(h)], 4 * node);
        groupOf[node] = i;
      }
    });
  });
  return { groups: placement.groups, tiles, groupOf, width, height: placement.height, unit };
}

/** Return the node at x, y of those that *isShown*, or -1. */
export function findNodeAt(layout: MapLayout, x: number, y: number, isShown: (node: number) => boolean): number {
  const { tiles } = layout;
  for (let node = 0; node < tiles.length / 4; node++) {
    const left = tiles[4 * node];
    const top = tiles[4 * node + 1];
    if (x >= left && y >= top && x < left + tiles[4 * node + 2] && y < top + tiles[4 * node + 3] && isShown(node)) return node;
  }
  return -1;
}

/** Return the next shown node from *from* in the direction of an arrow key, or *from*. */
export function findNeighbor(layout: MapLayout, from: number, dx: number, dy: number, isShown: (node: number) => boolean): number {
  const { tiles } = layout;
  const centerX = (node: number) => tiles[4 * node] + tiles[4 * node + 2] / 2;
  const centerY = (node: number) => tiles[4 * node + 1] + tiles[4 * node + 3] / 2;
  let best = from;
  let bestDistance = Infinity;
  for (let node = 0; node < tiles.length / 4; node++) {
    if (node === from || !isShown(node)) continue;
    const x = centerX(node) - centerX(from);
    const y = centerY(node) - centerY(from);
    const along = x * dx + y * dy;
    if (along <= 1) continue;
    const distance = along + 3 * Math.abs(x * dy + y * dx);
    if (distance < bestDistance) [best, bestDistance] = [node, distance];
  }
  return best;
}
