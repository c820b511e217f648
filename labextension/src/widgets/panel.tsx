import React from 'react';

import { sentence } from '../model/format';
import type { JobView, Status } from '../model/protocol';
import type { ILab } from '../tokens';
import { DeviceSection } from './device-section';
import { Header } from './header';
import { LinkNotice, noNews, Notice } from './notices';
import { QueueSection } from './queue-section';
import { MismatchHelp, MissingHalfHelp } from './setup-help';

interface IPanelProps {
  lab: ILab;
  onCancel: (job: JobView) => void;
}

/** Figures older than this are said to be old, and drawn pale. */
const OLD_S = 10;

/** Everything in the sidebar. */
export function Panel({ lab, onCancel }: IPanelProps): React.JSX.Element {
  const { link, status, failure } = lab;
  if (link.kind === 'server-half-missing') {
    return <MissingHalfHelp onRetry={() => lab.retry()} />;
  }
  if (link.kind === 'mismatch') {
    return <MismatchHelp software={link.software} onRetry={() => lab.retry()} />;
  }
  const isCut = failure !== null || link.kind === 'unreachable';
  const isOld = status?.sample != null && (isCut || lab.ageS() > OLD_S);
  const ageS = isOld ? lab.ageS() : null;
  return (
    <div className="gw-panel">
      {status && <Header controller={status.controller} />}
      <div role="status">
        <LinkNotice link={link} ageS={failure ? null : ageS} onRetry={() => lab.retry()} />
        {failure && (
          <Notice
            tone="bad"
            text={sentence(failure.message) + noNews(ageS)}
            nextStep={failure.next_step}
            onRetry={() => lab.retry()}
          />
        )}
        {status?.notices.map(text => (
          <Notice key={text} tone="warn" text={text} />
        ))}
      </div>
      {status && (
        <div className={isOld ? 'gw-old' : undefined}>
          <Body lab={lab} status={status} onCancel={onCancel} />
        </div>
      )}
    </div>
  );
}

function Body({ lab, status, onCancel }: IPanelProps & { status: Status }): React.JSX.Element {
  return (
    <>
      {status.sample ? (
        <DeviceSection sample={status.sample} jobs={status.jobs} history={lab.history} />
      ) : (
        <p className="gw-empty">The first figures are on their way.</p>
      )}
      <QueueSection status={status} cancelling={lab.cancelling} onCancel={onCancel} />
    </>
  );
}
