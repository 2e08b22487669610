/** The clusters as a table; a row opens to its remarks, NodePools and next commands. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { formatDuration, formatUsd, formatUsdPerHour } from "../text/units";
import { Command } from "../view/command";
import { COLUMNS, Column, HubCluster, STATES, clusterState, commonCode, sortClusters } from "./document";

const CODE_LENGTH = 8;

interface Props {
  /** The clusters to show. */
  clusters: HubCluster[];
  /** All clusters: versions are compared with theirs. */
  all: HubCluster[];
  at: number;
}

export function HubTable({ clusters, all, at }: Props) {
  const [order, setOrder] = useState<{ column: Column; sign: 1 | -1 }>({ column: "State", sign: 1 });
  const [open, setOpen] = useState<string | null>(null);
  const sort = (column: Column) => setOrder({ column, sign: order.column === column && order.sign === 1 ? -1 : 1 });
  const code = commonCode(all);
  return (
    <div class="table-view" tabIndex={0} role="region" aria-label="Clusters">
      <table>
        <thead>
          <tr>
            {COLUMNS.map((column) => (
              <th key={column} scope="col" aria-sort={order.column === column ? (order.sign === 1 ? "ascending" : "descending") : undefined}>
                <button type="button" onClick={() => sort(column)}>
                  {column}
                  <span aria-hidden="true">{order.column === column ? (order.sign === 1 ? " ▲" : " ▼") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sortClusters(clusters, order.column, order.sign).map((cluster) => {
            const isOpen = open === cluster.name;
            return (
              <Fragment key={cluster.name}>
                <Row cluster={cluster} code={code} at={at} isOpen={isOpen} toggle={() => setOpen(isOpen ? null : cluster.name)} />
                {isOpen && <Details cluster={cluster} />}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {clusters.length === 0 && <p class="nothing">No cluster matches.</p>}
    </div>
  );
}

interface RowProps {
  cluster: HubCluster;
  code: string | null;
  at: number;
  isOpen: boolean;
  toggle: () => void;
}

function Row({ cluster, code, at, isOpen, toggle }: RowProps) {
  const state = STATES[clusterState(cluster)];
  const isOtherCode = !!cluster.code && code !== null && cluster.code !== code;
  return (
    <tr>
      <th scope="row">
        <button type="button" class="link" aria-expanded={isOpen} aria-controls={isOpen ? detailsId(cluster) : undefined} onClick={toggle}>
          <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> {cluster.name}
        </button>
      </th>
      <td class={`state ${state.tone}`}>
        <span aria-hidden="true">{state.symbol}</span> {state.label}
      </td>
      {cluster.error !== null ? (
        <td colSpan={COLUMNS.length - 2} class="error-text">
          {cluster.error}
        </td>
      ) : (
        <>
          <Count value={cluster.nodes} />
          <td class="n">{cluster.usdPerHour == null ? <Unknown /> : formatUsdPerHour(cluster.usdPerHour)}</td>
          <td class="n">{cluster.dayUsd == null ? <Unknown /> : formatUsd(cluster.dayUsd)}</td>
          <td class="n">{cluster.monthUsd == null ? <Unknown /> : formatUsd(cluster.monthUsd)}</td>
          <Count value={cluster.pendingPods} />
          <Count value={cluster.pauses?.length} />
          <Count value={cluster.driftedNodes} />
          <td>{cluster.kubernetesVersion ?? <Unknown />}</td>
          <td>
            {cluster.code ? <code>{cluster.code.slice(0, CODE_LENGTH)}</code> : <Unknown />}
            {isOtherCode && <small> differs</small>}
          </td>
          <td class="n">{cluster.lastEntryAt ? `${formatDuration(at - Date.parse(cluster.lastEntryAt))} ago` : <Unknown />}</td>
        </>
      )}
    </tr>
  );
}

function Count({ value }: { value: number | null | undefined }) {
  return <td class="n">{value == null ? <Unknown /> : value.toLocaleString("en-US")}</td>;
}

function Unknown() {
  return (
    <>
      <span aria-hidden="true">?</span>
      <span class="hidden">unknown</span>
    </>
  );
}

function Details({ cluster }: { cluster: HubCluster }) {
  const lines = [...(cluster.error === null ? [] : [cluster.error]), ...cluster.remarks, ...(cluster.messages ?? [])];
  return (
    <tr class="details">
      <td colSpan={COLUMNS.length} id={detailsId(cluster)}>
        {lines.length > 0 && (
          <ul class="lines">
            {lines.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        )}
        {!!cluster.nodePools?.length && (
          <>
            <h3>NodePools</h3>
            <ul class="lines">
              {cluster.nodePools.map((pool) => (
                <li key={pool.name}>
                  {pool.name}: {pool.nodes.toLocaleString("en-US")} {pool.nodes === 1 ? "node" : "nodes"}, {formatUsdPerHour(pool.usdPerHour)}
                </li>
              ))}
            </ul>
          </>
        )}
        <h3>What to run</h3>
        <ul class="steps">
          {cluster.nextSteps.map(({ purpose, command }) => (
            <li key={`${purpose} ${command}`}>
              <span>{purpose}</span>
              <Command text={command} />
            </li>
          ))}
        </ul>
      </td>
    </tr>
  );
}

function detailsId(cluster: HubCluster): string {
  return `details-${encodeURIComponent(cluster.name)}`;
}
