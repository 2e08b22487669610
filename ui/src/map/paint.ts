/** Draw the fleet map on a canvas. */
import { isPresent } from "../state/fleet_state";
import { formatUsdPerHour } from "../text/units";
import { fitSquares } from "./cells";
import type { Box } from "./layout";
import { PENDING_COLOR, STATE_STYLES, SURFACES } from "./palette";
import { drawPattern } from "./patterns";
import { CellCache, PodsByNode, Scene, nodeCapacity, nodeUsage } from "./scene";

type Context = CanvasRenderingContext2D;

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const TEXT_WIDTH = 62;
const PRICE_WIDTH = 128;
const TEXT_HEADER = 20;
const TALL_HEADER = 35;
const TALL = 84;
const MIN_CELLS_WIDTH = 26;

export class MapPainter {
  readonly byNode: PodsByNode;
  /** The center of each pod on the canvas at the last drawing; NaN if not drawn. */
  readonly podX: Float32Array;
  readonly podY: Float32Array;
  private readonly cache = new CellCache();
  private readonly shades: Float32Array;

  constructor(nodeCount: number, podCount: number, workloads: ArrayLike<number>) {
    this.byNode = new PodsByNode(nodeCount, podCount);
    this.podX = new Float32Array(podCount).fill(NaN);
    this.podY = new Float32Array(podCount).fill(NaN);
    this.shades = Float32Array.from(workloads, (workload) => 0.62 + 0.13 * ((workload * 2654435761) % 4));
  }

  paint(context: Context, scene: Scene): void {
    this.byNode.update(scene.state);
    this.podX.fill(NaN);
    this.podY.fill(NaN);
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    this.paintGroups(context, scene);
    this.paintPending(context, scene);
    this.paintFreeSlots(context, scene);
    const { nodeStates } = scene.state;
    for (let node = 0; node < nodeStates.length; node++) if (isPresent(nodeStates[node])) this.paintNode(context, scene, node);
    context.globalAlpha = 1;
  }

  private paintGroups(context: Context, scene: Scene): void {
    const surface = SURFACES[scene.theme];
    context.globalAlpha = 1;
    context.textBaseline = "middle";
    context.lineWidth = 1;
    const counts = this.countByGroup(scene);
    scene.layout.groups.forEach((group, i) => {
      const x = group.x + scene.originX;
      const y = group.y + scene.originY;
      context.fillStyle = surface.group;
      context.strokeStyle = surface.groupLine;
      context.beginPath();
      context.roundRect(x + 0.5, y + 0.5, group.width - 1, group.height - 1, 8);
      context.fill();
      context.stroke();
      context.font = `600 12.5px ${FONT}`;
      context.fillStyle = surface.text;
      const label = fitText(context, group.label, group.width - 70);
      context.fillText(label, x + 10, y + 14);
      const labelWidth = context.measureText(label).width;
      context.font = `12px ${FONT}`;
      context.fillStyle = surface.muted;
      const count = `${counts[i]} node${counts[i] === 1 ? "" : "s"}`;
      if (labelWidth + 90 < group.width) context.fillText(count, x + 18 + labelWidth, y + 14);
    });
  }

