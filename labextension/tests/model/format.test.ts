import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  count,
  formatBytes,
  formatEstimate,
  formatMissing,
  formatShare,
  formatSpan,
  sentence
} from '../../src/model/format';

const GIB = 2 ** 30;

test('bytes are given in GiB with at most one decimal, small ones in MiB', () => {
  assert.equal(formatBytes(24.06 * GIB), '24.1 GiB');
  assert.equal(formatBytes(80 * GIB), '80 GiB');
  assert.equal(formatBytes(143.4 * GIB), '143 GiB');
  assert.equal(formatBytes(512 * 2 ** 20), '512 MiB');
  assert.equal(formatShare(0.4 * GIB, 80 * GIB), '0.4 / 80 GiB');
  assert.equal(formatShare(0, 2 ** 29), '0 / 512 MiB');
});

test('a span has at most two units and is never negative', () => {
  const spans: [number, string][] = [
    [-3, '0 s'],
    [59.4, '59 s'],
    [59.6, '1 min'],
    [3599, '1 h'],
    [7500, '2 h 5 min'],
    [86_399, '1 d'],
    [273_600, '3 d 4 h']
  ];
  for (const [seconds, text] of spans) {
    assert.equal(formatSpan(seconds), text);
  }
});

test('an estimate is never more exact than it is known', () => {
  const estimate = (low_s: number | null, high_s: number | null, reason = '') =>
    formatEstimate({ low_s, high_s, reason });
  assert.equal(estimate(300, 720), 'starts in 5 min to 12 min');
  assert.equal(estimate(300, 310), 'starts in about 5 min');
  assert.equal(estimate(null, 720), 'starts within 12 min');
  assert.equal(estimate(0, 720), 'starts within 12 min');
  assert.equal(estimate(300, null), 'starts in 5 min at the earliest');
  assert.equal(estimate(null, null), 'start not known');
  assert.equal(estimate(null, null, 'no time limit'), 'start not known: no time limit');
});

test('a missing figure names its reason', () => {
  assert.equal(
    formatMissing({ value: null, reason: 'no permission' }),
    'not available: no permission'
  );
});

test('one is not many', () => {
  assert.equal(count(1, 'GPU'), '1 GPU');
  assert.equal(count(0, 'GPU'), '0 GPUs');
});

test('a message becomes a sentence', () => {
  assert.equal(sentence('no driver'), 'No driver.');
  assert.equal(sentence('Run `make`.'), 'Run `make`.');
});
