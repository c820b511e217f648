import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isCancellable, listed, resources, stateLabel, timing, title } from '../../src/model/queue';
import { job } from '../builders';

const NOW_S = 1300;

test('mine are listed alone or all in the controller’s order', () => {
  const jobs = [job({ id: '1', mine: false }), job({ id: '2' }), job({ id: '3', mine: false })];
  assert.deepEqual(
    listed(jobs, 'all').map(each => each.id),
    ['1', '2', '3']
  );
  assert.deepEqual(
    listed(jobs, 'mine').map(each => each.id),
    ['2']
  );
});

test('another’s job is named by its owner and kind', () => {
  assert.equal(title(job({ name: null, owner: 'bob', kind: 'notebook' })), 'bob’s notebook');
});

test('the chip tells the place in the queue, the state or the outcome', () => {
  assert.equal(stateLabel(job({ place: 1 })), 'next');
  assert.equal(stateLabel(job({ place: 4 })), 'place 4');
  assert.equal(stateLabel(job({ place: null })), 'queued');
  assert.equal(stateLabel(job({ state: 'running', place: null })), 'running');
  assert.equal(stateLabel(job({ state: 'starting', place: null })), 'starting');
  assert.equal(stateLabel(job({ state: 'starting', place: null, kind: 'kernel' })), 'ready');
  assert.equal(stateLabel(job({ state: 'ended', outcome: 'timed out' })), 'timed out');
});

test('when: waiting with or without an estimate, running with its limit, ended', () => {
  assert.equal(timing(job(), NOW_S), 'waiting for 5 min');
  const estimate = { low_s: 60, high_s: 120, reason: '' };
  assert.equal(timing(job({ estimate }), NOW_S), 'starts in 1 min to 2 min · waiting for 5 min');
  const running = job({ state: 'running', started_unix_s: 1290 });
  assert.equal(timing(running, NOW_S), 'running for 10 s');
  const request = { ...running.request, time_limit_s: 1200 };
  assert.equal(timing({ ...running, request }, NOW_S), 'running for 10 s, limit 20 min');
  assert.equal(timing(job({ state: 'starting' }), NOW_S), '');
  assert.equal(timing(job({ state: 'ended', ended_unix_s: 1240 }), NOW_S), '1 min ago');
});

test('a job without GPUs asks for cores alone', () => {
  assert.equal(resources(job()), '1 GPU, 4 cores');
  const none = job();
  assert.equal(resources({ ...none, request: { ...none.request, gpus: 0 } }), '4 cores');
});

test('only a job of mine that is not ending can be cancelled', () => {
  assert.equal(isCancellable(job()), true);
  assert.equal(isCancellable(job({ state: 'running' })), true);
  assert.equal(isCancellable(job({ state: 'stopping' })), false);
  assert.equal(isCancellable(job({ state: 'ended' })), false);
  assert.equal(isCancellable(job({ mine: false })), false);
});
