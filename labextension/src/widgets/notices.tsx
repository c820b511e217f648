import React from 'react';

import { formatSpan, sentence } from '../model/format';
import type { Link } from '../model/link';

interface INoticeProps {
  tone: 'info' | 'warn' | 'bad';
  text: string;
  nextStep?: string;
  onRetry?: () => void;
}

/** A sentence above the devices, with what can be done about it. */
export function Notice({ tone, text, nextStep, onRetry }: INoticeProps): React.JSX.Element {
  return (
    <div className={`gw-notice gw-notice-${tone}`}>
      <p>{sentence(text)}</p>
      {nextStep && <p className="gw-next-step">{sentence(nextStep)}</p>}
      {onRetry && (
        <button type="button" className="gw-button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** How long nothing was heard, as a sentence behind another one; empty where that is not long. */
export function noNews(ageS: number | null): string {
  return ageS === null ? '' : ` No news for ${formatSpan(ageS)}.`;
}

interface ILinkNoticeProps {
  link: Link;
  /** Seconds since the figures were measured, where that is long ago. */
  ageS: number | null;
  onRetry: () => void;
}

/** How the page is connected, where that is worth a word. */
export function LinkNotice({ link, ageS, onRetry }: ILinkNoticeProps): React.JSX.Element | null {
  const age = noNews(ageS);
  switch (link.kind) {
    case 'unreachable':
      return <Notice tone="bad" text={link.message + age} onRetry={onRetry} />;
    case 'polling':
      return (
        <Notice
          tone="info"
          text={`Updated every 2 s: the live connection (websocket) was refused, by a proxy perhaps.${age}`}
        />
      );
    case 'connecting':
      return <Notice tone="info" text={`Connecting…${age}`} />;
    default:
      return age ? <Notice tone="warn" text={age.trim()} /> : null;
  }
}
