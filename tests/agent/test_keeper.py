"""Holding a kernel's lease: real keepers and real processes that play the kernel."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.agent.gpu_lock import GpuHeldOutside, hold
from workbench.agent.keeper import KERNEL, LOOK_AGAIN
from workbench.agent.lease import Lease, create_lease
from workbench.agent.process import read_stat
from workbench.protocol.environment import MARK
from workbench.protocol.job_files import ENDED, OUTPUT, read_json, write_json

LIMIT_S = 20.0
KEEPER = """
import signal, sys
from pathlib import Path
from workbench.agent import keeper
keeper.TAKEN_S = float(sys.argv[2])
signal.pthread_sigmask(signal.SIG_BLOCK, keeper.SIGNALS)
keeper.run_keeper(Path(sys.argv[1]), Path(sys.argv[1]) / "doorbell", float(sys.argv[3]))
"""


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until `condition` returns something true."""
    deadline = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.01)
    return value


class Kept:
    """One kernel's lease and its keeper; the test is agent and kernel."""

    def __init__(self, root: Path, *, taken_s: float = 60.0, kept_s: float = 60.0) -> None:
        job = secrets.token_hex(16)
        self.gpu = f"GPU-{job}"
        self.directory = root / job
        self.directory.mkdir(mode=0o700)
        self.lease = create_lease(
            self.directory,
            Lease(
                lease="L1",
                job=job,
                gpus=[self.gpu],
                cores=1,
                simulated=False,
                grace_s=0.2,
            ),
        )
        self.kernels: list[subprocess.Popen[bytes]] = []
        self._times = (str(taken_s), str(kept_s))
        self._taken = 0

    def start(self) -> None:
        self.keeper = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(self.directory), *self._times]
        )

    def ready(self) -> None:
        until((self.directory / OUTPUT).exists, "the keeper's first word")

    def take(self) -> None:
        """Announce a kernel."""
        self._taken += 1
        self._write(kernel=None)

    def start_kernel(self, code: str = "import time; time.sleep(600)") -> subprocess.Popen[bytes]:
        """Announce a kernel that runs `code`, start and name it."""
        self.take()
        kernel = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, MARK: self.lease.mark},
            start_new_session=True,
            stdout=subprocess.PIPE,
        )
        self.kernels.append(kernel)
        stat = read_stat(kernel.pid)
        assert stat is not None
        self.named = {"pid": kernel.pid, "start_ticks": stat.id.start_ticks}
        self._write(kernel=self.named)
        return kernel

    def give_back(self, *, named: bool = True) -> None:
        self._write(kernel=self.named if named else None, given_back=True)

    def stop(self) -> None:
        self.keeper.send_signal(signal.SIGTERM)

    def ended(self) -> tuple[str, str]:
        self.keeper.wait(LIMIT_S)
        record = read_json(self.directory / ENDED)
        assert record is not None, "the keeper left no record"
        return record["outcome"], record["detail"]

    @property
    def is_held(self) -> bool:
        """Whether the GPU's lock is taken, by whomever."""
        try:
            hold(self.gpu).close()
        except GpuHeldOutside:
            return True
        return False

    def close(self) -> None:
        for process in (*self.kernels, self.keeper):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _write(self, **record: Any) -> None:
        whole = {"taken": self._taken, "given_back": False, **record}
        write_json(self.directory / KERNEL, whole)
        self.keeper.send_signal(LOOK_AGAIN)


MakeKept = Callable[..., Kept]


@pytest.fixture
def make_kept(tmp_path: Path) -> Iterator[MakeKept]:
    made: list[Kept] = []

    def make(*, is_ready: bool = True, **times: float) -> Kept:
        kept = Kept(tmp_path, **times)
        made.append(kept)
        kept.start()
        if is_ready:
            kept.ready()
        return kept

    yield make
    for kept in made:
        kept.close()


