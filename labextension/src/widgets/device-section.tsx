import React from 'react';

import { isCompact, missingFigures, sharedModel, shortModel } from '../model/devices';
import { count, sentence } from '../model/format';
import { noGpuHeadline } from '../model/gpus';
import type { IHistory } from '../model/history';
import type { JobView, NvmlState, Sample } from '../model/protocol';
import { DeviceCard, DeviceRow } from './device-card';
import { HostCard } from './host-card';
import { Notice } from './notices';
import { Section } from './section';

interface IDeviceSectionProps {
  sample: Sample;
  jobs: readonly JobView[];
  history: IHistory;
}

/** All devices, the GPUs first. */
export function DeviceSection({ sample, jobs, history }: IDeviceSectionProps): React.JSX.Element {
  const { devices, host, nvml } = sample;
  const compact = isCompact(devices);
  const Device = compact ? DeviceRow : DeviceCard;
  const shared = compact ? sharedModel(devices) : null;
  const aside = shared ? shortModel(shared) : undefined;
  return (
    <Section title={devices.length > 0 ? count(devices.length, 'GPU') : 'Devices'} aside={aside}>
      {devices.length === 0 ? <NoGpu nvml={nvml} /> : <NvmlNotice nvml={nvml} />}
      {compact && devices.some(device => missingFigures(device) === null) && (
        <p className="gw-legend">GPU busy · memory used</p>
      )}
      <ul className={compact ? 'gw-rows' : 'gw-cards'}>
        {devices.map(device => (
          <Device
            key={device.uuid}
            device={device}
            jobs={jobs}
            points={history.get(device.uuid) ?? []}
          />
        ))}
      </ul>
      <ul className="gw-cards">
        <HostCard host={host} />
      </ul>
    </Section>
  );
}

function NoGpu({ nvml }: { nvml: NvmlState }): React.JSX.Element {
  return (
    <div className="gw-no-gpu">
      <p>
        <b>{noGpuHeadline(nvml.state)}</b>
      </p>
      {nvml.message && <p>{sentence(nvml.message)}</p>}
      {nvml.next_step && <p className="gw-next-step">{sentence(nvml.next_step)}</p>}
      <p className="gw-muted">Cells still run and queue on the CPU.</p>
    </div>
  );
}

/** What is amiss with the driver while devices are listed. */
function NvmlNotice({ nvml }: { nvml: NvmlState }): React.JSX.Element | null {
  // Simulated GPUs need no driver.
  const isAmiss = nvml.message !== '' && nvml.state !== 'not in use';
  return isAmiss ? <Notice tone="warn" text={nvml.message} nextStep={nvml.next_step} /> : null;
}
