import React from 'react';

import type { ControllerView } from '../model/protocol';

const MODES = {
  embedded: {
    text: 'your own controller',
    title: 'Only your jobs are scheduled here; nobody else shares this queue'
  },
  lab: { text: 'lab controller', title: 'One queue for everybody on this host' }
};

/** Which host this is, and who schedules it. */
export function Header({ controller }: { controller: ControllerView }): React.JSX.Element {
  const mode = MODES[controller.mode];
  return (
    <header className="gw-header">
      <h2 className="gw-host" title={controller.hostname}>
        {controller.hostname}
      </h2>
      <div className="gw-header-line">
        <span className="gw-muted" title={mode.title}>
          {mode.text}
        </span>
        {controller.simulated && (
          <span className="gw-simulated" title="No GPU is used: simulated devices run on the CPU">
            SIMULATED
          </span>
        )}
      </div>
    </header>
  );
}
