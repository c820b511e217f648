import { count, sentence } from './format';
import type { Link } from './link';
import type { Failure, NvmlStatus, Status } from './protocol';

/** Whether an NVML state says that there is no GPU, or only that it cannot be told. */
const TELLS: Record<NvmlStatus, 'yes' | 'no' | 'not-yet'> = {
  ok: 'yes',
  'not in use': 'yes',
  'no library': 'yes',
  'not read yet': 'not-yet',
  'no binding': 'no',
  'driver not loaded': 'no',
  'version mismatch': 'no',
  'no permission': 'no',
  unknown: 'no',
  'not answering': 'no'
};

/** The headline for a host on which no GPU is listed. */
export function noGpuHeadline(state: NvmlStatus): string {
  switch (TELLS[state]) {
    case 'yes':
      return 'No GPU on this host';
    case 'no':
      return 'GPUs cannot be read';
    case 'not-yet':
      return 'GPUs are being looked for';
  }
}

/** The status bar's answer to "is there a GPU for me?": a few words, and a sentence. */
export interface IGpuAnswer {
  text: string;
  title: string;
}

/** What the status bar says, always one of a few honest texts. */
export function gpuAnswer(status: Status | null, failure: Failure | null, link: Link): IGpuAnswer {
  const broken = whyUnknown(failure, link);
  if (broken !== null || status?.sample == null) {
    return { text: 'GPU: not known', title: broken ?? 'The first figures are on their way' };
  }
  const { devices, nvml } = status.sample;
  const mark = status.controller.simulated ? ' (SIMULATED)' : '';
  const host = status.controller.hostname;
  if (devices.length === 0) {
    const headline = noGpuHeadline(nvml.state);
    const text = TELLS[nvml.state] === 'yes' ? 'No GPU' : headline;
    return {
      text: text + mark,
      title: [`${headline} (${host}).`, nvml.message && sentence(nvml.message)].join(' ').trim()
    };
  }
  const mine = new Set(status.jobs.filter(job => job.mine).flatMap(job => job.gpus)).size;
  const all = count(devices.length, 'GPU');
  const text = mine > 0 ? `${count(mine, 'GPU')} leased to you` : `${all}, none leased to you`;
  return { text: text + mark, title: `${host} has ${all}, ${mine} leased to your jobs` };
}

function whyUnknown(failure: Failure | null, link: Link): string | null {
  switch (link.kind) {
    case 'server-half-missing':
      return "Workbench's half in the Jupyter server is missing";
    case 'mismatch':
      return 'This page and the Jupyter server have different versions of Workbench';
    case 'unreachable':
      return link.message;
    default:
      return failure === null ? null : sentence(failure.message);
  }
}
