from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from workbench.engines.gate import Gate
from workbench.graphs import dask_edge
from workbench.graphs.dask_edge import Pool
from workbench.graphs.run_files import RunFiles
from workbench.graphs.run_news import Broke, Deserted, Done, Lost

SERVE = """
import os, sys
from pathlib import Path
from workbench.graphs.dask_edge import serve
from workbench.graphs.run_files import RunFiles
if os.read(int(sys.argv[3]), 1):
    serve(RunFiles(Path(sys.argv[1])), sys.argv[2])
"""


class Crew:
    """A pool with real workers, each an exec'd process that waits at the gate."""

    def __init__(self, job: Path, count: int) -> None:
        self.files = RunFiles(job)
        self.gate = Gate(count)
        read = self.gate._read
        argv = [sys.executable, "-c", SERVE, str(job)]
        self.workers = [
            subprocess.Popen([*argv, f"worker-{number}", str(read)], pass_fds=[read])
            for number in range(count)
        ]
        self.gate.keep_home_side()
        self.pool = Pool(self.files, {False: self.gate})
        self.pool.start()
        self.pool.wait_ready()

    def join(self) -> None:
        """Wait until all workers have joined: each has one call at a time."""
        for number in range(self.gate.count):
            self.pool.submit(f"join-{number}", time.sleep, 0.2)
        for _ in range(self.gate.count):
            assert isinstance(self.pool.wait(), Done)

    def close(self) -> None:
        self.pool.close()
        self.pool.join()
        with contextlib.suppress(OSError):
            os.close(self.gate.fileno())
        for worker in self.workers:
            worker.kill()
            worker.wait()


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    one = Crew(tmp_path, 2)
    yield one
    one.close()


def listeners(pid: int) -> list[int]:
    found = psutil.Process(pid).net_connections("inet")
    return [one.laddr.port for one in found if one.status == psutil.CONN_LISTEN]


def answers_without_a_certificate(port: int, context: ssl.SSLContext | None) -> bool:
    """Whether whoever listens says a word to a stranger, in plain text or in TLS."""
    with contextlib.ExitStack() as stack:
        stream: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        stack.enter_context(stream)
        try:
            if context is not None:
                stream = stack.enter_context(context.wrap_socket(stream))
            stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(64))
            return bool(stream.recv(1))
        except (ssl.SSLError, ConnectionError):
            return False


def test_nothing_listens_without_tls_and_our_certificate(crew: Crew) -> None:
    crew.join()
    stranger = ssl.create_default_context()
    stranger.check_hostname = False
    stranger.verify_mode = ssl.CERT_NONE
    for pid in (os.getpid(), *(worker.pid for worker in crew.workers)):
        ports = listeners(pid)
        assert len(ports) == 1, "Dask's HTTP server is open"
        for context in (None, stranger):
            assert not answers_without_a_certificate(ports[0], context)


def test_the_key_is_its_owners_alone(crew: Crew) -> None:
    assert crew.files.directory.stat().st_mode & 0o777 == 0o700
    for path in (crew.files.key, crew.files.certificate, crew.files.scheduler):
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_calls_are_made_once_each(crew: Crew, tmp_path: Path) -> None:
    for number in range(6):
        crew.pool.submit(f"k{number}", Path.touch, tmp_path / str(number))
    done = [crew.pool.wait() for _ in range(6)]
    assert {one.key for one in done if isinstance(one, Done)} == {f"k{n}" for n in range(6)}
    assert sorted(path.name for path in tmp_path.glob("?")) == list("012345")
    assert crew.pool.take() is None


def test_a_call_that_raises_is_told_apart(crew: Crew) -> None:
    crew.pool.submit("k", divmod, 1, 0)
    news = crew.pool.wait()
    assert isinstance(news, Broke)
    assert isinstance(news.error, ZeroDivisionError)


def test_a_killed_worker_loses_its_call_and_the_other_one_goes_on(crew: Crew) -> None:
    crew.join()
    crew.pool.submit("lost", signal.raise_signal, signal.SIGKILL)
    news = crew.pool.wait()
    assert isinstance(news, Lost)
    assert news.key == "lost"
    assert news.worker in {"worker-0", "worker-1"}
    crew.pool.submit("lives", pow, 2, 3)
    assert crew.pool.wait() == Done(key="lives")


def test_it_is_told_when_the_last_worker_is_gone(crew: Crew) -> None:
    for worker in crew.workers:
        worker.kill()
    assert crew.pool.wait() == Deserted(gpu=False)


def test_the_thread_and_its_port_are_gone_after_closing(crew: Crew) -> None:
    crew.join()
    crew.pool.close()
    crew.pool.join()
    assert "workbench-dask" not in [one.name for one in threading.enumerate()]
    assert not listeners(os.getpid())
    for worker in crew.workers:
        assert worker.wait(20) == 0


def test_preparing_starts_no_thread() -> None:
    program = (
        "from workbench.graphs import dask_edge; dask_edge.prepare();"
        "import os; print(len(os.listdir('/proc/self/task')))"
    )
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    answer = subprocess.check_output(
        [sys.executable, "-c", program], env=os.environ | single, text=True
    )
    assert answer == "1\n"


def test_no_other_module_knows_dask() -> None:
    package = Path(dask_edge.__file__).parents[1]
    words = ("import dask", "from dask", "import distributed", "from distributed")
    knowing = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(line.strip().startswith(words) for line in path.read_text().splitlines())
    ]
    assert knowing == ["graphs/dask_edge.py"]
