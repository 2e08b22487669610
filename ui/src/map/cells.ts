/** The cells of pods in a tile: areas in proportion to requests, in rows from the bottom. */

export interface Cells {
  /** x, y, width and height of cell i are at 4 i, relative to the tile's area. */
  boxes: Float32Array;
}

/** Fill an area of *width* by *height* with cells of *weights*; *capacity* is the weight of the whole area. */
export function layOutCells(weights: number[], capacity: number, width: number, height: number): Float32Array {
  const boxes = new Float32Array(4 * weights.length);
  const total = weights.reduce((a, b) => a + b, 0);
  if (total <= 0 || width <= 0 || height <= 0) return boxes;
  const scale = (width * height) / Math.max(capacity, total);
  let bottom = height;
  for (let first = 0; first < weights.length; ) {
    let last = first;
    let row = 0;
    let best = Infinity;
    while (last < weights.length) {
      const area = (row + weights[last]) * scale;
      const rowHeight = area / width;
      const worst = worstRatio(weights, first, last, scale, rowHeight);
      if (worst > best) break;
      best = worst;
      row += weights[last++];
    }
    const rowHeight = (row * scale) / width;
    let x = 0;
    for (let i = first; i < last; i++) {
      const cellWidth = rowHeight > 0 ? (weights[i] * scale) / rowHeight : 0;
      boxes.set([x, bottom - rowHeight, cellWidth, rowHeight], 4 * i);
      x += cellWidth;
    }
    bottom -= rowHeight;
    first = last;
  }
  return boxes;
}

function worstRatio(weights: number[], first: number, last: number, scale: number, rowHeight: number): number {
  let worst = 1;
  for (const i of [first, last]) {
    const cellWidth = (weights[i] * scale) / rowHeight;
    worst = Math.max(worst, cellWidth / rowHeight, rowHeight / cellWidth);
  }
  return worst;
}

/** Place *count* squares in an area, as large as *most*; returns the pitch (side and gap) and the number of columns. */
export function fitSquares(count: number, width: number, height: number, most: number): { pitch: number; columns: number } {
  let pitch = most;
  while (pitch > 3 && Math.floor(width / pitch) * Math.floor(height / pitch) < count) pitch -= 0.5;
  return { pitch, columns: Math.max(1, Math.floor(width / pitch)) };
}
