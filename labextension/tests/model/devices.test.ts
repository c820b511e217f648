import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  isCompact,
  missingFigures,
  occupancy,
  sharedModel,
  shortModel,
  shortUuid
} from '../../src/model/devices';
import { device, job } from '../builders';

const { uuid } = device();
const here = { state: 'running', gpus: [uuid] } as const;

test('a device is yours, another’s, free, or used from outside', () => {
  assert.deepEqual(occupancy(device(), [job({ ...here, gpus: [uuid] })]), {
    tone: 'mine',
    chip: 'yours',
    detail: 'ana: train.ipynb · fit'
  });
  const another = job({
    state: 'running',
    gpus: [uuid],
    mine: false,
    owner: 'bob',
    name: null,
    notebook: null
  });
  assert.deepEqual(occupancy(device(), [another]), {
    tone: 'busy',
    chip: 'bob',
    detail: 'bob’s cell'
  });
  assert.deepEqual(occupancy(device(), [job()]), { tone: 'free', chip: 'free', detail: '' });
  const process = {
    pid: 7,
    used_bytes: { value: null, reason: 'no permission' as const },
    owner_uid: { value: 1007, reason: null }
  };
  assert.deepEqual(occupancy(device({ processes: [process] }), []), {
    tone: 'warn',
    chip: 'outside',
    detail: 'Used outside Workbench by uid 1007'
  });
});

test('a device whose processes cannot be seen is never called free', () => {
  const { chip, detail } = occupancy(device({ processes_reason: 'no permission' }), []);
  assert.equal(chip, 'no job');
  assert.equal(detail, 'Use from outside cannot be seen: no permission');
});

test('a device in trouble says so before who is on it', () => {
  const states = (['lost', 'missing', 'unreadable', 'stale'] as const).map(status =>
    occupancy(device({ status, stale_age_s: status === 'stale' ? 47 : null }), [
      job({ ...here, gpus: [uuid] })
    ])
  );
  assert.deepEqual(
    states.map(({ tone, chip }) => [tone, chip]),
    [
      ['bad', 'lost'],
      ['bad', 'missing'],
      ['bad', 'unreadable'],
      ['warn', '47 s old']
    ]
  );
  assert.ok(states.every(({ detail }) => detail.endsWith(' · ana: train.ipynb · fit')));
});

test('names are shortened without losing what tells devices apart', () => {
  assert.equal(shortModel('NVIDIA A100-SXM4-80GB'), 'A100-SXM4-80GB');
  assert.equal(shortUuid(uuid), 'GPU-5e1f0000');
  assert.equal(shortUuid('SIM-3'), 'SIM-3');
  assert.equal(shortUuid('unknown:1'), 'unknown:1');
});

test('many devices are rows, under the name of their model where they share it', () => {
  const four = [1, 2, 3, 4].map(index => device({ index }));
  assert.equal(isCompact(four), false);
  assert.equal(isCompact([...four, device()]), true);
  assert.equal(sharedModel(four), 'NVIDIA A100-SXM4-80GB');
  assert.equal(sharedModel([...four, device({ name: 'other' })]), null);
  assert.equal(sharedModel([]), null);
});

test('figures that are all missing for one reason are said to be so once', () => {
  const none = { value: null, reason: 'simulated' as const };
  const some = { value: 1, reason: null };
  assert.equal(missingFigures(device()), null);
  assert.equal(missingFigures(device({ util_pct: none, memory_used_bytes: some })), null);
  assert.equal(missingFigures(device({ util_pct: none, memory_used_bytes: none })), 'simulated');
});
