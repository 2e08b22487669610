import { useEffect, useState } from "preact/hooks";
import { formatMoment } from "../text/times";
import { countOf, formatUsd, formatUsdPerHour } from "../text/units";
import { useTheme } from "../view/theme";
import { HubDocument, filterClusters, missingText } from "./document";
import { HubTable } from "./hub_table";

const POLL_INTERVAL_MS = 30_000;

interface Props {
  first: HubDocument;
  fetchHub: () => Promise<HubDocument>;
}

export function HubPage({ first, fetchHub }: Props) {
  const [hub, isConnected] = useHub(first, fetchHub);
  const [theme, setTheme] = useTheme();
  const [search, setSearch] = useState("");
  const [needsAttention, setNeedsAttention] = useState(false);
  const shown = filterClusters(hub.clusters, search, needsAttention);
  const missing = missingText(hub);
  return (
    <>
      <a class="skip" href="#clusters">
        Skip to the clusters
      </a>
      <div class="app hub">
        <header class="header">
          <div class="title">
            <h1>
              <span>{countOf(hub.clusters.length, "cluster")}</span>
            </h1>
            <p>
              read {formatMoment(Date.parse(hub.at), "utc")}, again every {Math.round(hub.readIntervalSeconds / 60)}m
              {!isConnected && <span class="live off">connection lost</span>}
            </p>
          </div>
          <Totals hub={hub} />
          <div class="switches">
            <button type="button" onClick={() => setTheme(theme === "dark" ? "light" : "dark")} aria-label={theme === "dark" ? "Use the light theme" : "Use the dark theme"}>
              <span aria-hidden="true">{theme === "dark" ? "☀" : "☾"}</span>
            </button>
          </div>
          {missing && (
            <p class="notes missing" role="status">
              {missing}
            </p>
          )}
        </header>
        <main id="clusters" tabIndex={-1}>
          <h2 class="hidden">Clusters</h2>
          <div class="filters">
            <input type="search" aria-label="Find clusters" placeholder="Find clusters" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
            <label>
              <input type="checkbox" checked={needsAttention} onChange={(event) => setNeedsAttention(event.currentTarget.checked)} /> only clusters that need attention
            </label>
            <span role="status">
              {shown.length} of {countOf(hub.clusters.length, "cluster")}
            </span>
          </div>
          <HubTable clusters={shown} all={hub.clusters} at={Date.parse(hub.at)} />
        </main>
      </div>
    </>
  );
}

/** The newest document; while the server does not answer, the last one. */
function useHub(first: HubDocument, fetchHub: () => Promise<HubDocument>): [HubDocument, boolean] {
  const [hub, setHub] = useState(first);
  const [isConnected, setIsConnected] = useState(true);
  useEffect(() => {
    const update = async () => {
      try {
        const next = await fetchHub();
        setIsConnected(true);
        setHub(next);
      } catch {
        setIsConnected(false);
      }
    };
    const timer = setInterval(() => void update(), POLL_INTERVAL_MS);
    Object.assign(window, { joinerHub: { update } });
    return () => clearInterval(timer);
  }, [fetchHub]);
  return [hub, isConnected];
}

function Totals({ hub }: { hub: HubDocument }) {
  const { totals } = hub;
  const rows: [name: string, value: string][] = [
    ["Nodes", totals.nodes === null ? "?" : totals.nodes.toLocaleString("en-US")],
    ["Price", totals.usdPerHour === null ? "?" : formatUsdPerHour(totals.usdPerHour)],
    ["Today", totals.dayUsd === null ? "?" : formatUsd(totals.dayUsd)],
    ["This month", totals.monthUsd === null ? "?" : formatUsd(totals.monthUsd)],
    ["Pods pending", totals.pendingPods === null ? "?" : totals.pendingPods.toLocaleString("en-US")],
    ["Nodes drifted", totals.driftedNodes === null ? "?" : totals.driftedNodes.toLocaleString("en-US")],
  ];
  return (
    <dl class="numbers">
      {rows.map(([name, value]) => (
        <div class="figure" key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
