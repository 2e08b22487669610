/** The canvas of the fleet map: drawing, hovering, choosing by pointer and by arrow keys. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { PENDING } from "../document/format";
import { isPresent } from "../state/fleet_state";
import { Flights } from "../map/flights";
import { buildGroups } from "../map/grouping";
import { Box, MapLayout, findNeighbor, findNodeAt, layOutMap } from "../map/layout";
import { MapPainter } from "../map/paint";
import { PENDING_COLOR, SURFACES } from "../map/palette";
import type { Scene } from "../map/scene";
import { usePage, usePlaying, useTime, useWidth } from "./context";
import { describeNode, NodeTip } from "./node_tip";
import { useNodeFilter } from "./node_filter";

const NARROW = 620;
const ROOM_WIDTH = 128;
const ROOM_HEIGHT = 64;
const GAP = 12;

interface Geometry {
  layout: MapLayout;
  room: Box;
  originX: number;
  originY: number;
  height: number;
}

/** The height of the legend, the caption and the timeline below the map; the legend of a narrow map has two lines. */
const BELOW = 232;
const LEGEND_LINE = 28;
/** The height of the timeline, which a page without a span does not have. */
const TIMELINE = 131;
const WIDTH_OF_LEGEND = 950;

function useGeometry(width: number, top: number): Geometry {
  const { fleet, map } = usePage();
  const [viewport, setViewport] = useState(innerHeight);
  useEffect(() => {
    const update = () => setViewport(innerHeight);
    addEventListener("resize", update);
    return () => removeEventListener("resize", update);
  }, []);
  return useMemo(() => {
    const isNarrow = width < NARROW;
    const below = BELOW + (width < WIDTH_OF_LEGEND ? LEGEND_LINE : 0) - (fleet.isMoment ? TIMELINE : 0);
    const wished = isNarrow ? Math.max(260, viewport * 0.42) : Math.max(300, viewport - top - below);
    const groups = buildGroups(fleet, map.grouping, map.sizing);
    const originX = isNarrow ? 0 : ROOM_WIDTH + GAP;
    const originY = isNarrow ? ROOM_HEIGHT + GAP : 0;
    const layout = layOutMap(groups, fleet.nodeCount, Math.max(60, width - originX), wished - originY);
    const height = Math.ceil(Math.max(isNarrow ? 0 : 300, layout.height + originY));
    const room = isNarrow ? { x: 0, y: 0, width, height: ROOM_HEIGHT } : { x: 0, y: 0, width: ROOM_WIDTH, height: Math.min(height, wished) };
    return { layout, room, originX, originY, height };
  }, [fleet, map.grouping, map.sizing, width, viewport, top]);
}

const FIRST_WIDTH = 1000;

/** The first thing to press in a demo. */
function FilmStart() {
  const { clock, fleet } = usePage();
  const { isPlaying } = usePlaying();
  const t = useTime(5);
  if (fleet.document.source.kind !== "demo" || isPlaying || t > fleet.start) return null;
  return (
    <button type="button" class="film-start" onClick={() => clock.play()}>
      <span aria-hidden="true">▶</span> Play the demo
    </button>
  );
}