def test_units_that_no_kernel_takes_are_given_back(make_kept: MakeKept) -> None:
    kept = make_kept(kept_s=0.2)
    assert kept.ended() == ("expired", "no kernel was started while its GPU was ready")
    assert not kept.is_held


def test_a_kernel_that_does_not_start_in_time_is_given_up(make_kept: MakeKept) -> None:
    kept = make_kept(taken_s=0.2)
    kept.take()
    assert kept.ended() == ("expired", "its kernel did not start within 0.2 s")


def test_the_lease_lasts_as_long_as_its_kernel(make_kept: MakeKept) -> None:
    kept = make_kept(taken_s=0.2, kept_s=0.2)
    kernel = kept.start_kernel()
    with pytest.raises(subprocess.TimeoutExpired):
        kept.keeper.wait(0.6)
    assert kept.is_held
    kernel.kill()
    assert kept.ended() == ("done", "")
    assert not kept.is_held


def test_a_child_with_the_leases_mark_outlives_the_kernel_and_keeps_the_lease(
    make_kept: MakeKept,
) -> None:
    kept = make_kept()
    kernel = kept.start_kernel(
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)"
    )
    assert kernel.stdout is not None
    child = int(kernel.stdout.readline())
    kernel.kill()
    kernel.wait()
    with pytest.raises(subprocess.TimeoutExpired):
        kept.keeper.wait(0.5)
    os.kill(child, signal.SIGKILL)
    assert kept.ended() == ("done", "")


def test_a_kernel_that_is_started_again_keeps_the_lease(make_kept: MakeKept) -> None:
    kept = make_kept()
    first = kept.start_kernel()
    kept.take()
    first.kill()
    first.wait()
    second = kept.start_kernel()
    with pytest.raises(subprocess.TimeoutExpired):
        kept.keeper.wait(0.3)
    second.kill()
    assert kept.ended() == ("done", "")


def test_a_stop_ends_the_kernel_that_takes_no_term_and_nobody_else(make_kept: MakeKept) -> None:
    kept, other = make_kept(), make_kept()
    bystander = other.start_kernel()
    kernel = kept.start_kernel(
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('READY', flush=True)\n"
        "time.sleep(600)"
    )
    assert kernel.stdout is not None
    assert kernel.stdout.readline() == b"READY\n"
    kept.stop()
    assert kept.ended() == ("cancelled", "it was stopped")
    assert kernel.wait(LIMIT_S) == -signal.SIGKILL
    assert bystander.poll() is None


def test_a_stop_before_any_kernel_ends_the_ticket(make_kept: MakeKept) -> None:
    kept = make_kept()
    kept.stop()
    assert kept.ended() == ("cancelled", "it was stopped")


def test_a_kernel_may_give_back_and_go_on(make_kept: MakeKept) -> None:
    kept = make_kept()
    kernel = kept.start_kernel()
    kept.give_back()
    assert kept.ended() == ("done", "its kernel gave it back")
    assert kernel.poll() is None


def test_giving_back_after_a_shutdown_ends_whoever_is_left(make_kept: MakeKept) -> None:
    kept = make_kept()
    kernel = kept.start_kernel()
    kept.take()
    kept.give_back(named=False)
    assert kept.ended() == ("done", "")
    assert kernel.wait(LIMIT_S) == -signal.SIGTERM


def test_a_gpu_that_somebody_else_holds_is_not_taken(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    with contextlib.closing(hold(kept.gpu)), contextlib.closing(kept):
        kept.start()
        outcome, detail = kept.ended()
    assert outcome == "failed"
    assert kept.gpu in detail
    assert f"held outside by uid {os.getuid()}" in detail


def test_whoever_asks_reads_the_holders_uid(make_kept: MakeKept) -> None:
    kept = make_kept()
    deadline = time.monotonic() + 10
    while not kept.is_held:
        assert time.monotonic() < deadline, "the keeper never held it"
    for _ in range(300):  # More than a queue of connections that nobody answers can hold.
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
            asker.connect(f"\0gpu-workbench/{kept.gpu}")
    assert kept.is_held
