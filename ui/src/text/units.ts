/** Numbers with their units, one form each. */

export function formatUsd(usd: number): string {
  const sign = usd < 0 ? "-" : "";
  const value = Math.abs(usd);
  if (value >= 1000) return `${sign}$${Math.round(value).toLocaleString("en-US")}`;
  return `${sign}$${value.toFixed(value >= 1 || value === 0 ? 2 : 4)}`;
}
/** A price or rate: `$0.0537/h`. */
export function formatUsdPerHour(usd: number | null | undefined): string {
  if (usd == null) return "price unknown";
  const value = Math.abs(usd);
  if (value < 0.00005) return "$0/h";
  const digits = value >= 100 ? 2 : value >= 10 ? 3 : 4;
  return `${usd < 0 ? "-" : ""}$${value.toFixed(digits)}/h`;
}
export function trimZeros(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.?0+$/, "") || "0";
}
/** CPU in vCPU from thousandths: `0.5`, `4`. */
export function formatCpu(milli: number): string {
  const value = milli / 1000;
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : trimZeros(value, value >= 10 ? 1 : 2);
}
/** Memory from MiB: `512 MiB`, `7.5 GiB`. */
export function formatMemory(mebibytes: number): string {
  if (mebibytes < 1024) return `${Math.round(mebibytes)} MiB`;
  const gibibytes = mebibytes / 1024;
  return `${gibibytes >= 100 ? Math.round(gibibytes).toLocaleString("en-US") : trimZeros(gibibytes, 1)} GiB`;
}
export function formatPercent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)}%` : "–";
}
export function countOf(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}
/** A duration from milliseconds: `8s`, `46m`, `3h12m`, `2d4h`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 && minutes < 10 ? `${minutes}m${seconds % 60}s` : `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours}h${minutes % 60}m` : `${hours}h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
}
/** A value of a chart with its unit. */
export function formatValue(value: number | null | undefined, unit: string): string {
  if (value == null || Number.isNaN(value)) return "unknown";
  if (unit === "USD/h") return formatUsdPerHour(value);
  if (unit === "USD") return formatUsd(value);
  if (unit === "s") return value >= 60 ? formatDuration(value * 1000) : `${trimZeros(value, value < 10 ? 1 : 0)}s`;
  const text = Number.isInteger(value) ? value.toLocaleString("en-US") : trimZeros(value, 2);
  return unit === "vCPU" || unit === "GiB" ? `${text} ${unit}` : text;
}
