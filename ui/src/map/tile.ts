/** Draw the tile of a node with its pods. */
import { fontOf } from "../text/font";
import { formatUsdPerHour } from "../text/units";
import { layOutCells } from "./cells";
import type { Box } from "./layout";
import { STATE_STYLES, SURFACES, blend } from "./palette";
import { drawPattern } from "./patterns";
import { PodsByNode, Scene, nodeCapacity, nodeUsage, podWeight } from "./scene";

type Context = CanvasRenderingContext2D;

const TEXT_WIDTH = 62;
const PRICE_WIDTH = 128;
const TEXT_HEADER = 20;
const TALL_HEADER = 35;
const TALL = 84;
const MIN_CELLS_WIDTH = 34;

/** Where the pods were drawn, and how strong: `shades` are parts of 1. */
export interface PodPlaces {
  byNode: PodsByNode;
  podX: Float32Array;
  podY: Float32Array;
  shades: Float32Array;
}

export function tileBox(scene: Scene, node: number): Box {
  const [x, y, width, height] = scene.layout.tiles.subarray(4 * node, 4 * node + 4);
  return { x: x + scene.originX, y: y + scene.originY, width, height };
}

export function paintNode(context: Context, scene: Scene, places: PodPlaces, node: number): void {
  const box = tileBox(scene, node);
  if (box.width < MIN_CELLS_WIDTH) paintSmallNode(context, scene, places, node, box);
  else paintLargeNode(context, scene, places, node, box);
}

function paintLargeNode(context: Context, scene: Scene, places: PodPlaces, node: number, box: Box): void {
  const { theme } = scene;
  const { x, y, width, height } = box;
  const style = STATE_STYLES[scene.state.nodeStates[node]];
  const color = style[theme];
  const strength = scene.isDimmed?.(node) ? 0.18 : 1;
  const isEarly = style.pattern === "dashed";
  const radius = width > 40 ? 5 : 2;
  context.fillStyle = SURFACES[theme].tile;
  context.globalAlpha = 1;
  fillRounded(context, box, radius);
  context.fillStyle = color;
  context.globalAlpha = strength * (isEarly ? 0.1 : 0.16);
  fillRounded(context, box, radius);
  const header = width < TEXT_WIDTH || height < 46 ? 0 : height >= TALL ? TALL_HEADER : TEXT_HEADER;
  const area = { x: x + 3, y: y + 3 + header, width: width - 6, height: height - 6 - header };
  const cells = paintPods(context, scene, places, node, area, color, strength);
  context.globalAlpha = strength;
  drawPattern(context, style.pattern, area.x, area.y, area.width, area.height, SURFACES[theme].text);
  context.globalAlpha = strength;
  paintPodNames(context, scene, places, node, cells);
  context.strokeStyle = color;
  context.lineWidth = width > 40 ? 1.5 : 1;
  if (isEarly) context.setLineDash(width > 20 ? [5, 4] : [2, 2]);
  context.beginPath();
  context.roundRect(x + 0.75, y + 0.75, width - 1.5, height - 1.5, radius);
  context.stroke();
  if (isEarly) context.setLineDash([]);
  if (header) paintHeader(context, scene, node, box);
}

function paintPods(context: Context, scene: Scene, places: PodPlaces, node: number, area: Box, color: string, strength: number): Float32Array {
  const { filling } = scene;
  const { fleet } = scene.state;
  const first = places.byNode.offsets[node];
  const last = places.byNode.offsets[node + 1];
  context.fillStyle = color;
  const weights: number[] = [];
  for (let i = first; i < last; i++) weights.push(podWeight(fleet, places.byNode.pods[i], filling));
  const boxes = layOutCells(weights, nodeCapacity(fleet, node, filling), area.width, area.height);
  for (let i = first; i < last; i++) {
    const pod = places.byNode.pods[i];
    const at = 4 * (i - first);
    const gap = boxes[at + 2] > 5 && boxes[at + 3] > 5 ? 1.5 : boxes[at + 2] > 2.5 ? 0.75 : 0;
    places.podX[pod] = area.x + boxes[at] + boxes[at + 2] / 2;
    places.podY[pod] = area.y + boxes[at + 1] + boxes[at + 3] / 2;
    context.globalAlpha = places.shades[pod] * strength;
    context.fillRect(area.x + boxes[at], area.y + boxes[at + 1], boxes[at + 2] - gap, boxes[at + 3] - gap);
  }
  return boxes;
}

