/** The cells of pods in a tile: areas in proportion to requests, in rows from the bottom. */

/**
 * Fill an area of *width* by *height* with cells of *weights*; *capacity* is the weight of the whole area.
 * Returns x, y, width and height of cell i at 4 i. Cells are about square; the largest are at the bottom.
 */
export function layOutCells(weights: number[], capacity: number, width: number, height: number): Float32Array {
  const boxes = new Float32Array(4 * weights.length);
  const total = weights.reduce((a, b) => a + b, 0);
  if (total <= 0 || width <= 0 || height <= 0) return boxes;
  const scale = (width * height) / Math.max(capacity, total);
  const order = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a] || a - b);
  const areas = order.map((i) => weights[i] * scale);
  let bottom = height;
  for (let first = 0; first < areas.length; ) {
    const last = endRow(areas, first, width);
    const sum = areas.slice(first, last).reduce((a, b) => a + b, 0);
    const side = Math.sqrt(areas[first]);
    const isPartial = last === areas.length && sum / side < width && side <= bottom;
    const rowHeight = isPartial ? side : sum / width;
    let x = 0;
    for (let n = first; n < last; n++) {
      const cellWidth = rowHeight > 0 ? areas[n] / rowHeight : 0;
      boxes.set([x, bottom - rowHeight, cellWidth, rowHeight], 4 * order[n]);
      x += cellWidth;
    }
    bottom -= rowHeight;
    first = last;
  }
  return boxes;
}

/** Return the end of the row that begins at *first*: one more cell would make the cells less square. */
function endRow(areas: number[], first: number, width: number): number {
  let best = Infinity;
  let row = 0;
  for (let last = first; last < areas.length; last++) {
    const rowHeight = (row + areas[last]) / width;
    const worst = worstRatio(areas[first], areas[last], rowHeight);
    if (worst > best) return last;
    best = worst;
    row += areas[last];
  }
  return areas.length;
}

function worstRatio(largest: number, smallest: number, rowHeight: number): number {
  const wide = largest / (rowHeight * rowHeight);
  const narrow = (rowHeight * rowHeight) / smallest;
  return Math.max(wide, narrow);
}

/** Place *count* squares in an area, as large as *most*; returns the pitch (side and gap) and the number of columns. */
export function fitSquares(count: number, width: number, height: number, most: number): { pitch: number; columns: number } {
  let pitch = most;
  while (pitch > 3 && Math.floor(width / pitch) * Math.floor(height / pitch) < count) pitch -= 0.5;
  return { pitch, columns: Math.max(1, Math.floor(width / pitch)) };
}
