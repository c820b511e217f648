import React from 'react';

import { missingFigures, occupancy, shortModel, shortUuid } from '../model/devices';
import type { IPoint } from '../model/history';
import type { DeviceSample, JobView } from '../model/protocol';
import { Chip } from './chip';
import { BytesMeter, PercentMeter } from './meter';
import { Sparkline } from './sparkline';

const USE_TITLE =
  'Share of time in which the GPU worked on anything, as NVML counts it. It does not say how much of the GPU was used.';

interface IDeviceProps {
  device: DeviceSample;
  jobs: readonly JobView[];
  points: readonly IPoint[];
}

/** One GPU of few. */
export function DeviceCard({ device, jobs, points }: IDeviceProps): React.JSX.Element {
  const { tone, chip, detail } = occupancy(device, jobs);
  const missing = missingFigures(device);
  return (
    <li className={`gw-card gw-card-${tone}`} aria-label={deviceName(device)}>
      <div className="gw-card-head">
        <span className="gw-model gw-ellipsis" title={`${device.name}\n${device.uuid}`}>
          {device.index !== null && <b>{device.index} </b>}
          {shortModel(device.name)}
        </span>
        <Chip tone={tone} text={chip} />
      </div>
      <div className="gw-card-sub">
        <span className="gw-uuid gw-ellipsis" title={device.uuid}>
          {shortUuid(device.uuid)}
        </span>
        {device.mig_enabled && <span className="gw-muted">in slices</span>}
        {device.parent_uuid && (
          <span className="gw-muted gw-ellipsis" title={device.parent_uuid}>
            of {shortUuid(device.parent_uuid)}
          </span>
        )}
        <Sparkline points={points} />
      </div>
      {missing === null ? (
        <>
          <PercentMeter label="GPU busy" title={USE_TITLE} reading={device.util_pct} />
          <BytesMeter
            label={device.unified_memory ? 'memory (the host’s)' : 'memory'}
            title="Device memory in use, by all processes"
            used={device.memory_used_bytes}
            total={device.memory_total_bytes}
          />
        </>
      ) : (
        <div className="gw-muted" title="Neither use nor memory can be told">
          no figures: {missing}
        </div>
      )}
      {detail && (
        <div className="gw-card-who" title={detail}>
          {detail}
        </div>
      )}
    </li>
  );
}

/** One GPU of many. */
export function DeviceRow({ device, jobs, points }: IDeviceProps): React.JSX.Element {
  const { tone, chip, detail } = occupancy(device, jobs);
  const missing = missingFigures(device);
  const title = [`${device.name} ${device.uuid}`, detail].filter(Boolean).join('\n');
  return (
    <li className={`gw-row gw-card-${tone}`} aria-label={deviceName(device)} title={title}>
      <div className="gw-card-head">
        <span className="gw-ellipsis">
          <b>{device.index ?? '?'}</b>{' '}
          <span className="gw-uuid">{shortUuid(device.uuid).replace(/^GPU-/, '')}</span>
        </span>
        {missing === null ? (
          <Sparkline points={points} />
        ) : (
          <span className="gw-muted" title={`No figures: ${missing}`}>
            n/a
          </span>
        )}
        <Chip tone={tone} text={chip} title={detail || chip} />
      </div>
      {missing === null && (
        <div className="gw-row-meters">
          <PercentMeter label="GPU busy" title={USE_TITLE} reading={device.util_pct} isCompact />
          <BytesMeter
            label="memory"
            title="Device memory in use, by all processes"
            used={device.memory_used_bytes}
            total={device.memory_total_bytes}
            isCompact
          />
        </div>
      )}
    </li>
  );
}

function deviceName(device: DeviceSample): string {
  return `GPU ${device.index ?? '?'}, ${device.name}`;
}
