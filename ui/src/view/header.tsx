import type { Theme } from "../map/palette";
import type { TimeZone } from "../text/times";
import { formatDay } from "../text/times";
import { formatCpu, formatDuration, formatMemory, formatPercent, formatUsd, formatUsdPerHour } from "../text/units";
import { usePage, useTime } from "./context";

interface Props {
  setTheme: (theme: Theme) => void;
  setZone: (zone: TimeZone) => void;
  isConnected: boolean;
}

export function Header({ setTheme, setZone, isConnected }: Props) {
  const { fleet, theme, zone } = usePage();
  const { source } = fleet.document;
  return (
    <header class="header">
      <div class="title">
        <h1 title={source.title}>
          <Logo />
          <span>{source.title || `Fleet of ${source.cluster}`}</span>
        </h1>
        <p>
          {source.cluster && <span>cluster {source.cluster} · </span>}
          {formatDay(fleet.start, zone)}
          {!fleet.isMoment && <span>, {formatDuration(fleet.end - fleet.start)}</span>}
          {source.live && <span class={isConnected ? "live" : "live off"}>{isConnected ? "live" : "connection lost"}</span>}
        </p>
      </div>
      <Numbers />
      {!!source.notes?.length && <p class="notes">{source.notes.join(" · ")}</p>}
      <div class="switches">
        <button type="button" onClick={() => setZone(zone === "utc" ? "local" : "utc")} title="Show times in UTC or in the time zone of this browser">
          {zone === "utc" ? "UTC" : "Local time"}
        </button>
        <button
          type="button"
          onClick={() => setTheme(theme === "dark" ? "light" : "dark")}
          aria-label={theme === "dark" ? "Use the light theme" : "Use the dark theme"}
          title={theme === "dark" ? "Light theme" : "Dark theme"}
        >
          <span aria-hidden="true">{theme === "dark" ? "☀" : "☾"}</span>
        </button>
      </div>
    </header>
  );
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 24 24" aria-hidden="true">
      <rect x="2" y="2" width="9" height="9" rx="2" />
      <rect x="13" y="2" width="9" height="9" rx="2" class="second" />
      <rect x="2" y="13" width="9" height="9" rx="2" class="third" />
      <rect x="13" y="13" width="9" height="9" rx="2" class="last" />
    </svg>
  );
}

function Numbers() {
  const { state, fleet } = usePage();
  const t = useTime(8);
  state.seek(t);
  const now = state.summary();
  const { totals } = fleet.document;
  const full = (totals.costUsd ?? 0) + (totals.savedUsd ?? 0);
  return (
    <dl class="numbers">
      <Figure name="Nodes" value={now.nodes.toLocaleString("en-US")} note={now.unpriced ? `${now.unpriced} without price` : undefined} />
      <Figure name="Pods running" value={now.running.toLocaleString("en-US")} />
      <Figure name="Pods pending" value={now.pending.toLocaleString("en-US")} tone={now.pending ? "pending" : undefined} />
      <Bar name="CPU requested" part={now.requestedCpuMilli} whole={now.allocatableCpuMilli} text={`${formatCpu(now.requestedCpuMilli)} of ${formatCpu(now.allocatableCpuMilli)} vCPU`} />
      <Bar
        name="Memory requested"
        part={now.requestedMemoryMiB}
        whole={now.allocatableMemoryMiB}
        text={`${formatMemory(now.requestedMemoryMiB)} of ${formatMemory(now.allocatableMemoryMiB)}`}
      />
      <Figure name="Cost now" value={formatUsdPerHour(now.usdPerHour)} tone="cost" />
      {totals.costUsd != null && !fleet.isMoment && <Figure name={`Cost of ${formatDuration(fleet.end - fleet.start)}`} value={formatUsd(totals.costUsd)} />}
      {totals.savedUsd != null && (
        <Figure
          name="Saved"
          value={`${formatUsd(totals.savedUsd)} (${formatPercent(totals.savedUsd, full)})`}
          note={totals.comparedWith ? `compared with ${totals.comparedWith}` : undefined}
          tone="saved"
        />
      )}
    </dl>
  );
}

function Figure({ name, value, note, tone }: { name: string; value: string; note?: string; tone?: string }) {
  return (
    <div class={tone ? `figure ${tone}` : "figure"}>
      <dt>{name}</dt>
      <dd>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

function Bar({ name, part, whole, text }: { name: string; part: number; whole: number; text: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        {formatPercent(part, whole)}
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${whole > 0 ? Math.min(100, (100 * part) / whole) : 0}%` }} />
        </span>
        <small>{text}</small>
      </dd>
    </div>
  );
}
