import type { DeviceSample, Failure, JobView, Sample, Status } from '../src/model/protocol';

const GIB = 2 ** 30;

export function device(rest: Partial<DeviceSample> = {}): DeviceSample {
  return {
    uuid: 'GPU-5e1f0000-4b3e-91c2-77aa-00c0ffee0000',
    index: 0,
    name: 'NVIDIA A100-SXM4-80GB',
    parent_uuid: null,
    status: 'ok',
    simulated: false,
    mig_enabled: false,
    unified_memory: false,
    memory_total_bytes: { value: 80 * GIB, reason: null },
    memory_used_bytes: { value: 8 * GIB, reason: null },
    util_pct: { value: 50, reason: null },
    processes: [],
    processes_reason: null,
    stale_age_s: null,
    ...rest
  };
}

export function job(rest: Partial<JobView> = {}): JobView {
  return {
    id: '1',
    owner_uid: 1000,
    owner: 'ana',
    mine: true,
    kind: 'cell',
    name: 'fit',
    notebook: 'work/train.ipynb',
    priority: 'normal',
    state: 'queued',
    place: 1,
    reason: '',
    estimate: null,
    request: {
      kind: 'cell',
      priority: 'normal',
      gpus: 1,
      cores: 4,
      memory_bytes: null,
      gpu_memory_bytes: null,
      time_limit_s: null,
      wait_limit_s: null
    },
    gpus: [],
    cores: 4,
    submitted_unix_s: 1000,
    started_unix_s: null,
    ended_unix_s: null,
    outcome: null,
    ...rest
  };
}

export function sample(rest: Partial<Sample> = {}): Sample {
  const reading = { value: 1, reason: null };
  return {
    at_unix_s: 1000,
    host: {
      hostname: 'gpu01',
      cpu_util_pct: reading,
      cores_usable: reading,
      cores_total: reading,
      memory_total_bytes: reading,
      memory_available_bytes: reading
    },
    devices: [],
    nvml: { state: 'ok', message: '', next_step: '' },
    ...rest
  };
}

export function status(rest: Partial<Status> = {}): Status {
  return {
    type: 'Status',
    controller: {
      hostname: 'gpu01',
      mode: 'lab',
      uid: 0,
      pid: 1,
      software: '0.1.0',
      protocol: 1,
      simulated: false
    },
    sample: sample(),
    jobs: [],
    ended: [],
    notices: [],
    ...rest
  };
}

export function failure(): Failure {
  return {
    type: 'Failure',
    fault: 'peer',
    error: 'NobodyListens',
    message: 'nothing listens',
    next_step: 'Run `workbench doctor`'
  };
}
