import React from 'react';

import { count } from '../model/format';
import type { HostSample, Reading } from '../model/protocol';
import { BytesMeter, PercentMeter } from './meter';

/** The processor and the memory of the host. */
export function HostCard({ host }: { host: HostSample }): React.JSX.Element {
  return (
    <li className="gw-card" aria-label="Processor and memory of the host">
      <div className="gw-card-head">
        <span className="gw-model gw-ellipsis">CPU</span>
        <span className="gw-muted" title="Cores that jobs here may use, of those that the host has">
          {cores(host)}
        </span>
      </div>
      <PercentMeter
        label="all cores"
        title="Use of all the host’s cores"
        reading={host.cpu_util_pct}
      />
      <BytesMeter
        label="memory"
        title="Host memory that is not available, of what may be used"
        used={used(host)}
        total={host.memory_total_bytes}
      />
    </li>
  );
}

function cores(host: HostSample): string {
  const { value: usable } = host.cores_usable;
  const { value: total } = host.cores_total;
  if (usable === null || usable === total) {
    return total === null ? 'cores not known' : count(total, 'core');
  }
  return total === null ? count(usable, 'core') : `${usable} of ${count(total, 'core')}`;
}

function used(host: HostSample): Reading {
  const { memory_total_bytes: total, memory_available_bytes: available } = host;
  if (total.value === null) {
    return total;
  }
  return available.value === null
    ? available
    : { value: total.value - available.value, reason: null };
}