/** Write the workloads of the pods into the cells that are large enough. */
function paintPodNames(context: Context, scene: Scene, places: PodPlaces, node: number, cells: Float32Array): void {
  const { fleet } = scene.state;
  const first = places.byNode.offsets[node];
  context.font = fontOf(11);
  context.fillStyle = SURFACES[scene.theme].onColor;
  for (let at = 0; at < cells.length; at += 4) {
    if (cells[at + 2] < 34 || cells[at + 3] < 18) continue;
    const pod = places.byNode.pods[first + at / 4];
    const name = fitText(context, fleet.workloadName(pod), cells[at + 2] - 8);
    context.fillText(name, places.podX[pod] - context.measureText(name).width / 2, places.podY[pod]);
  }
}

/** A node without cells: a frame that is filled to its usage. Rectangles only, for thousands of nodes. */
function paintSmallNode(context: Context, scene: Scene, places: PodPlaces, node: number, box: Box): void {
  const { state, theme, filling } = scene;
  const surface = SURFACES[theme];
  const style = STATE_STYLES[state.nodeStates[node]];
  const { byNode, podX, podY } = places;
  context.globalAlpha = scene.isDimmed?.(node) ? 0.2 : 1;
  paintFrame(context, box, style[theme], blend(style[theme], surface.tile, style.pattern === "dashed" ? 0.1 : 0.16));
  const part = Math.min(1, nodeUsage(state, node, filling) / Math.max(1, nodeCapacity(state.fleet, node, filling)));
  const height = Math.round((box.height - 2) * part);
  context.fillStyle = style[theme];
  context.globalAlpha *= 0.8;
  context.fillRect(box.x + 1, box.y + box.height - 1 - height, box.width - 2, height);
  drawPattern(context, style.pattern, box.x + 1, box.y + 1, box.width - 2, box.height - 2, surface.text);
  for (let i = byNode.offsets[node]; i < byNode.offsets[node + 1]; i++) {
    podX[byNode.pods[i]] = box.x + box.width / 2;
    podY[byNode.pods[i]] = box.y + box.height / 2;
  }
}

function paintHeader(context: Context, scene: Scene, node: number, box: Box): void {
  const { fleet } = scene.state;
  const { nodes } = fleet.document;
  const surface = SURFACES[scene.theme];
  context.font = fontOf(11);
  context.fillStyle = surface.muted;
  let taken = 0;
  if (box.width >= PRICE_WIDTH && nodes.price[node] != null) {
    const price = formatUsdPerHour(nodes.price[node]);
    taken = context.measureText(price).width + 14;
    context.fillText(price, box.x + box.width - taken + 7, box.y + 12);
  }
  if (box.height >= TALL) {
    const place = [nodes.capacityType[node], nodes.zone[node]].map((index) => fleet.text(index)).filter(Boolean).join(" · ");
    context.fillText(fitText(context, place, box.width - 10), box.x + 6, box.y + 27);
  }
  context.font = fontOf(11.5, 600);
  context.fillStyle = surface.text;
  context.fillText(fitText(context, fleet.text(nodes.instanceType[node]), box.width - taken - 10), box.x + 6, box.y + 12);
}

/** Fill a box in *color* and its inside in *inner*: a frame of one pixel. */
export function paintFrame(context: Context, box: Box, color: string, inner: string): void {
  context.fillStyle = color;
  context.fillRect(box.x, box.y, box.width, box.height);
  const alpha = context.globalAlpha;
  context.globalAlpha = 1;
  context.fillStyle = inner;
  context.fillRect(box.x + 1, box.y + 1, box.width - 2, box.height - 2);
  context.globalAlpha = alpha;
}

function fillRounded(context: Context, box: Box, radius: number): void {
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, radius);
  context.fill();
}

/** Cut *text* at the end so that it is at most *width* wide. */
export function fitText(context: Context, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = Math.min(text.length, Math.floor(width / 5));
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}
