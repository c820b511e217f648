import type { Estimate, Reading } from './protocol';

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** Bytes as `24.1 GiB` or `512 MiB`. */
export function formatBytes(bytes: number): string {
  return bytes >= GIB ? `${trimmed(bytes / GIB)} GiB` : `${Math.round(bytes / MIB)} MiB`;
}

/** `used` of `total` bytes in one unit, as `24.1 / 80 GiB`. */
export function formatShare(used: number, total: number): string {
  return total >= GIB
    ? `${trimmed(used / GIB)} / ${trimmed(total / GIB)} GiB`
    : `${Math.round(used / MIB)} / ${Math.round(total / MIB)} MiB`;
}

/** A span as `8 s`, `3 min`, `2 h 5 min` or `3 d 4 h`; never more than two units. */
export function formatSpan(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) {
    return `${whole} s`;
  }
  const minutes = Math.round(whole / 60);
  if (minutes < 60) {
    return `${minutes} min`;
  }
  if (minutes < 24 * 60) {
    return twoUnits(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  }
  const hours = Math.round(minutes / 60);
  return twoUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** When a waiting job starts, as a sentence without a stop; never more exact than it is known. */
export function formatEstimate(estimate: Estimate): string {
  const { low_s: low, high_s: high, reason } = estimate;
  if (low === null && high === null) {
    return reason ? `start not known: ${reason}` : 'start not known';
  }
  if (high === null) {
    return `starts in ${formatSpan(low ?? 0)} at the earliest`;
  }
  if (low === null || low <= 0) {
    return `starts within ${formatSpan(high)}`;
  }
  const [from, to] = [formatSpan(low), formatSpan(high)];
  return from === to ? `starts in about ${from}` : `starts in ${from} to ${to}`;
}

/** What stands for a figure that could not be read. */
export function formatMissing(reading: Reading): string {
  return `not available: ${reading.reason ?? 'no reason given'}`;
}

/** A message as a sentence: it begins large and ends with a stop. */
export function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** A per cent figure as `83 %`. */
export function formatPercent(value: number): string {
  return `${Math.round(value)} %`;
}

/** The first of many: `1 GPU`, `2 GPUs`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function trimmed(value: number): string {
  return value >= 100 ? `${Math.round(value)}` : value.toFixed(1).replace(/\.0$/, '');
}

function twoUnits(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;
}
