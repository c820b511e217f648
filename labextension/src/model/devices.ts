import { formatBytes, formatSpan } from './format';
import type { DeviceSample, JobView } from './protocol';

/** How a device stands, for its chip. */
export type Tone = 'mine' | 'busy' | 'free' | 'warn' | 'bad' | 'unknown';

/** Who is on a device, in words. */
export interface IOccupancy {
  tone: Tone;
  /** One or two words. */
  chip: string;
  /** A line: who, and with what; empty for a free device. */
  detail: string;
}

/** How many devices are shown as cards; more are shown as rows. */
const MOST_CARDS = 4;

/** Whether there are so many devices that each gets a row in place of a card. */
export function isCompact(devices: readonly DeviceSample[]): boolean {
  return devices.length > MOST_CARDS;
}

/** The model's name without the vendor that they all share. */
export function shortModel(name: string): string {
  return name.replace(/^NVIDIA\s+/, '');
}

/** The model that all devices share, or null. */
export function sharedModel(devices: readonly DeviceSample[]): string | null {
  const names = new Set(devices.map(device => device.name));
  const [name] = names;
  return names.size === 1 && name !== undefined ? name : null;
}

/** A UUID's kind and first block: `GPU-5e1f0000`; short ones as they are. */
export function shortUuid(uuid: string): string {
  const [kind, block] = uuid.split('-');
  return block === undefined ? uuid : `${kind}-${block}`;
}

/** Who is on `device`: a job of ours, somebody from outside, nobody, or not known. */
export function occupancy(device: DeviceSample, jobs: readonly JobView[]): IOccupancy {
  const state = trouble(device);
  const holders = jobs.filter(job => job.gpus.includes(device.uuid));
  const detail = holders.length > 0 ? holders.map(holderLine).join('; ') : outsideLine(device);
  if (state) {
    return { ...state, detail: [state.detail, detail].filter(Boolean).join(' · ') };
  }
  const [first] = holders;
  if (first) {
    const mine = holders.some(job => job.mine);
    return { tone: mine ? 'mine' : 'busy', chip: mine ? 'yours' : first.owner, detail };
  }
  if (device.processes.length > 0) {
    return { tone: 'warn', chip: 'outside', detail };
  }
  if (device.processes_reason !== null && !device.simulated) {
    return {
      tone: 'unknown',
      chip: 'no job',
      detail: `Use from outside cannot be seen: ${device.processes_reason}`
    };
  }
  return { tone: 'free', chip: 'free', detail: '' };
}

/** Why neither use nor memory of `device` can be told, where both have one reason; else null. */
export function missingFigures(device: DeviceSample): string | null {
  const { util_pct: use, memory_used_bytes: memory } = device;
  const isOne = use.value === null && memory.value === null && use.reason === memory.reason;
  return isOne ? (use.reason ?? 'no reason given') : null;
}

function trouble(device: DeviceSample): IOccupancy | null {
  switch (device.status) {
    case 'ok':
      return null;
    case 'stale':
      return {
        tone: 'warn',
        chip: device.stale_age_s === null ? 'stale' : `${formatSpan(device.stale_age_s)} old`,
        detail: 'These figures could not be read since'
      };
    case 'lost':
      return { tone: 'bad', chip: 'lost', detail: 'The driver has lost this card' };
    case 'missing':
      return { tone: 'bad', chip: 'missing', detail: 'The driver no longer lists this card' };
    case 'unreadable':
      return { tone: 'bad', chip: 'unreadable', detail: 'The driver refuses to tell about it' };
  }
}

function holderLine(job: JobView): string {
  const what = [job.notebook && baseName(job.notebook), job.name].filter(Boolean).join(' · ');
  return what ? `${job.owner}: ${what}` : `${job.owner}’s ${job.kind}`;
}

function outsideLine(device: DeviceSample): string {
  const uids = new Set<string>();
  let bytes = 0;
  for (const process of device.processes) {
    uids.add(process.owner_uid.value === null ? 'unknown user' : `uid ${process.owner_uid.value}`);
    bytes += process.used_bytes.value ?? 0;
  }
  if (uids.size === 0) {
    return '';
  }
  const size = bytes > 0 ? `, ${formatBytes(bytes)}` : '';
  return `Used outside Workbench by ${[...uids].join(', ')}${size}`;
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
