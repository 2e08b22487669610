/** Small parts of the panels. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ObjectLink } from "../document/fleet";
import { STATE_STYLES } from "../map/palette";
import { formatClock } from "../text/times";
import { formatPercent } from "../text/units";
import { usePage } from "./context";
import { StateSwatch } from "./swatch";

export function Link({ to, children }: { to: ObjectLink; children?: ComponentChildren }) {
  const { fleet, select } = usePage();
  if (fleet.find(to) < 0) return <span>{children ?? to.name}</span>;
  return (
    <button type="button" class="link" onClick={() => select(to)}>
      {children ?? to.name}
    </button>
  );
}

/** A time that the page jumps to. */
export function Moment({ t }: { t: number }) {
  const { clock, zone } = usePage();
  return (
    <button
      type="button"
      class="link time"
      title="Show this time"
      onClick={() => {
        clock.pause();
        clock.seek(t);
      }}
    >
      {formatClock(t, zone)}
    </button>
  );
}

export function State({ state }: { state: number }) {
  const style = STATE_STYLES[state];
  if (!style) return <span>not created yet</span>;
  return (
    <span class="state" title={style.meaning}>
      <StateSwatch state={state} /> {style.label}
    </span>
  );
}

export function Facts({ rows }: { rows: [name: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Usage({ name, part, whole, text }: { name: string; part: number; whole: number; text: string }) {
  return (
    <div class="usage">
      <span>{name}</span>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${whole > 0 ? Math.min(100, (100 * part) / whole) : 0}%` }} />
      </span>
      <span>
        {text} ({formatPercent(part, whole)})
      </span>
    </div>
  );
}

/** A list that shows the first rows, and the others on request. */
export function LongList({ rows, most = 12, noun }: { rows: ComponentChildren[]; most?: number; noun: string }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <ul class="rows">
        {(isOpen ? rows : rows.slice(0, most)).map((row, index) => (
          <li key={index}>{row}</li>
        ))}
      </ul>
      {rows.length > most && !isOpen && (
        <button type="button" class="more" onClick={() => setIsOpen(true)}>
          Show all {rows.length} {noun}
        </button>
      )}
    </>
  );
}

export function Lines({ lines }: { lines: string[] }) {
  return (
    <ul class="lines">
      {lines.map((line, index) => (
        <li key={index}>{line}</li>
      ))}
    </ul>
  );
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}
