"""Messages on the controller's and the agent's socket.

A frame's payload is the msgpack array `[id, body]`. A request carries a positive id that its
reply repeats; a push carries 0. Bodies are tagged structs, so both ends decode one closed union
and a message that does not fit is refused as a whole.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from workbench.protocol.telemetry import Sample

PROTOCOL = 1
"""Both ends refuse another number, naming both."""


class Message(Struct, frozen=True, kw_only=True, tag=True):
    """Base of all messages; the class name is the tag."""


# --- greeting, on both sockets -----------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True):
    """First message of every connection."""

    protocol: int
    software: str


class Welcome(Message, frozen=True, kw_only=True):
    """The peer's answer: who serves here."""

    protocol: int
    software: str
    pid: int
    mode: Literal["embedded", "lab", "agent"]
    started_unix_s: float


class Failure(Message, frozen=True, kw_only=True):
    """A request was refused; nothing changed."""

    fault: Literal["user", "peer", "bug"]
    error: str
    message: str
    next_step: str = ""


class Done(Message, frozen=True, kw_only=True):
    """A request was carried out and has nothing more to say."""


# --- client to controller ----------------------------------------------------------------------


class RequestSpec(Struct, frozen=True, kw_only=True):
    """A request on the wire; the fields of `core.model.Request`."""

    kind: Literal["cell", "notebook", "command", "kernel"]
    priority: Literal["high", "normal", "low"] = "normal"
    gpus: int = 0
    cores: int = 1
    memory_bytes: int | None = None
    gpu_memory_bytes: int | None = None
    time_limit_s: float | None = None
    wait_limit_s: float | None = None


class Submit(Message, frozen=True, kw_only=True):
    """Queue a job that is already staged at the sender's agent. Idempotent by id."""

    job: str
    request: RequestSpec
    name: str
    notebook: str | None = None


class Cancel(Message, frozen=True, kw_only=True):
    """End a job of the sender's. On an ended job this changes nothing."""

    job: str
    reason: str = "cancelled by its owner"


class GetStatus(Message, frozen=True, kw_only=True):
    """Ask for one `Status`."""


class Watch(Message, frozen=True, kw_only=True):
    """Ask for a `Status` now and a push of a new one on every change or sample.

    Attributes:
        job: Only push when this job changes; None for everything.
    """

    job: str | None = None


class Estimate(Struct, frozen=True, kw_only=True):
    """When a waiting job likely starts, as a range in seconds from now; None is unknown."""

    low_s: float | None = None
    high_s: float | None = None
    reason: str = ""


class JobView(Struct, frozen=True, kw_only=True):
    """A job as its reader may see it: another user's name and notebook are None.

    Attributes:
        place: 1 is next; None unless it waits.
        reason: Why it waits, or why it runs where it does, or how it ended; one sentence.
        gpus: UUIDs it holds.
        cores: CPU cores it asked for, or holds.
    """

    id: str
    owner_uid: int
    owner: str
    mine: bool
    kind: str
    name: str | None
    notebook: str | None
    priority: str
    state: Literal["queued", "starting", "running", "stopping", "ended"]
    place: int | None
    reason: str
    estimate: Estimate | None
    request: RequestSpec
    gpus: list[str]
    cores: int
    submitted_unix_s: float
    started_unix_s: float | None
    ended_unix_s: float | None
    outcome: str | None


class ControllerView(Struct, frozen=True, kw_only=True):
    """Which controller answers."""

    hostname: str
    mode: Literal["embedded", "lab"]
    uid: int
    pid: int
    software: str
    protocol: int
    simulated: bool


class Status(Message, frozen=True, kw_only=True):
    """The lab now: the controller, the latest sample, live jobs in order, lately ended jobs.

    Attributes:
        sample: None until the first one is there.
        jobs: Running ones first, then waiting ones in the order they are considered.
        ended: The latest first, at most 20.
        notices: Sentences for everybody (driver mismatch, a full disk).
    """

    controller: ControllerView
    sample: Sample | None
    jobs: list[JobView]
    ended: list[JobView]
    notices: list[str]


# --- agent and controller ----------------------------------------------------------------------


class HeldLease(Struct, frozen=True, kw_only=True):
    """A lease that an agent knows of when it connects.

    Attributes:
        ended: How it ended while nobody was connected; None while its tree is alive.
        ready: It is held for a kernel that nobody has started yet.
    """

    lease: str
    job: str
    ended: LeaseEnding | None = None
    ready: bool = False


class LeaseEnding(Struct, frozen=True, kw_only=True):
    """How a job's process tree ended."""

    outcome: Literal["done", "failed", "cancelled", "timed out", "killed", "lost", "expired"]
    detail: str = ""


