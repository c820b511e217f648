import React from 'react';

import type { IPoint } from '../model/history';
import { sparkline } from '../model/history';

const WIDTH = 56;
const HEIGHT = 14;

/** The last minute of a figure; nothing before there are two points. */
export function Sparkline({ points }: { points: readonly IPoint[] }): React.JSX.Element | null {
  const lines = sparkline(points, WIDTH, HEIGHT);
  if (lines.length === 0) {
    return null;
  }
  return (
    <svg className="gw-sparkline" viewBox={`-1 -1 ${WIDTH + 2} ${HEIGHT + 2}`} aria-hidden="true">
      {lines.map(line => (
        <polyline key={line} points={line} />
      ))}
    </svg>
  );
}
