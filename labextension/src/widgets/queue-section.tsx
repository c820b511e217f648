import React from 'react';

import type { JobView, Status } from '../model/protocol';
import type { Filter } from '../model/queue';
import { listed, nowS } from '../model/queue';
import { JobItem } from './job-item';
import { Section } from './section';

interface IQueueProps {
  status: Status;
  cancelling: ReadonlySet<string>;
  onCancel: (job: JobView) => void;
}

/** Live jobs in the order in which they are considered, and those that ended lately. */
export function QueueSection({ status, cancelling, onCancel }: IQueueProps): React.JSX.Element {
  const [filter, setFilter] = React.useState<Filter>('all');
  const jobs = listed(status.jobs, filter);
  const now = nowS(status);
  const running = status.jobs.filter(job => job.state !== 'queued').length;
  const item = (job: JobView): React.JSX.Element => (
    <JobItem
      key={job.id}
      job={job}
      now={now}
      isCancelling={cancelling.has(job.id)}
      onCancel={onCancel}
    />
  );
  return (
    <>
      <Section title="Queue" aside={`${running} running, ${status.jobs.length - running} waiting`}>
        <FilterButtons filter={filter} jobs={status.jobs} onFilter={setFilter} />
        {jobs.length > 0 ? (
          <ul className="gw-jobs">{jobs.map(item)}</ul>
        ) : (
          <EmptyQueue isAll={status.jobs.length === 0} />
        )}
      </Section>
      {status.ended.length > 0 && (
        <Section title="Lately ended" aside={`${status.ended.length}`} isOpen={false}>
          <ul className="gw-jobs">{status.ended.map(item)}</ul>
        </Section>
      )}
    </>
  );
}

interface IFilterProps {
  filter: Filter;
  jobs: readonly JobView[];
  onFilter: (filter: Filter) => void;
}

function FilterButtons({ filter, jobs, onFilter }: IFilterProps): React.JSX.Element | null {
  if (jobs.length === 0) {
    return null;
  }
  const choices: [Filter, string][] = [
    ['all', `All (${jobs.length})`],
    ['mine', `Mine (${listed(jobs, 'mine').length})`]
  ];
  return (
    <div className="gw-filter" role="group" aria-label="Jobs to list">
      {choices.map(([choice, text]) => (
        <button
          key={choice}
          type="button"
          aria-pressed={filter === choice}
          onClick={() => onFilter(choice)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

function EmptyQueue({ isAll }: { isAll: boolean }): React.JSX.Element {
  return isAll ? (
    <p className="gw-empty">
      Nothing runs and nothing waits. Put <code>%%gpu-schedule</code> above a cell to queue it.
    </p>
  ) : (
    <p className="gw-empty">
      None of these jobs is yours. Put <code>%%gpu-schedule</code> above a cell to join them.
    </p>
  );
}
