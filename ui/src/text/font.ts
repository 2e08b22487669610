/** The font of texts in pictures; `style/page.css` has the same for the rest of the page. */
const FAMILIES = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/** Return the font of *size* pixels, as a canvas has it. */
export function fontOf(size: number, weight = 400): string {
  return `${weight} ${size}px ${FAMILIES}`;
}
