import { baseName } from './devices';
import { count, formatEstimate, formatSpan } from './format';
import type { JobView, Status } from './protocol';
import { isReady } from './ready';

/** Which jobs are listed. */
export type Filter = 'all' | 'mine';

/** The live jobs in the controller's order. */
export function listed(jobs: readonly JobView[], filter: Filter): JobView[] {
  return jobs.filter(job => filter === 'all' || job.mine);
}

/** The time that a status speaks of, in the server's own clock. */
export function nowS(status: Status): number {
  return status.sample?.at_unix_s ?? Date.now() / 1000;
}

/** What a job is called: its own name, or where that may not be seen whose it is. */
export function title(job: JobView): string {
  return job.name ?? `${job.owner}’s ${job.kind}`;
}

/** The notebook's file name; empty where there is none or it may not be seen. */
export function notebookName(job: JobView): string {
  return job.notebook === null ? '' : baseName(job.notebook);
}

/** What a job asked for: `2 GPUs, 16 cores`. */
export function resources(job: JobView): string {
  const cores = count(job.cores, 'core');
  return job.request.gpus > 0 ? `${count(job.request.gpus, 'GPU')}, ${cores}` : cores;
}

/** The word on a job's chip. */
export function stateLabel(job: JobView): string {
  if (job.state === 'queued' && job.place !== null) {
    return job.place === 1 ? 'next' : `place ${job.place}`;
  }
  if (isReady(job)) {
    return 'ready';
  }
  return job.state === 'ended' ? (job.outcome ?? 'ended') : job.state;
}

/** When: how long it has run or waited, when it starts, how long ago it ended. */
export function timing(job: JobView, now: number): string {
  if (job.state === 'ended') {
    return job.ended_unix_s === null ? '' : `${formatSpan(now - job.ended_unix_s)} ago`;
  }
  if (job.state === 'queued') {
    const waited = `waiting for ${formatSpan(now - job.submitted_unix_s)}`;
    return job.estimate === null ? waited : `${formatEstimate(job.estimate)} · ${waited}`;
  }
  const since = job.started_unix_s;
  if (since === null) {
    return '';
  }
  const limit = job.request.time_limit_s;
  const most = limit === null ? '' : `, limit ${formatSpan(limit)}`;
  return `running for ${formatSpan(now - since)}${most}`;
}

/** Whether the user may end it: his own, and not ending already. */
export function isCancellable(job: JobView): boolean {
  return job.mine && job.state !== 'ended' && job.state !== 'stopping';
}
