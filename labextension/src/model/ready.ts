import { baseName } from './devices';
import { count } from './format';
import type { JobView } from './protocol';

/** A ticket that is granted for longer than this is not one whose kernel starts right now. */
const SETTLE_MS = 3000;
/** Characters of a name in a notification, which JupyterLab cuts at 140. */
const MOST_NAME = 45;

/** Whether this is a kernel ticket of the user's whose units are held until the kernel starts. */
export function isReady(job: JobView): boolean {
  return job.mine && job.kind === 'kernel' && job.state === 'starting';
}

/**
 * What a notification says of a ready ticket.
 * @param how What the user can do about it, without a stop: `Start its kernel`.
 */
export function readyMessage(job: JobView, how: string): string {
  const many = job.request.gpus > 1;
  const gpus = many ? count(job.request.gpus, 'GPU') : 'GPU';
  const whose = shortened(job.notebook === null ? (job.name ?? job.kind) : baseName(job.notebook));
  const limitS = job.request.wait_limit_s;
  const until = limitS === null ? '' : ` by ${clock(job.submitted_unix_s + limitS)}`;
  return `The ${gpus} for ${whose} ${many ? 'are' : 'is'} ready. ${how}${until}.`;
}

/**
 * The path below the server's root, as the contents API spells it; null where it lies elsewhere.
 * @param root The root's absolute path; empty where it is not known.
 */
export function pathBelow(root: string, absolute: string): string | null {
  const folder = root.endsWith('/') ? root : `${root}/`;
  return root !== '' && absolute.startsWith(folder) ? absolute.slice(folder.length) : null;
}

/** Tells of each ready ticket once, and takes that back when it is started, given back or over. */
export class ReadyWatch {
  /** @param tell Says it; returns what takes it back. */
  constructor(private readonly tell: (job: JobView) => () => void) {}

  /** Take note of the live jobs as they are now. */
  look(jobs: readonly JobView[]): void {
    const ready = new Map(jobs.filter(isReady).map(job => [job.id, job]));
    for (const [id, takeBack] of this.known) {
      if (!ready.has(id)) {
        this.known.delete(id);
        takeBack();
      }
    }
    for (const [id, job] of ready) {
      if (!this.known.has(id)) {
        const timer = setTimeout(() => this.known.set(id, this.tell(job)), SETTLE_MS);
        this.known.set(id, () => clearTimeout(timer));
      }
    }
  }

  private readonly known = new Map<string, () => void>();
}

function shortened(name: string): string {
  const half = Math.floor(MOST_NAME / 2);
  return name.length > MOST_NAME ? `${name.slice(0, half)}…${name.slice(-half)}` : name;
}

function clock(unixS: number): string {
  return new Date(1000 * unixS).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}
