import { useEffect, useMemo, useState } from "preact/hooks";
import { Fleet, ObjectLink } from "../document/fleet";
import { buildCharts } from "../charts/specs";
import type { FleetDocument } from "../document/format";
import type { Server } from "../server";
import { Clock, DEMO_PLAYBACK, chooseSpeed } from "../state/clock";
import { deriveTables } from "../state/derived";
import { FleetState } from "../state/fleet_state";
import { extendDocument } from "../state/live";
import type { TimeZone } from "../text/times";
import { Charts } from "./charts";
import { Page, PageContext } from "./context";
import { Header } from "./header";
import { useKeys } from "./keys";
import { readLink, writeLink } from "./link";
import { MapPanel } from "./map_panel";
import { Player } from "./player";
import { SidePanel } from "./side_panel";
import { readStored, store, useTheme } from "./theme";

/** The document, replaced or extended by each update of the server. */
function useDocument(first: FleetDocument, server: Server | null, clock: Clock): [FleetDocument, boolean] {
  const [current, setCurrent] = useState(first);
  const [isConnected, setIsConnected] = useState(true);
  useEffect(() => {
    if (!server || !first.source.live) return;
    let shown = first;
    void server.listen((update) => {
      const next = "document" in update ? update.document : extendDocument(shown, update.end);
      if (next === shown) return;
      const follows = clock.t >= shown.end;
      shown = next;
      clock.start = next.start;
      clock.end = Math.max(next.end, next.start + 1000);
      setCurrent(next);
      if (follows) clock.seek(clock.end);
      else if (clock.t < clock.start) clock.seek(clock.start);
    }, setIsConnected);
  }, [server]);
  return [current, isConnected];
}

export function App({ first, server }: { first: FleetDocument; server: Server | null }) {
  const link = useMemo(() => readLink(location.hash), []);
  const clock = useMemo(() => createClock(first, link.t), []);
  const [document_, isConnected] = useDocument(first, server, clock);
  const fleet = useMemo(() => new Fleet(document_), [document_]);
  const state = useMemo(() => new FleetState(fleet), [fleet]);
  const derived = useMemo(() => deriveTables(fleet), [fleet]);
  clock.events = useMemo(() => eventTimes(fleet), [fleet]);
  const [theme, setTheme] = useTheme();
  const [zone, setZone] = useState<TimeZone>(readStored("joiner-zone") === "local" ? "local" : "utc");
  const [selection, select] = useState<ObjectLink | null>(link.selection);
  const [map, setMap] = useState(link.map);
  const [search, setSearch] = useState("");
  const [shownState, setShownState] = useState<number | null>(null);
  const page: PageContext = {
    fleet, state, derived, clock, server, theme, zone, selection, select, map, setMap, search, setSearch, shownState, setShownState,
  };
  useKeys(page);
  useEffect(() => {
    // For the tests of the page, and for people who explore it in the console of their browser.
    Object.assign(window, { joinerPage: { ...page, charts: buildCharts(fleet, derived) } });
  });
  useLinks(page, setMap);
  const changeZone = (next: TimeZone) => {
    store("joiner-zone", next);
    setZone(next);
  };
  return (
    <Page.Provider value={page}>
      <a class="skip" href="#fleet-time">Skip to the timeline</a>
      <div class="app">
        <Header setTheme={setTheme} setZone={changeZone} isConnected={isConnected} />
        <main class="stage">
          <MapPanel />
          <SidePanel />
        </main>
        <Charts />
        <Player />
      </div>
    </Page.Provider>
  );
}

/** The sorted times at which something on the page changes. */
function eventTimes(fleet: Fleet): Float64Array {
  const { markers, decisions } = fleet.document;
  return Float64Array.from([...fleet.nodeEvents.t, ...fleet.podEvents.t, ...markers.map((m) => m.t), ...decisions.map((d) => d.t)]).sort();
}

/** A clock of the span; acts of a demo hold the playback, so that people can read their captions. */
function createClock(first: FleetDocument, linked: number | null): Clock {
  const clock = new Clock(first.start, Math.max(first.end, first.start + 1000), firstTime(first, linked));
  clock.holds = first.markers.filter((marker) => marker.kind === "act").map((marker) => marker.t);
  if (clock.holds.length > 0) clock.speed = chooseSpeed(clock.end - clock.start, DEMO_PLAYBACK);
  return clock;
}

/** The first time that the page shows: that of the link; live: now; else where the first pods arrive. */
function firstTime(fleetDocument: FleetDocument, linked: number | null): number {
  if (linked !== null) return Math.min(fleetDocument.end, Math.max(fleetDocument.start, linked));
  return fleetDocument.source.kind === "demo" ? fleetDocument.start : fleetDocument.end;
}

/** Keep the hash of the address and the page in step. */
function useLinks(page: PageContext, setMap: PageContext["setMap"]): void {
  const { clock, selection, map, select, fleet } = page;
  useEffect(() => {
    let timer = 0;
    const write = () => {
      timer = 0;
      const isLive = fleet.document.source.live && clock.t >= fleet.document.end;
      history.replaceState(null, "", writeLink({ t: isLive ? null : clock.t, selection, map }));
    };
    const later = () => {
      if (!timer) timer = window.setTimeout(write, 400);
    };
    later();
    const end = clock.onTime(later);
    return () => {
      end();
      window.clearTimeout(timer);
    };
  }, [clock, selection, map, fleet]);
  useEffect(() => {
    const follow = () => {
      const next = readLink(location.hash);
      if (next.t !== null) clock.seek(next.t);
      select(next.selection);
      setMap(next.map);
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, [clock]);
}
