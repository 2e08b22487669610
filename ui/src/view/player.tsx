/** The timeline: play, pause, speed, and a track with the pods and the markers of the span. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { SPEEDS } from "../state/clock";
import { findTimeTicks } from "../text/ticks";
import { formatDay, formatMoment, formatClock, formatTick } from "../text/times";
import { formatDuration } from "../text/units";
import { usePage, usePlaying, useTime, useWidth } from "./context";
import { withoutNumber } from "./caption";
import { findMarkerTime } from "./keys";
import { MARKER_LABELS, paintTrack } from "./track";

const TRACK_HEIGHT = 74;

export function Player() {
  const { clock, fleet, zone } = usePage();
  const { isPlaying, speed, skipsQuiet } = usePlaying();
  const times = useMemo(() => fleet.document.markers.map((marker) => marker.t).sort((a, b) => a - b), [fleet]);
  const jump = (direction: 1 | -1) => {
    clock.pause();
    const t = findMarkerTime(times, clock.t, direction);
    if (t !== null) clock.seek(t);
  };
  if (fleet.isMoment) return null;
  return (
    <section class="player" aria-label="Timeline">
      <div class="controls">
        <button type="button" aria-label="Previous event" title="Previous event ( [ )" onClick={() => jump(-1)}>
          <Icon path="M7 5v14M19 5 9 12l10 7z" />
        </button>
        <button type="button" class="play" aria-label={isPlaying ? "Pause" : "Play"} title={isPlaying ? "Pause (space)" : "Play (space)"} onClick={() => clock.toggle()}>
          <Icon path={isPlaying ? "M7 5h3v14H7zM14 5h3v14h-3z" : "M7 4 20 12 7 20z"} />
        </button>
        <button type="button" aria-label="Next event" title="Next event ( ] )" onClick={() => jump(1)}>
          <Icon path="M17 5v14M5 5l10 7-10 7z" />
        </button>
        <label class="choice">
          <span class="hidden">Speed</span>
          <select value={speed} onChange={(event) => clock.setSpeed(Number(event.currentTarget.value))} title="Speed: time of the cluster per time of the clock">
            {SPEEDS.map((option) => (
              <option key={option} value={option}>
                {option}×
              </option>
            ))}
          </select>
        </label>
        <label class="check" title="Playback passes quickly over times without events">
          <input type="checkbox" checked={skipsQuiet} onChange={(event) => clock.setSkipsQuiet(event.currentTarget.checked)} /> Skip quiet
        </label>
        <Now />
        {fleet.document.source.live && (
          <button type="button" onClick={() => clock.seek(clock.end)}>
            Now
          </button>
        )}
      </div>
      <Track />
      <p class="hidden">
        From {formatMoment(fleet.start, zone)} to {formatMoment(fleet.end, zone)}
      </p>
    </section>
  );
}

function Icon({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

function Now() {
  const { fleet, zone } = usePage();
  const t = useTime(15);
  return (
    <div class="now">
      <b>{formatClock(t, zone)}</b>
      <span>
        {formatDay(t, zone)} · {formatDuration(t - fleet.start)} of {formatDuration(fleet.end - fleet.start)}
      </span>
    </div>
  );
}

function Track() {
  const { clock, fleet, derived, theme, zone } = usePage();
  const [wrapper, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const needle = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const span = fleet.end - fleet.start;
  const { step, ticks } = useMemo(() => findTimeTicks(fleet.start, fleet.end, Math.max(2, width / 110), zone), [fleet, width, zone]);

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(TRACK_HEIGHT * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintTrack(context, { fleet, derived, theme, width, height: TRACK_HEIGHT, ticks, labels: ticks.map((t) => formatTick(t, step, zone)) });
  }, [fleet, derived, theme, width, ticks, zone]);

  useEffect(() => {
    const move = (t: number) => {
      if (needle.current) needle.current.style.transform = `translateX(${((t - fleet.start) / span) * width}px)`;
      if (input.current) input.current.value = String(t);
    };
    move(clock.t);
    return clock.onTime(move);
  }, [clock, fleet, width]);

  const timeAt = (event: PointerEvent) => {
    const bounds = wrapper.current!.getBoundingClientRect();
    return fleet.start + ((event.clientX - bounds.left) / bounds.width) * span;
  };
  const near = hovered === null ? [] : fleet.document.markers.filter((marker) => Math.abs(marker.t - hovered) <= (span * 5) / Math.max(1, width));
  return (
    <div
      class="track"
      ref={wrapper}
      onPointerMove={(event) => {
        setHovered(timeAt(event));
        if (event.buttons === 1) clock.seek(timeAt(event));
      }}
      onPointerDown={(event) => {
        clock.pause();
        clock.seek(timeAt(event));
      }}
      onPointerLeave={() => setHovered(null)}
    >
      <canvas ref={canvas} style={{ height: `${TRACK_HEIGHT}px` }} aria-hidden="true" />
      <div class="needle" ref={needle} aria-hidden="true" />
      <TimeInput inputRef={input} />
      {hovered !== null && (
        <div class="tip above" style={{ left: `${Math.min(Math.max(0, width - 260), Math.max(0, ((hovered - fleet.start) / span) * width - 120))}px` }}>
          <b>{formatClock(hovered, zone)}</b>
          {near.slice(0, 5).map((marker, index) => (
            <span key={index}>
              {MARKER_LABELS[marker.kind] ?? marker.kind}: {withoutNumber(marker.title)}
              {marker.text && marker.kind !== "act" && <small> {marker.text}</small>}
            </span>
          ))}
          {near.length > 5 && <span>and {near.length - 5} more</span>}
        </div>
      )}
    </div>
  );
}

function TimeInput({ inputRef }: { inputRef: { current: HTMLInputElement | null } }) {
  const { clock, fleet, zone } = usePage();
  const t = useTime(3);
  const step = Math.max(1, Math.round((fleet.end - fleet.start) / 400 / 1000)) * 1000;
  const press = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    const move = moves[event.key];
    if (event.key === "Home") clock.seek(clock.start);
    else if (event.key === "End") clock.seek(clock.end);
    else if (move) clock.seek(clock.t + move * step);
    else return;
    event.preventDefault();
    clock.pause();
  };
  return (
    <input
      id="fleet-time"
      ref={inputRef}
      type="range"
      min={fleet.start}
      max={fleet.end}
      step="any"
      defaultValue={String(clock.t)}
      aria-label="Time"
      aria-valuetext={formatMoment(t, zone)}
      onKeyDown={press}
      onInput={(event) => clock.seek(Number(event.currentTarget.value))}
    />
  );
}