  /** Outline the places of nodes that are not there at this time: the fleet had or gets nodes there. */
  private paintFreeSlots(context: Context, scene: Scene): void {
    const { tiles } = scene.layout;
    context.strokeStyle = SURFACES[scene.theme].groupLine;
    context.lineWidth = 1;
    context.globalAlpha = 0.9;
    context.beginPath();
    for (let node = 0; node < tiles.length / 4; node++) {
      if (isPresent(scene.state.nodeStates[node])) continue;
      const [x, y, width, height] = tiles.subarray(4 * node, 4 * node + 4);
      context.roundRect(x + scene.originX + 0.5, y + scene.originY + 0.5, width - 1, height - 1, width > 40 ? 5 : 1);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  private countByGroup(scene: Scene): number[] {
    const counts = new Array<number>(scene.layout.groups.length).fill(0);
    const { tiles, groups } = scene.layout;
    const { nodeStates } = scene.state;
    for (let node = 0; node < nodeStates.length; node++) {
      if (!isPresent(nodeStates[node])) continue;
      const x = tiles[4 * node];
      const y = tiles[4 * node + 1];
      const group = groups.findIndex((g) => x >= g.x && y >= g.y && x < g.x + g.width && y < g.y + g.height);
      if (group >= 0) counts[group]++;
    }
    return counts;
  }

  private paintPending(context: Context, scene: Scene): void {
    const { room, theme } = scene;
    const surface = SURFACES[theme];
    const pending = this.byNode.pending;
    const color = PENDING_COLOR[theme];
    context.globalAlpha = 1;
    context.setLineDash([4, 4]);
    context.strokeStyle = pending.length ? color : surface.groupLine;
    context.beginPath();
    context.roundRect(room.x + 0.5, room.y + 0.5, room.width - 1, room.height - 1, 8);
    context.stroke();
    context.setLineDash([]);
    context.font = `600 12.5px ${FONT}`;
    context.fillStyle = surface.text;
    context.fillText("Pending pods", room.x + 10, room.y + 14);
    context.font = `12px ${FONT}`;
    context.fillStyle = surface.muted;
    const isHigh = room.height > room.width;
    context.fillText(String(pending.length), isHigh ? room.x + 10 : room.x + 114, isHigh ? room.y + 31 : room.y + 14);
    this.paintPendingPods(context, pending, roomForPods(room), color);
  }

  private paintPendingPods(context: Context, pending: number[], area: Box, color: string): void {
    const { pitch, columns } = fitSquares(pending.length, area.width, area.height, 15);
    const side = pitch > 5 ? pitch - 2.5 : pitch - 1;
    context.fillStyle = color;
    pending.forEach((pod, i) => {
      const x = area.x + (i % columns) * pitch;
      const y = area.y + Math.floor(i / columns) * pitch;
      this.podX[pod] = x + side / 2;
      this.podY[pod] = y + side / 2;
      if (y + side > area.y + area.height) return;
      context.globalAlpha = 0.55 + 0.45 * this.shades[pod];
      context.fillRect(x, y, side, side);
    });
    context.globalAlpha = 1;
  }

  private paintNode(context: Context, scene: Scene, node: number): void {
    const { layout, state, theme } = scene;
    const x = layout.tiles[4 * node] + scene.originX;
    const y = layout.tiles[4 * node + 1] + scene.originY;
    const width = layout.tiles[4 * node + 2];
    const height = layout.tiles[4 * node + 3];
    const style = STATE_STYLES[state.nodeStates[node]];
    const color = style[theme];
    const isDimmed = scene.isDimmed?.(node) ?? false;
    const strength = isDimmed ? 0.18 : 1;
    const isEarly = style.pattern === "dashed";
    const radius = width > 40 ? 5 : width > 14 ? 2 : 0;
    context.fillStyle = SURFACES[theme].tile;
    context.globalAlpha = 1;
    fillRounded(context, x, y, width, height, radius);
    context.fillStyle = color;
    context.globalAlpha = strength * (isEarly ? 0.1 : 0.16);
    fillRounded(context, x, y, width, height, radius);
    const header = width < TEXT_WIDTH || height < 46 ? 0 : height >= TALL ? TALL_HEADER : TEXT_HEADER;
    const inset = width > 26 ? 3 : 1;
    const area = { x: x + inset, y: y + inset + header, width: width - 2 * inset, height: height - 2 * inset - header };
    this.paintPods(context, scene, node, area, color, strength);
    context.globalAlpha = strength;
    drawPattern(context, style.pattern, area.x, area.y, area.width, area.height, isEarly ? color : patternColor(scene, width));
    context.globalAlpha = strength;
    context.strokeStyle = color;
    context.lineWidth = width > 40 ? 1.5 : 1;
    if (isEarly) context.setLineDash(width > 20 ? [5, 4] : [2, 2]);
    context.beginPath();
    context.roundRect(x + 0.5, y + 0.5, width - 1, height - 1, radius);
    context.stroke();
    if (isEarly) context.setLineDash([]);
    if (header) this.paintHeader(context, scene, node, { x, y, width, height });
  }

  private paintPods(context: Context, scene: Scene, node: number, area: Box, color: string, strength: number): void {
    const { state, filling } = scene;
    const { fleet } = state;
    const first = this.byNode.offsets[node];
    const last = this.byNode.offsets[node + 1];
    if (first === last) return;
    context.fillStyle = color;
    if (area.width < MIN_CELLS_WIDTH) {
      const part = Math.min(1, nodeUsage(state, node, filling) / Math.max(1, nodeCapacity(fleet, node, filling)));
      context.globalAlpha = 0.82 * strength;
      context.fillRect(area.x, area.y + area.height * (1 - part), area.width, area.height * part);
      for (let i = first; i < last; i++) {
        this.podX[this.byNode.pods[i]] = area.x + area.width / 2;
        this.podY[this.byNode.pods[i]] = area.y + area.height / 2;
      }
      return;
    }
    const boxes = this.cache.find(fleet, this.byNode, node, filling, area.width, area.height);
    for (let i = first; i < last; i++) {
      const pod = this.byNode.pods[i];
      const at = 4 * (i - first);
      const gap = boxes[at + 2] > 5 && boxes[at + 3] > 5 ? 1.5 : boxes[at + 2] > 2.5 ? 0.75 : 0;
      this.podX[pod] = area.x + boxes[at] + boxes[at + 2] / 2;
      this.podY[pod] = area.y + boxes[at + 1] + boxes[at + 3] / 2;
      context.globalAlpha = this.shades[pod] * strength;
      context.fillRect(area.x + boxes[at], area.y + boxes[at + 1], boxes[at + 2] - gap, boxes[at + 3] - gap);
    }
  }

  private paintHeader(context: Context, scene: Scene, node: number, box: Box): void {
    const { fleet } = scene.state;
    const { nodes } = fleet.document;
    const surface = SURFACES[scene.theme];
    context.textBaseline = "middle";
    context.font = `600 11.5px ${FONT}`;
    context.fillStyle = surface.text;
    const isWide = box.width >= PRICE_WIDTH;
    let price = "";
    if (isWide) {
      context.font = `11px ${FONT}`;
      price = nodes.price[node] == null ? "" : formatUsdPerHour(nodes.price[node]);
      context.fillStyle = surface.muted;
      context.fillText(price, box.x + box.width - context.measureText(price).width - 7, box.y + 12);
    }
    const taken = price ? context.measureText(price).width + 14 : 0;
    context.font = `600 11.5px ${FONT}`;
    context.fillStyle = surface.text;
    context.fillText(fitText(context, fleet.text(nodes.instanceType[node]), box.width - taken - 10), box.x + 6, box.y + 12);
    if (box.height < TALL) return;
    context.font = `11px ${FONT}`;
    context.fillStyle = surface.muted;
    const place = `${fleet.text(nodes.capacityType[node])} · ${fleet.text(nodes.zone[node])}`;
    context.fillText(fitText(context, place, box.width - 10), box.x + 6, box.y + 27);
  }
}

/** Where the squares of pending pods are in the area of pending pods. */
export function roomForPods(room: Box): Box {
  const top = room.height > room.width ? 44 : 26;
  return { x: room.x + 10, y: room.y + top, width: room.width - 18, height: room.height - top - 8 };
}

function patternColor(scene: Scene, width: number): string {
  return width < 24 ? SURFACES[scene.theme].onColor : SURFACES[scene.theme].text;
}

function fillRounded(context: Context, x: number, y: number, width: number, height: number, radius: number): void {
  if (radius === 0) {
    context.fillRect(x, y, width, height);
    return;
  }
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
  context.fill();
}

/** Cut *text* at the end so that it is at most *width* wide. */
function fitText(context: Context, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = Math.min(text.length, Math.floor(width / 5));
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}
