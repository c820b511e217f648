import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { IHistory } from '../../src/model/history';
import { sparkline, withSample } from '../../src/model/history';
import { device, sample } from '../builders';

function at(at_unix_s: number, value: number | null) {
  const reason = value === null ? ('no permission' as const) : null;
  return sample({ at_unix_s, devices: [device({ uuid: 'a', util_pct: { value, reason } })] });
}

function after(...samples: [number, number | null][]) {
  let history: IHistory = new Map();
  for (const [atS, value] of samples) {
    history = withSample(history, at(atS, value));
  }
  return history.get('a') ?? [];
}

test('a minute is kept, and a sample that is not newer changes nothing', () => {
  const points = after([0, 1], [30, 2], [30, 99], [61, 3]);
  assert.deepEqual(
    points.map(point => point.value),
    [2, 3]
  );
});

test('the newest point is at the right edge and 100 % at the top', () => {
  assert.deepEqual(sparkline(after([54, 0], [60, 100]), 60, 10), ['54.0,10.0 60.0,0.0']);
});

test('a figure that could not be read and a gap in time both end a line', () => {
  const lines = sparkline(
    after([0, 1], [2, 1], [4, null], [6, 1], [8, 1], [20, 1], [22, 1]),
    60,
    10
  );
  assert.equal(lines.length, 3);
});

test('a single point or none is no line', () => {
  assert.deepEqual(sparkline(after([0, 1]), 60, 10), []);
  assert.deepEqual(sparkline([], 60, 10), []);
});
