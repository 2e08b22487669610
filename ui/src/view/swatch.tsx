import { useEffect, useRef } from "preact/hooks";
import { STATE_STYLES } from "../map/palette";
import { drawPattern } from "../map/patterns";
import { usePage } from "./context";

/** A small tile in the color and the pattern of a state. */
export function StateSwatch({ state }: { state: number }) {
  const { theme } = usePage();
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = ref.current?.getContext("2d");
    if (!context) return;
    const style = STATE_STYLES[state];
    const isEarly = style.pattern === "dashed";
    context.setTransform(2, 0, 0, 2, 0, 0);
    context.clearRect(0, 0, 18, 14);
    context.fillStyle = style[theme];
    context.strokeStyle = style[theme];
    context.globalAlpha = isEarly ? 0.15 : 0.75;
    context.fillRect(1, 1, 16, 12);
    context.globalAlpha = 1;
    drawPattern(context, style.pattern, 1, 1, 16, 12, theme === "dark" ? "#0c1016" : "#1b2430");
    context.setLineDash(isEarly ? [3, 2] : []);
    context.lineWidth = 1.25;
    context.strokeRect(1, 1, 16, 12);
  }, [state, theme]);
  return <canvas ref={ref} class="swatch" width={36} height={28} aria-hidden="true" />;
}
