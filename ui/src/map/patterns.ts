/** Patterns over tiles, drawn in the color of the state. */
import type { Pattern } from "./palette";

type Context = CanvasRenderingContext2D;

/** Draw *pattern* inside a box. Small boxes get fewer lines; very small boxes get none. */
export function drawPattern(context: Context, pattern: Pattern, x: number, y: number, width: number, height: number, color: string): void {
  if (pattern === "none" || pattern === "dashed" || width < 7) return;
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = color;
  context.fillStyle = color;
  context.lineWidth = 1.25;
  context.globalAlpha *= width > 60 ? 0.3 : 0.55;
  const step = width > 60 ? 8 : 5;
  switch (pattern) {
    case "dots":
      drawDots(context, x, y, width, height, step);
      break;
    case "lines":
      drawLines(context, x, y, width, height, step, 0);
      break;
    case "hatch":
      drawLines(context, x, y, width, height, step, 1);
      break;
    case "cross":
      drawLines(context, x, y, width, height, step, 1);
      drawLines(context, x, y, width, height, step, -1);
      break;
    case "lock":
      context.globalAlpha = 1;
      drawLock(context, x + width, y, Math.min(12, width / 2.5));
      break;
    case "unknown":
      drawLines(context, x, y, width, height, step * 2, -1);
      break;
  }
  context.restore();
}

function drawDots(context: Context, x: number, y: number, width: number, height: number, step: number): void {
  for (let row = y + step / 2; row < y + height; row += step) {
    for (let column = x + step / 2; column < x + width; column += step) context.fillRect(column - 0.75, row - 0.75, 1.5, 1.5);
  }
}

function drawLines(context: Context, x: number, y: number, width: number, height: number, step: number, slope: number): void {
  context.beginPath();
  if (slope === 0) {
    for (let row = y + step / 2; row < y + height; row += step) {
      context.moveTo(x, row);
      context.lineTo(x + width, row);
    }
  } else {
    for (let offset = -height; offset < width + height; offset += step) {
      context.moveTo(x + offset, slope > 0 ? y + height : y);
      context.lineTo(x + offset + height, slope > 0 ? y : y + height);
    }
  }
  context.stroke();
}

/** Draw a padlock whose upper right corner is at x, y. */
function drawLock(context: Context, x: number, y: number, size: number): void {
  const body = size * 0.6;
  const left = x - size - 1;
  context.fillRect(left + size * 0.1, y + size - body + 1, size * 0.8, body);
  context.beginPath();
  context.arc(left + size / 2, y + size - body + 1, size * 0.25, Math.PI, 0);
  context.stroke();
}
