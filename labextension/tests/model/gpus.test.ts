import assert from 'node:assert/strict';
import { test } from 'node:test';

import { gpuAnswer } from '../../src/model/gpus';
import type { Link } from '../../src/model/link';
import type { NvmlStatus, Status } from '../../src/model/protocol';
import { device, failure, job, sample, status } from '../builders';

const LIVE: Link = { kind: 'live' };

function text(lab: Status | null, link: Link = LIVE): string {
  return gpuAnswer(lab, null, link).text;
}

function withoutGpu(state: NvmlStatus): Status {
  return status({ sample: sample({ nvml: { state, message: '', next_step: '' } }) });
}

test('none, some but not mine, and mine are three different texts', () => {
  const devices = [device({ uuid: 'a' }), device({ uuid: 'b' })];
  const lab = status({ sample: sample({ devices }) });
  assert.equal(text(withoutGpu('ok')), 'No GPU');
  assert.equal(text(lab), '2 GPUs, none leased to you');
  const jobs = [job({ gpus: ['a'] }), job({ mine: false, gpus: ['b'] })];
  assert.equal(text({ ...lab, jobs }), '1 GPU leased to you');
});

test('a driver that cannot be read is not a host without a GPU', () => {
  assert.equal(text(withoutGpu('no library')), 'No GPU');
  assert.equal(text(withoutGpu('version mismatch')), 'GPUs cannot be read');
  assert.equal(text(withoutGpu('not read yet')), 'GPUs are being looked for');
});

test('what is not known is said to be not known, with the reason', () => {
  assert.equal(text(null), 'GPU: not known');
  assert.equal(text(status({ sample: null })), 'GPU: not known');
  assert.equal(text(status(), { kind: 'server-half-missing' }), 'GPU: not known');
  assert.deepEqual(gpuAnswer(status(), failure(), LIVE), {
    text: 'GPU: not known',
    title: 'Nothing listens.'
  });
});

test('simulated devices are called so', () => {
  const lab = status({ sample: sample({ devices: [device()] }) });
  lab.controller.simulated = true;
  assert.equal(text(lab), '1 GPU, none leased to you (SIMULATED)');
});
