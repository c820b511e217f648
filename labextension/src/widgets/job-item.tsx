import { closeIcon } from '@jupyterlab/ui-components';
import React from 'react';

import type { Tone } from '../model/devices';
import type { JobView } from '../model/protocol';
import { isCancellable, notebookName, resources, stateLabel, timing, title } from '../model/queue';
import { Chip } from './chip';

interface IJobProps {
  job: JobView;
  /** The time on the server's clock. */
  now: number;
  isCancelling: boolean;
  onCancel: (job: JobView) => void;
}

/** One job: whose, what, how it stands and why, and a way to end it. */
export function JobItem({ job, now, isCancelling, onCancel }: IJobProps): React.JSX.Element {
  const name = title(job);
  return (
    <li
      className={`gw-job${job.mine ? ' gw-job-mine' : ''}`}
      aria-label={`${name} of ${job.owner}`}
    >
      <div className="gw-card-head">
        <span className="gw-job-name" title={nameTitle(job)}>
          {name}
        </span>
        <Chip tone={tone(job)} text={isCancelling ? 'cancelling' : stateLabel(job)} />
        {isCancellable(job) && (
          <button
            type="button"
            className="gw-cancel"
            disabled={isCancelling}
            title={`Cancel ${name}`}
            aria-label={`Cancel ${name}`}
            onClick={() => onCancel(job)}
          >
            <closeIcon.react tag="span" width="14px" height="14px" />
          </button>
        )}
      </div>
      {job.notebook && (
        <div className="gw-ellipsis" title={job.notebook}>
          {notebookName(job)}
        </div>
      )}
      <div className="gw-muted">{whoAndWhat(job)}</div>
      {job.reason && (
        <div className="gw-reason" title={job.reason}>
          {job.reason}
        </div>
      )}
      <div className="gw-muted">{timing(job, now)}</div>
    </li>
  );
}

function tone(job: JobView): Tone {
  switch (job.state) {
    case 'queued':
      return 'unknown';
    case 'ended':
      return job.outcome === 'done' ? 'free' : job.outcome === 'cancelled' ? 'unknown' : 'bad';
    case 'stopping':
      return 'warn';
    default:
      return job.mine ? 'mine' : 'busy';
  }
}

function nameTitle(job: JobView): string {
  return job.name ?? 'Names of other people’s jobs are not shown';
}

function whoAndWhat(job: JobView): string {
  const priority = job.priority === 'normal' ? [] : [`${job.priority} priority`];
  const owner = job.mine ? ['you'] : job.name === null ? [] : [job.owner];
  return [...owner, ...priority, resources(job)].join(' · ');
}