export function FleetMap() {
  const { fleet, state, clock, theme, map, selection, select } = usePage();
  const [wrapper, width] = useWidth<HTMLDivElement>();
  const top = Math.round((wrapper.current?.getBoundingClientRect().top ?? 130) + scrollY);
  const geometry = useGeometry(width || FIRST_WIDTH, top);
  const { layout, room, originX, originY, height } = geometry;
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState(-1);
  const [focused, setFocused] = useState(-1);
  const isDimmed = useNodeFilter();
  const painter = useMemo(() => new MapPainter(fleet.nodeCount, fleet.podCount, fleet.document.pods.workload), [fleet]);
  const flights = useMemo(() => new Flights(state.podNodes), [fleet]);
  const isShown = (node: number) => isPresent(state.nodeStates[node]);
  const selected = selection?.kind === "node" ? fleet.find(selection) : -1;
  const selectedPod = selection?.kind === "pod" ? fleet.find(selection) : -1;

  useEffect(() => {
    const context = base.current?.getContext("2d");
    const above = overlay.current?.getContext("2d");
    if (!context || !above || width === 0) return undefined;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const scene: Scene = { state, layout, originX, originY, room, theme, filling: map.filling, isDimmed };
    for (const canvas of [context.canvas, above.canvas]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    above.setTransform(ratio, 0, 0, ratio, 0, 0);
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let frame = 0;
    let isStale = true;
    let before = clock.t;
    let isMarked = true;
    const outline = (node: number, color: string, line: number) => {
      if (node < 0 || !isShown(node)) return;
      above.strokeStyle = color;
      above.lineWidth = line;
      above.beginPath();
      const [x, y, w, h] = layout.tiles.subarray(4 * node, 4 * node + 4);
      above.roundRect(x + originX - 1.5, y + originY - 1.5, w + 3, h + 3, w > 40 ? 6 : 2);
      above.stroke();
    };
    const draw = (now: number) => {
      frame = 0;
      if (isStale) {
        isStale = false;
        state.seek(clock.t);
        const step = clock.t - before;
        before = clock.t;
        const isSmooth = !isStill && step > 0 && step < (clock.end - clock.start) / 25;
        flights.begin(state.podNodes, painter.podX, painter.podY, now, isSmooth);
        painter.paint(context, scene);
      }
      const marks = hovered >= 0 || focused >= 0 || selected >= 0 || selectedPod >= 0 || flights.isActive;
      if (!marks && !isMarked) return;
      above.canvas.classList.toggle("blank", !marks);
      isMarked = marks;
      above.clearRect(0, 0, width, height);
      flights.paint(above, painter.podX, painter.podY, now, PENDING_COLOR[theme]);
      const color = SURFACES[theme].select;
      outline(hovered, color, 1.5);
      outline(focused, color, 2.5);
      outline(selected, color, 3);
      if (selectedPod >= 0 && state.podNodes[selectedPod] >= PENDING && !Number.isNaN(painter.podX[selectedPod])) {
        above.strokeStyle = color;
        above.lineWidth = 2.5;
        above.beginPath();
        above.arc(painter.podX[selectedPod], painter.podY[selectedPod], 9, 0, 2 * Math.PI);
        above.stroke();
      }
      if (flights.isActive) frame = requestAnimationFrame(draw);
    };
    const later = () => {
      isStale = true;
      if (!frame) frame = requestAnimationFrame(draw);
    };
    draw(performance.now());
    const end = clock.onTime(later);
    return () => {
      end();
      cancelAnimationFrame(frame);
    };
  }, [fleet, geometry, theme, map.filling, isDimmed, hovered, focused, selected, selectedPod, width]);

  const nodeAt = (event: MouseEvent) => {
    const bounds = base.current!.getBoundingClientRect();
    return findNodeAt(layout, event.clientX - bounds.left - originX, event.clientY - bounds.top - originY, isShown);
  };
  const pendingAt = (event: MouseEvent) => {
    const bounds = base.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    return painter.byNode.pending.find((pod) => Math.abs(painter.podX[pod] - x) < 8 && Math.abs(painter.podY[pod] - y) < 8);
  };
  const choose = (event: MouseEvent) => {
    const node = nodeAt(event);
    const pod = node < 0 ? pendingAt(event) : undefined;
    if (node >= 0) select(fleet.link("node", node));
    else if (pod !== undefined) select(fleet.link("pod", pod));
    else select(null);
  };
  const press = (event: KeyboardEvent) => {
    const arrows: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const arrow = arrows[event.key];
    const current = focused >= 0 && isShown(focused) ? focused : -1;
    if (arrow) {
      event.preventDefault();
      const first = Array.from({ length: fleet.nodeCount }, (_, node) => node).find(isShown) ?? -1;
      setFocused(current < 0 ? first : findNeighbor(layout, current, arrow[0], arrow[1], isShown));
    } else if (event.key === "Enter" && current >= 0) {
      event.preventDefault();
      select(fleet.link("node", current));
    }
  };
  return (
    <div class="map" ref={wrapper}>
      <canvas ref={base} class="base" style={{ height: `${height}px` }} aria-hidden="true" />
      <canvas
        ref={overlay}
        class="overlay"
        style={{ height: `${height}px` }}
        tabIndex={0}
        role="application"
        aria-label="Map of nodes. Arrow keys move between nodes, Enter opens the node. The button Table shows the same as a table."
        onMouseMove={(event) => setHovered(nodeAt(event))}
        onMouseLeave={() => setHovered(-1)}
        onClick={choose}
        onKeyDown={press}
        onBlur={() => setFocused(-1)}
      />
      <FilmStart />
      <div class="hidden" aria-live="polite">
        {focused >= 0 ? describeNode(fleet, state, focused) : ""}
      </div>
      {hovered >= 0 && <NodeTip node={hovered} x={layout.tiles[4 * hovered] + originX} y={layout.tiles[4 * hovered + 1] + originY} width={layout.tiles[4 * hovered + 2]} height={layout.tiles[4 * hovered + 3]} mapWidth={width} />}
    </div>
  );
}
