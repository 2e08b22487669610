/** Draw the fleet map on a canvas. */
import { isPresent } from "../state/fleet_state";
import { fontOf } from "../text/font";
import { countOf } from "../text/units";
import { fitSquares } from "./cells";
import { Box, GroupBox, HEADER } from "./layout";
import { PENDING_COLOR, SURFACES } from "./palette";
import { PodsByNode, Scene } from "./scene";
import { PodPlaces, fitText, paintNode, tileBox } from "./tile";

type Context = CanvasRenderingContext2D;

const MIN_OUTLINE_WIDTH = 40;

/** Draws the map. After the first drawing of a scene, only the nodes that changed are drawn again. */
export class MapPainter implements PodPlaces {
  readonly byNode: PodsByNode;
  /** The center of each pod on the canvas at its last drawing; NaN before. */
  readonly podX: Float32Array;
  readonly podY: Float32Array;
  readonly shades: Float32Array;
  private readonly drawn: Int32Array;
  private drawnCounts: number[] = [];
  private scene: Scene | null = null;

  constructor(nodeCount: number, podCount: number, workloads: ArrayLike<number>) {
    this.byNode = new PodsByNode(nodeCount, podCount);
    this.podX = new Float32Array(podCount).fill(NaN);
    this.podY = new Float32Array(podCount).fill(NaN);
    this.shades = Float32Array.from(workloads, (workload) => 0.62 + 0.12 * ((workload * 7) % 4));
    this.drawn = new Int32Array(nodeCount);
  }

  paint(context: Context, scene: Scene): void {
    this.byNode.update(scene.state);
    const isNew = scene !== this.scene;
    this.scene = scene;
    context.globalAlpha = 1;
    context.textBaseline = "middle";
    if (isNew) {
      context.clearRect(0, 0, context.canvas.width, context.canvas.height);
      for (const group of scene.layout.groups) this.paintGroup(context, scene, group);
      this.drawnCounts = [];
    }
    this.paintCounts(context, scene);
    this.paintPending(context, scene);
    const changed = this.findChanged(scene, isNew);
    this.clearSlots(context, scene, changed);
    for (const node of changed) if (isPresent(scene.state.nodeStates[node])) paintNode(context, scene, this, node);
    context.globalAlpha = 1;
  }

  /** Return the nodes that look different than at their last drawing. */
  private findChanged(scene: Scene, isNew: boolean): number[] {
    const { nodeStates } = scene.state;
    const changed: number[] = [];
    for (let node = 0; node < nodeStates.length; node++) {
      const isDimmed = scene.isDimmed?.(node) ? 1 : 0;
      const look = isPresent(nodeStates[node]) ? ((Math.imul(this.byNode.hashes[node], 64) + nodeStates[node] * 2 + isDimmed) << 1) | 1 : 0;
      if (isNew || look !== this.drawn[node]) changed.push(node);
      this.drawn[node] = look;
    }
    return changed;
  }

  private paintGroup(context: Context, scene: Scene, group: GroupBox): void {
    const surface = SURFACES[scene.theme];
    const [x, y] = [group.x + scene.originX, group.y + scene.originY];
    context.lineWidth = 1;
    context.fillStyle = surface.group;
    context.strokeStyle = surface.groupLine;
    context.beginPath();
    context.roundRect(x + 0.5, y + 0.5, group.width - 1, group.height - 1, 8);
    context.fill();
    context.stroke();
    context.font = fontOf(12.5, 600);
    context.fillStyle = surface.text;
    context.fillText(fitText(context, group.label, group.width - 90), x + 10, y + 14);
  }

  /** Write the number of nodes into the header of each group whose number changed. */
  private paintCounts(context: Context, scene: Scene): void {
    const { layout, state, theme } = scene;
    const surface = SURFACES[theme];
    const counts = new Array<number>(layout.groups.length).fill(0);
    state.nodeStates.forEach((nodeState, node) => {
      if (isPresent(nodeState)) counts[layout.groupOf[node]]++;
    });
    layout.groups.forEach((group, i) => {
      if (counts[i] === this.drawnCounts[i]) return;
      const [x, y] = [group.x + scene.originX, group.y + scene.originY];
      context.font = fontOf(12.5, 600);
      const left = x + 18 + context.measureText(fitText(context, group.label, group.width - 90)).width;
      context.fillStyle = surface.group;
      context.fillRect(left - 1, y + 3, Math.max(0, x + group.width - left - 8), HEADER - 6);
      context.font = fontOf(12);
      context.fillStyle = surface.muted;
      context.fillText(counts[i] === 0 ? "no nodes now" : countOf(counts[i], "node"), left, y + 14);
    });
    this.drawnCounts = counts;
  }

  /** Clear the places of *nodes*, and outline those that are large enough: a node is there at another time. */
  private clearSlots(context: Context, scene: Scene, nodes: number[]): void {
    const surface = SURFACES[scene.theme];
    context.fillStyle = surface.group;
    context.strokeStyle = surface.groupLine;
    context.lineWidth = 1;
    for (const node of nodes) {
      const { x, y, width, height } = tileBox(scene, node);
      context.fillRect(x, y, width, height);
      if (width < MIN_OUTLINE_WIDTH || isPresent(scene.state.nodeStates[node])) continue;
      context.beginPath();
      context.roundRect(x + 0.5, y + 0.5, width - 1, height - 1, 5);
      context.stroke();
    }
  }

  private paintPending(context: Context, scene: Scene): void {
    const { room, theme } = scene;
    const surface = SURFACES[theme];
    const pending = this.byNode.pending;
    const color = PENDING_COLOR[theme];
    context.clearRect(room.x, room.y, room.width, room.height);
    context.lineWidth = 1;
    context.setLineDash([4, 4]);
    context.strokeStyle = pending.length ? color : surface.groupLine;
    context.beginPath();
    context.roundRect(room.x + 0.5, room.y + 0.5, room.width - 1, room.height - 1, 8);
    context.stroke();
    context.setLineDash([]);
    context.font = fontOf(12.5, 600);
    context.fillStyle = surface.text;
    context.fillText("Pending pods", room.x + 10, room.y + 14);
    context.font = fontOf(12);
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
}

/** Where the squares of pending pods are in the area of pending pods. */
export function roomForPods(room: Box): Box {
  const top = room.height > room.width ? 44 : 26;
  return { x: room.x + 10, y: room.y + top, width: room.width - 18, height: room.height - top - 8 };
}
