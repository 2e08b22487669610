/** Times of day in UTC or in the time zone of the browser. */

export type TimeZone = "utc" | "local";

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
interface Parts {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}
export function splitTime(t: number, zone: TimeZone): Parts {
  const date = new Date(t);
  if (zone === "utc") {
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
    };
  }
  return {
    year: date.getFullYear(),
    month: date.getMonth() + 1,
    day: date.getDate(),
    hour: date.getHours(),
    minute: date.getMinutes(),
    second: date.getSeconds(),
  };
}
export function formatDay(t: number, zone: TimeZone): string {
  const { year, month, day } = splitTime(t, zone);
  return `${year}-${pad(month)}-${pad(day)}`;
}
export function formatClock(t: number, zone: TimeZone): string {
  const { hour, minute, second } = splitTime(t, zone);
  return `${pad(hour)}:${pad(minute)}:${pad(second)}`;
}
export function formatMoment(t: number, zone: TimeZone): string {
  return `${formatDay(t, zone)} ${formatClock(t, zone)}${zone === "utc" ? "Z" : ""}`;
}
/** The label of a tick: the day at midnight, seconds only if *step* (milliseconds) is less than a minute. */
export function formatTick(t: number, step: number, zone: TimeZone): string {
  const { month, day, hour, minute, second } = splitTime(t, zone);
  if (step >= 86_400_000 || (hour === 0 && minute === 0 && second === 0 && step >= 3_600_000)) {
    return `${pad(month)}-${pad(day)}`;
  }
  return `${pad(hour)}:${pad(minute)}${step < 60_000 ? `:${pad(second)}` : ""}`;
}
