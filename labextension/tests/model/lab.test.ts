import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Lab } from '../../src/model/lab';
import { Refusal } from '../../src/model/link';
import { failure, job, status } from '../builders';

function labThat(cancel: () => Promise<void>) {
  const never = () => new Promise<never>(() => undefined);
  return new Lab({ half: never, status: never, watch: () => ({ close: () => undefined }), cancel });
}

const accepts = () => Promise.resolve();

test('a failure keeps the last news, and the next news clears it', () => {
  const lab = labThat(accepts);
  let changes = 0;
  lab.changed.connect(() => changes++);
  lab.onNews(status());
  lab.onNews(failure());
  assert.deepEqual([lab.status?.type, lab.failure?.type], ['Status', 'Failure']);
  lab.onNews(status());
  assert.equal(lab.failure, null);
  assert.equal(changes, 3);
});

test('a job is being cancelled until it stops or is gone', async () => {
  const lab = labThat(accepts);
  lab.onNews(status({ jobs: [job({ id: '1' }), job({ id: '2' })] }));
  await lab.cancel('1');
  await lab.cancel('2');
  lab.onNews(status({ jobs: [job({ id: '1' }), job({ id: '2', state: 'stopping' })] }));
  assert.deepEqual([...lab.cancelling], ['1']);
  lab.onNews(status());
  assert.deepEqual([...lab.cancelling], []);
});

test('a refused cancellation is passed on, and the job can be cancelled again', async () => {
  const lab = labThat(() => Promise.reject(new Refusal(503, 'down', failure())));
  await assert.rejects(lab.cancel('1'), /down/);
  assert.deepEqual([...lab.cancelling], []);
});
