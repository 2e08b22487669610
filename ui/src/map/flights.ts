/** Pods that move from the pending area to their node, or from node to node. Times are of the wall clock, in milliseconds. */
import { PENDING } from "../document/format";

const DURATION = 650;
const MOST_FLIGHTS = 400;

interface Flight {
  fromX: number;
  fromY: number;
  pod: number;
  began: number;
}

export class Flights {
  private readonly before: Int32Array;
  private flights: Flight[] = [];

  constructor(podNodes: Int32Array) {
    this.before = podNodes.slice();
  }
  get isActive(): boolean {
    return this.flights.length > 0;
  }

  /** Begin a flight for each pod whose place changed, from its place on the last drawing. Call it before the next drawing. */
  begin(podNodes: Int32Array, podX: Float32Array, podY: Float32Array, now: number, isSmooth: boolean): void {
    const moved: Flight[] = [];
    for (let pod = 0; pod < podNodes.length; pod++) {
      const from = this.before[pod];
      if (from === podNodes[pod]) continue;
      this.before[pod] = podNodes[pod];
      if (isSmooth && from >= PENDING && podNodes[pod] >= PENDING && !Number.isNaN(podX[pod])) {
        moved.push({ pod, fromX: podX[pod], fromY: podY[pod], began: now });
      }
    }
    if (!isSmooth) this.flights = [];
    else if (moved.length <= MOST_FLIGHTS) this.flights = [...this.flights, ...moved].slice(-MOST_FLIGHTS);
  }

  paint(context: CanvasRenderingContext2D, podX: Float32Array, podY: Float32Array, now: number, color: string): void {
    this.flights = this.flights.filter((flight) => now - flight.began < DURATION && !Number.isNaN(podX[flight.pod]));
    context.fillStyle = color;
    for (const flight of this.flights) {
      const part = Math.max(0, (now - flight.began) / DURATION);
      const eased = part < 0.5 ? 2 * part * part : 1 - (2 - 2 * part) ** 2 / 2;
      const x = flight.fromX + (podX[flight.pod] - flight.fromX) * eased;
      const y = flight.fromY + (podY[flight.pod] - flight.fromY) * eased - 24 * Math.sin(Math.PI * eased);
      context.globalAlpha = 0.95;
      context.beginPath();
      context.arc(x, y, 4.5, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }
}
