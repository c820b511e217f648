import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { isReady, pathBelow, readyMessage, ReadyWatch } from '../../src/model/ready';
import { job } from '../builders';

const ready = job({
  kind: 'kernel',
  name: 'Python 3 (GPU lease)',
  notebook: '/home/ana/work/train.ipynb',
  state: 'starting',
  submitted_unix_s: Date.UTC(2026, 10, 30, 14, 0) / 1000,
  request: { ...job().request, kind: 'kernel', wait_limit_s: 600 }
});

test('ready is a granted kernel ticket of the user’s own, and nothing else', () => {
  assert.equal(isReady(ready), true);
  for (const other of [
    { state: 'queued' },
    { state: 'running' },
    { state: 'ended' },
    { mine: false },
    { kind: 'cell' }
  ] as const) {
    assert.equal(isReady(job({ ...ready, ...other })), false);
  }
});

test('the message says for what, what to do and until when, and is never cut', () => {
  const until = new Date(Date.UTC(2026, 10, 30, 14, 10));
  const time = until.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  assert.equal(
    readyMessage(ready, 'Start its kernel'),
    `The GPU for train.ipynb is ready. Start its kernel by ${time}.`
  );
  const two = { ...ready, request: { ...ready.request, gpus: 2, wait_limit_s: null } };
  assert.equal(readyMessage(two, 'Go'), 'The 2 GPUs for train.ipynb are ready. Go.');
  const nameless = { ...ready, notebook: null };
  assert.match(readyMessage(nameless, 'Go'), /^The GPU for Python 3 \(GPU lease\) is ready\./);
  const long = { ...ready, notebook: `/home/ana/${'long_'.repeat(60)}.ipynb` };
  assert.ok(readyMessage(long, 'Ask for it again').length <= 140);
});

test('a path is below the root, or it is not', () => {
  assert.equal(pathBelow('/home/ana', '/home/ana/work/a.ipynb'), 'work/a.ipynb');
  assert.equal(pathBelow('/', '/work/a.ipynb'), 'work/a.ipynb');
  assert.equal(pathBelow('/home/ana', '/home/anastasia/a.ipynb'), null);
  assert.equal(pathBelow('', '/work/a.ipynb'), null);
});

test('each ticket is told once, when it stays ready, and taken back when it is over', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const told: string[] = [];
  const watch = new ReadyWatch(each => {
    told.push(`+${each.id}`);
    return () => told.push(`-${each.id}`);
  });
  const [one, two] = [
    { ...ready, id: '1' },
    { ...ready, id: '2' }
  ];
  watch.look([one, two]);
  watch.look([one]); // the other one's kernel has started at once
  mock.timers.tick(60_000);
  watch.look([one, { ...two, state: 'running' }]);
  mock.timers.tick(60_000);
  assert.deepEqual(told, ['+1']);
  watch.look([{ ...one, state: 'running' }]);
  watch.look([]);
  assert.deepEqual(told, ['+1', '-1']);
  watch.look([one]);
  mock.timers.tick(60_000);
  assert.deepEqual(told, ['+1', '-1', '+1']);
  mock.timers.reset();
});
