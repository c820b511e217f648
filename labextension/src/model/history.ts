import type { Sample } from './protocol';

/** One figure at one moment; null where it could not be read. */
export interface IPoint {
  atS: number;
  value: number | null;
}

/** Use in per cent by device UUID, oldest first; at most the last minute. */
export type IHistory = ReadonlyMap<string, readonly IPoint[]>;

const WINDOW_S = 60;
/** Between points further apart than this nothing is known: no line is drawn. */
const GAP_S = 8;

/** The history with one more sample; a sample that is not newer changes nothing. */
export function withSample(history: IHistory, sample: Sample): IHistory {
  const atS = sample.at_unix_s;
  const next = new Map<string, readonly IPoint[]>();
  for (const device of sample.devices) {
    const points = history.get(device.uuid) ?? [];
    const last = points[points.length - 1];
    if (last && last.atS >= atS) {
      next.set(device.uuid, points);
      continue;
    }
    const recent = points.filter(point => point.atS > atS - WINDOW_S);
    next.set(device.uuid, [...recent, { atS, value: device.util_pct.value }]);
  }
  return next;
}

/**
 * Polylines of a sparkline in a box of `width` × `height`, newest at the right edge.
 * A figure that could not be read, or a gap in time, ends a line.
 */
export function sparkline(points: readonly IPoint[], width: number, height: number): string[] {
  const last = points[points.length - 1];
  if (!last) {
    return [];
  }
  const lines: string[][] = [];
  let line: string[] = [];
  let previousS = -Infinity;
  for (const { atS, value } of points) {
    if (line.length > 0 && (value === null || atS - previousS > GAP_S)) {
      lines.push(line);
      line = [];
    }
    if (value !== null) {
      const x = width * (1 - (last.atS - atS) / WINDOW_S);
      const y = height * (1 - Math.min(Math.max(value, 0), 100) / 100);
      line.push(`${x.toFixed(1)},${y.toFixed(1)}`);
      previousS = atS;
    }
  }
  return [...lines, line].filter(each => each.length > 1).map(each => each.join(' '));
}