class Attach(Message, frozen=True, kw_only=True):
    """An agent (its uid is the socket's peer) says which leases it knows and takes grants."""

    leases: list[HeldLease] = field(default_factory=list)


class LeaseConfirmed(Message, frozen=True, kw_only=True):
    """The agent started this lease's job."""

    lease: str


class LeaseOver(Message, frozen=True, kw_only=True):
    """Nobody is left in this lease's tree."""

    lease: str
    ending: LeaseEnding


class GrantPush(Message, frozen=True, kw_only=True):
    """Start this staged job with these units. Sent again until confirmed.

    Attributes:
        gpu_memory_bytes: What the job asked for on each GPU; None for any.
    """

    lease: str
    job: str
    gpus: list[str]
    cores: int
    simulated: bool
    gpu_memory_bytes: int | None = None


class StopPush(Message, frozen=True, kw_only=True):
    """End this lease's tree. Sent again until it is over.

    Attributes:
        outcome: What the job gets, unless it is done before.
    """

    lease: str
    job: str
    reason: str
    outcome: Literal["cancelled", "timed out"] = "cancelled"


# --- client to agent ---------------------------------------------------------------------------


class OpenSession(Message, frozen=True, kw_only=True):
    """A kernel session begins; it lasts while this connection (or a later one for it) is open.

    Paths and the environment are `text.carried`, since they may be no UTF-8.

    Attributes:
        session: 128 random bits in hexadecimal, kept by the kernel process.
        python: The kernel's `sys.executable`.
        env: The kernel's environment.
        cwd: The kernel's working directory; empty where it was removed.
        sys_path: The kernel's `sys.path`.
        modules: Installed packages that the notebook has imported.
        kernel_pid: Of the kernel, in the agent's pid namespace.
    """

    session: str
    python: str
    env: dict[str, str]
    cwd: str
    sys_path: list[str]
    modules: list[str]
    kernel_pid: int


class Warm(Message, frozen=True, kw_only=True):
    """Have the session's zygote ready with these installed packages imported."""

    session: str
    modules: list[str]


class Stage(Message, frozen=True, kw_only=True):
    """The job directory `job` under the user's data directory is complete; take it over."""

    job: str
    session: str
    detach: bool = False


class Discard(Message, frozen=True, kw_only=True):
    """Forget a staged job that was never submitted and remove its directory."""

    job: str


class Follow(Message, frozen=True, kw_only=True):
    """Push `Advanced` while the job's output grows and `JobOver` once when it ended."""

    job: str


class Advanced(Message, frozen=True, kw_only=True):
    """The job's output file has this many bytes now."""

    job: str
    size_bytes: int


class JobOver(Message, frozen=True, kw_only=True):
    """The job's tree is gone and its last byte of output is written."""

    job: str
    ending: LeaseEnding


class Interrupt(Message, frozen=True, kw_only=True):
    """Send SIGINT to the job's home: the running statement ends as KeyboardInterrupt."""

    job: str


class StageKernel(Message, frozen=True, kw_only=True):
    """Hold a job for a kernel, which Jupyter will start: the agent makes its job directory.

    Attributes:
        kept_s: From now on; granted units that no kernel has taken by then are given back.
    """

    job: str
    kept_s: float


class TakeKernel(Message, frozen=True, kw_only=True):
    """Take the granted units of a kernel job: the kernel starts within a minute.

    Attributes:
        env: What the kernel's environment would be without a lease.
        again: The caller has taken it before and its kernel is being started again.
    """

    job: str
    env: dict[str, str]
    again: bool = False


class LeaseTaken(Message, frozen=True, kw_only=True):
    """The answer to `TakeKernel`: what the lease sets in the kernel's environment."""

    environment: dict[str, str]


class KernelStarted(Message, frozen=True, kw_only=True):
    """The kernel of this job runs; the lease lasts until it ends.

    Attributes:
        start_ticks: When it started, in clock ticks since boot (proc_pid_stat(5)).
    """

    job: str
    pid: int
    start_ticks: int


class GiveBack(Message, frozen=True, kw_only=True):
    """A kernel needs its units no more. On an ended job this changes nothing."""

    job: str


ControllerRequest = (
    Hello | Submit | Cancel | GetStatus | Watch | Attach | LeaseConfirmed | LeaseOver
)
ControllerReply = Welcome | Failure | Done | Status | GrantPush | StopPush
AgentRequest = (
    Hello
    | OpenSession
    | Warm
    | Stage
    | Discard
    | Follow
    | Interrupt
    | StageKernel
    | TakeKernel
    | KernelStarted
    | GiveBack
)
AgentReply = Welcome | Failure | Done | Advanced | JobOver | LeaseTaken
