import React from 'react';

import { formatMissing, formatPercent, formatShare } from '../model/format';
import type { Reading } from '../model/protocol';

interface IMeterProps {
  label: string;
  /** What the figure means, in a sentence. */
  title: string;
  /** 0 to 100; null where it is not known. */
  percent: number | null;
  /** The figure in words, or why there is none. */
  text: string;
  isCompact?: boolean;
}

/** A labelled bar. One whose figure is not known is hatched and says so: it is never empty. */
function Meter({ label, title, percent, text, isCompact }: IMeterProps): React.JSX.Element {
  const isKnown = percent !== null;
  return (
    <div className={`gw-meter${isCompact ? ' gw-compact' : ''}`} title={`${title}\n${text}`}>
      {!isCompact && <span className="gw-meter-label">{label}</span>}
      <span className={`gw-meter-value${isKnown ? '' : ' gw-muted'}`}>
        {isKnown ? text : 'n/a'}
      </span>
      {isKnown ? (
        <div
          className="gw-bar"
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(percent)}
          aria-valuetext={text}
        >
          <div
            className="gw-bar-fill"
            style={{ width: `${Math.min(Math.max(percent, 0), 100)}%` }}
          />
        </div>
      ) : (
        <div className="gw-bar gw-bar-unknown" role="img" aria-label={`${label}: ${text}`} />
      )}
    </div>
  );
}

interface IPercentMeterProps {
  label: string;
  title: string;
  reading: Reading;
  isCompact?: boolean;
}

/** A bar for a figure in per cent. */
export function PercentMeter({ reading, ...rest }: IPercentMeterProps): React.JSX.Element {
  const { value } = reading;
  const text = value === null ? formatMissing(reading) : formatPercent(value);
  return <Meter {...rest} percent={value} text={text} />;
}

interface IBytesMeterProps {
  label: string;
  title: string;
  used: Reading;
  total: Reading;
  isCompact?: boolean;
}

/** A bar for bytes used of bytes there. */
export function BytesMeter({ used, total, ...rest }: IBytesMeterProps): React.JSX.Element {
  if (used.value === null || total.value === null || total.value <= 0) {
    const missing = used.value === null ? used : total;
    return <Meter {...rest} percent={null} text={formatMissing(missing)} />;
  }
  const percent = (100 * used.value) / total.value;
  return <Meter {...rest} percent={percent} text={formatShare(used.value, total.value)} />;
}
