/** What all views share: the fleet, the clock, the selection and the settings of the page. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { Fleet, ObjectLink } from "../document/fleet";
import type { Theme } from "../map/palette";
import type { Server } from "../server";
import type { Clock } from "../state/clock";
import type { Derived } from "../state/derived";
import type { FleetState } from "../state/fleet_state";
import type { TimeZone } from "../text/times";
import type { MapSettings } from "./link";

export interface PageContext {
  fleet: Fleet;
  state: FleetState;
  derived: Derived;
  clock: Clock;
  server: Server | null;
  theme: Theme;
  zone: TimeZone;
  selection: ObjectLink | null;
  select: (link: ObjectLink | null) => void;
  map: MapSettings;
  setMap: (map: MapSettings) => void;
  /** A text that names of nodes, pods and workloads must contain; in lower case. */
  search: string;
  setSearch: (search: string) => void;
  /** The number of the state that the legend highlights, or null. */
  shownState: number | null;
  setShownState: (state: number | null) => void;
}

export const Page = createContext<PageContext | null>(null);

export function usePage(): PageContext {
  const page = useContext(Page);
  if (!page) throw new Error("outside of the page");
  return page;
}

/** Return the time of the clock, and render again at most *perSecond* times per second while it changes. */
export function useTime(perSecond: number): number {
  const { clock } = usePage();
  const [, setT] = useState(clock.t);
  const last = useRef(0);
  useEffect(() => {
    let timer = 0;
    const update = () => {
      timer = 0;
      last.current = performance.now();
      setT(clock.t);
    };
    const end = clock.onTime(() => {
      if (timer) return;
      timer = window.setTimeout(update, Math.max(0, last.current + 1000 / perSecond - performance.now()));
    });
    setT(clock.t);
    return () => {
      end();
      window.clearTimeout(timer);
    };
  }, [clock, perSecond]);
  return clock.t;
}

/** Return whether the clock plays, and its speed. */
export function usePlaying(): { isPlaying: boolean; speed: number; skipsQuiet: boolean } {
  const { clock } = usePage();
  const [playing, setPlaying] = useState({ isPlaying: clock.isPlaying, speed: clock.speed, skipsQuiet: clock.skipsQuiet });
  useEffect(() => {
    const update = () => setPlaying({ isPlaying: clock.isPlaying, speed: clock.speed, skipsQuiet: clock.skipsQuiet });
    update();
    return clock.onPlaying(update);
  }, [clock]);
  return playing;
}

/** Return the width of an element in CSS pixels, and the reference to give it. */
export function useWidth<T extends HTMLElement>(): [ref: { current: T | null }, width: number] {
  const ref = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!ref.current) return undefined;
    const observer = new ResizeObserver((entries) => setWidth(Math.floor(entries[0].contentRect.width)));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
