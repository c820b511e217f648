"""What the host has: GPUs through NVML, the processor and memory through psutil, simulated GPUs.

Read `sampler.py` first: it reads every source in threads of its own and publishes one immutable
`protocol.telemetry.Sample` a tick. `source.py` says what a source is; `nvml.py` is the only module
that imports pynvml.
"""
