import React from 'react';

interface ISectionProps {
  title: string;
  /** Beside the title, right-aligned. */
  aside?: string;
  isOpen?: boolean;
}

/** A part of the sidebar that can be folded. */
export function Section(props: React.PropsWithChildren<ISectionProps>): React.JSX.Element {
  return (
    <details className="gw-section" open={props.isOpen ?? true}>
      <summary>
        <h3>{props.title}</h3>
        {props.aside && <span className="gw-aside">{props.aside}</span>}
      </summary>
      {props.children}
    </details>
  );
}
