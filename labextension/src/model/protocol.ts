/**
 * What the server half sends. Generated from workbench/protocol by `npm run types`:
 * change the Python structs, not this file.
 */

/**
 * Why a figure is missing. The values are short enough to be shown as they are.
 */
export type NotAvailable =
  | 'device lost'
  | 'device missing'
  | 'first sample'
  | 'no permission'
  | 'no such process here'
  | 'not read yet'
  | 'not supported by this device or driver'
  | 'process outside this container'
  | "shares the host's memory"
  | 'simulated'
  | 'the driver answered with an unknown error'
  | 'the driver reported implausible rows'
  | 'this driver has no such query';
/**
 * How far a device's figures can be trusted.
 *
 * Attributes:
 *     OK: Read just now.
 *     STALE: True `stale_age_s` seconds ago, and could not be read since.
 *     LOST: The driver says that the card has fallen off the bus.
 *     UNREADABLE: The card is there, but the driver refuses to speak about it.
 *     MISSING: Seen earlier, and no longer listed by the driver.
 */
export type SampleStatus = 'lost' | 'missing' | 'ok' | 'stale' | 'unreadable';
/**
 * Whether NVML, NVIDIA's monitoring library, can be read.
 */
export type NvmlStatus =
  | 'driver not loaded'
  | 'no binding'
  | 'no library'
  | 'no permission'
  | 'not answering'
  | 'not in use'
  | 'not read yet'
  | 'ok'
  | 'unknown'
  | 'version mismatch';

/**
 * The lab now: the controller, the latest sample, live jobs in order, lately ended jobs.
 *
 * Attributes:
 *     sample: None until the first one is there.
 *     jobs: Running ones first, then waiting ones in the order they are considered.
 *     ended: The latest first, at most 20.
 *     notices: Sentences for everybody (driver mismatch, a full disk).
 */
export interface Status {
  type: 'Status';
  controller: ControllerView;
  sample: Sample | null;
  jobs: JobView[];
  ended: JobView[];
  notices: string[];
}
/**
 * Which controller answers.
 */
export interface ControllerView {
  hostname: string;
  mode: 'embedded' | 'lab';
  uid: number;
  pid: number;
  software: string;
  protocol: number;
  simulated: boolean;
}
/**
 * Host and devices at one moment. The order of `devices` never changes while a server runs.
 */
export interface Sample {
  at_unix_s: number;
  host: HostSample;
  devices: DeviceSample[];
  nvml: NvmlState;
}
/**
 * The host's processor and memory at one moment.
 *
 * Attributes:
 *     cpu_util_pct: Of all the host's cores.
 *     cores_usable: Cores that this process may use, after affinity and control groups; a
 *         fraction where a quota says so.
 *     cores_total: Cores that the host has.
 *     memory_total_bytes: Host memory that may be used, after control groups.
 */
export interface HostSample {
  hostname: string;
  cpu_util_pct: Reading;
  cores_usable: Reading;
  cores_total: Reading;
  memory_total_bytes: Reading;
  memory_available_bytes: Reading;
}
/**
 * One figure, or the reason why there is none. Exactly one of the two is set.
 */
export interface Reading {
  value: number | null;
  reason: NotAvailable | null;
}
/**
 * One device at one moment.
 *
 * Attributes:
 *     uuid: The key. `GPU-…` or `MIG-…` as NVML spells it, `SIM-…` where simulated, `unknown:N`
 *         for the Nth card where it was lost before its UUID could be read.
 *     index: Position in NVML's order at this moment; for display only.
 *     name: The model; "unknown" where it could not be read.
 *     parent_uuid: The GPU of which this is a MIG slice.
 *     processes_reason: Why `processes` may be incomplete; None where it is complete.
 *     mig_enabled: The GPU is split into slices and must never be handed out whole.
 *     unified_memory: The device has no memory of its own and uses the host's.
 *     stale_age_s: How long ago the figures were read; None unless `status` is stale.
 */
export interface DeviceSample {
  uuid: string;
  index: number | null;
  name: string;
  parent_uuid: string | null;
  status: SampleStatus;
  simulated: boolean;
  mig_enabled: boolean;
  unified_memory: boolean;
  memory_total_bytes: Reading;
  memory_used_bytes: Reading;
  util_pct: Reading;
  processes: ProcessSample[];
  processes_reason: NotAvailable | null;
  stale_age_s: number | null;
}
/**
 * A process that holds memory on a device.
 *
 * Attributes:
 *     pid: As NVML reports it; in a container this may be another namespace's number.
 *     used_bytes: Device memory it holds.
 *     owner_uid: Who runs it. Only given where the pid is one of this PID namespace.
 */
export interface ProcessSample {
  pid: number;
  used_bytes: Reading;
  owner_uid: Reading;
}
/**
 * The state of NVML and what a person can do about it; empty texts where nothing is amiss.
 */
export interface NvmlState {
  state: NvmlStatus;
  message: string;
  next_step: string;
}
/**
 * A job as its reader may see it: another user's name and notebook are None.
 *
 * Attributes:
 *     place: 1 is next; None unless it waits.
 *     reason: Why it waits, or why it runs where it does, or how it ended; one sentence.
 *     gpus: UUIDs it holds.
 *     cores: CPU cores it asked for, or holds.
 */
export interface JobView {
  id: string;
  owner_uid: number;
  owner: string;
  mine: boolean;
  kind: string;
  name: string | null;
  notebook: string | null;
  priority: string;
  state: 'ended' | 'queued' | 'running' | 'starting' | 'stopping';
  place: number | null;
  reason: string;
  estimate: Estimate | null;
  request: RequestSpec;
  gpus: string[];
  cores: number;
  submitted_unix_s: number;
  started_unix_s: number | null;
  ended_unix_s: number | null;
  outcome: string | null;
}
/**
 * When a waiting job likely starts, as a range in seconds from now; None is unknown.
 */
export interface Estimate {
  low_s: number | null;
  high_s: number | null;
  reason: string;
}
/**
 * A request on the wire; the fields of `core.model.Request`.
 */
export interface RequestSpec {
  kind: 'cell' | 'command' | 'kernel' | 'notebook';
  priority: 'high' | 'low' | 'normal';
  gpus: number;
  cores: number;
  memory_bytes: number | null;
  gpu_memory_bytes: number | null;
  time_limit_s: number | null;
  wait_limit_s: number | null;
}
/**
 * A request was refused; nothing changed.
 */
export interface Failure {
  type: 'Failure';
  fault: 'bug' | 'peer' | 'user';
  error: string;
  message: string;
  next_step: string;
}
/**
 * Which server half answers; the page compares `protocol` with the one it was built for.
 */
export interface ServerHalf {
  software: string;
  protocol: number;
}

/** The protocol that this page was built for. */
export const PROTOCOL = 1;
