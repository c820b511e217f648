import React from 'react';

import type { Tone } from '../model/devices';

/** A word with a coloured dot; the word carries the meaning, the colour only helps. */
export function Chip(props: { tone: Tone; text: string; title?: string }): React.JSX.Element {
  return (
    <span className={`gw-chip gw-tone-${props.tone}`} title={props.title ?? props.text}>
      <span className="gw-dot" aria-hidden="true" />
      <span className="gw-ellipsis">{props.text}</span>
    </span>
  );
}
