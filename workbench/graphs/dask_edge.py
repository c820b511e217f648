"""The only door to Dask: a scheduler in a thread of the home, workers in processes of their own.

Import it where tasks run beside one another, or where a zygote prepares for that. Everything that
listens uses TLS and the job's own certificate, and neither scheduler nor worker opens Dask's HTTP
server, which could not.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import json
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dask
from distributed import Client, Future, Scheduler, Security, Worker, get_worker, wait
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import KilledWorker
from distributed.versions import get_versions
from tornado import netutil

from workbench.devices.visible import CheckOutcome, check_visibility
from workbench.graphs.errors import WrongDevice
from workbench.graphs.run_files import RunFiles, make_certificate, make_pair
from workbench.graphs.run_news import Broke, Crew, Deserted, Done, Lost, News

GPU: Final = "GPU"
CPU: Final = "CPU"
"""Resources of which a worker has one or none, by its kind."""
HOST: Final = "127.0.0.1"
START_LIMIT_S: Final = 30.0
CLOSE_LIMIT_S: Final = 5.0

_CONFIG: Final[dict[str, Any]] = {
    "distributed.scheduler.worker-ttl": None,  # A suspended worker must not be dropped.
    "distributed.scheduler.allowed-failures": 0,  # Whoever knows what a task does may try again.
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.diagnostics.nvml": False,  # A lost first GPU would end scheduler and workers.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.use-file-locking": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.tick.limit": "1h",  # A task that holds the interpreter is no fault.
    "distributed.comm.timeouts.connect": "30s",
    "distributed.comm.timeouts.tcp": "1h",  # As above; a lost process closes its connections.
    "distributed.comm.require-encryption": True,
    "distributed.scheduler.http.routes": [],  # Nobody serves them, and they cost 0.1 s to import.
    "distributed.worker.http.routes": [],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    gpu: bool


class _Joining(SchedulerPlugin):
    """Tells when a worker has joined."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def add_worker(self, *_: Any, **__: Any) -> None:
        """Dask calls it."""
        self._tell()


class _SilentScheduler(Scheduler):
    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Open none."""


class SilentWorker(Worker):
    """A worker without an HTTP server."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Open none."""


class GpuWorker(SilentWorker):
    """A worker that is named after the one GPU it leased and refuses to start with another one.

    `dask cuda worker --worker-class workbench.graphs.dask_edge.GpuWorker` makes it.
    """

    async def start_unsafe(self) -> Any:
        """Start, or refuse.

        Raises:
            WrongDevice: CUDA shows this process something else than its GPU alone.
        """
        check = check_visibility([str(self.name)])
        if check.outcome is CheckOutcome.DIFFERENT:
            message = f"the worker of {self.name} must see that GPU alone: {check.message}"
            refused = RunFiles.of_worker(Path(self.local_directory)).refused
            refused.write_text(message, encoding="utf-8")
            raise WrongDevice(message)
        return await super().start_unsafe()  # type: ignore[no-untyped-call]


def prepare() -> None:
    """Do what every start would do for the first time; a zygote does it once for all its jobs."""
    importlib.import_module("tornado.platform.asyncio")
    get_versions()  # Each end of a connection tells them.
    make_pair()
    # Reads all of the system's certificates, which nobody uses, and keeps them.
    netutil._client_ssl_defaults()  # noqa: SLF001  (there is no other way)


class Pool:
    """The scheduler of one job, and the way to it from the home's main thread.

    Args:
        files: Where home and workers meet.
        crews: The workers that were started, by whether they have a GPU.
    """

    def __init__(self, files: RunFiles, crews: Mapping[bool, Crew]) -> None:
        self._files = files
        self._crews = crews
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._futures: dict[str, Future[Any]] = {}
        self._waiting: dict[bool, deque[_Call]] = {False: deque(), True: deque()}
        self._busy = {False: 0, True: 0}
        self._thread = threading.Thread(target=self._run, name="workbench-dask", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._client: Client
        self._scheduler: Scheduler
        self._stop: asyncio.Event

    def start(self) -> None:
        """Begin to start the scheduler; it calls the workers when it listens."""
        make_certificate(self._files)
        self._thread.start()

    def wait_ready(self) -> None:
        """Wait until the scheduler listens.

        Raises:
            BaseException: Whatever kept it from starting.
        """
        if not self._ready.wait(START_LIMIT_S):
            raise TimeoutError(f"Dask's scheduler did not listen within {START_LIMIT_S:.0f} s")
        if self._failure is not None:
            raise self._failure

    def submit(
        self, key: str, call: Callable[..., Any], *arguments: Any, gpu: bool = False
    ) -> None:
        """Have a worker call an importable function; what becomes of it comes with `wait`.

        Args:
            key: Names the call, once for all.
            call: Imported by name on the other side.
            arguments: Small and plain.
            gpu: Only a worker with a GPU will do; else only one without.
        """
        one = _Call(key=key, function=call, arguments=arguments, gpu=gpu)
        self._loop.call_soon_threadsafe(self._queue, one)

    def wait(self) -> News:
        """Return the next thing that happened; SIGINT ends the wait."""
        return self._news.get()

    def take(self) -> News | None:
        """Return the next thing that happened already, or None."""
        try:
            return self._news.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Begin to send the workers home, whatever they do."""
        if self._ready.is_set():
            with contextlib.suppress(RuntimeError):  # The loop ended by itself.
                self._loop.call_soon_threadsafe(self._stop.set)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join(CLOSE_LIMIT_S)

    # --- in the thread ---

    def _run(self) -> None:
        with _quiet_logs(threading.get_ident()):
            try:
                asyncio.run(self._serve())
            except BaseException as error:  # noqa: BLE001  (the main thread raises it)
                self._failure = error
            finally:
                self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_ignore)
        self._stop = asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            with dask.config.set(_CONFIG):
                await self._open(stack)
            for gpu, crew in self._crews.items():
                self._loop.add_reader(crew.fileno(), self._on_deserted, gpu, crew.fileno())
                stack.callback(self._loop.remove_reader, crew.fileno())
                crew.open()
            self._ready.set()
            await self._stop.wait()

    async def _open(self, stack: contextlib.AsyncExitStack) -> None:
        security = security_of(self._files)
        self._scheduler = await stack.enter_async_context(
            _SilentScheduler(host=HOST, port=0, protocol="tls", security=security, dashboard=False)
        )
        self._scheduler.add_plugin(_Joining(self._pump))
        self._announce(self._scheduler.address)
        client = Client(  # type: ignore[no-untyped-call]
            self._scheduler.address, security=security, asynchronous=True, set_as_default=False
        )
        self._client = await stack.enter_async_context(client)

    def _announce(self, address: str) -> None:
        temporary = self._files.scheduler.with_suffix(".tmp")
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps({"address": address}), encoding="ascii")
        temporary.rename(self._files.scheduler)

    def _queue(self, call: _Call) -> None:
        self._waiting[call.gpu].append(call)
        self._pump()

    def _pump(self) -> None:
        """Keep the workers busy: each has a second call at hand while many more are waiting.

        The last ones go to whoever is free first, so that none waits behind a long one.
        """
        workers = self._scheduler.workers.values()
        for gpu, crew in self._crews.items():
            kind = GPU if gpu else CPU
            joined = sum(kind in one.resources for one in workers)
            waiting = self._waiting[gpu]
            while waiting and self._busy[gpu] < joined * (1 + (len(waiting) > crew.count)):
                self._busy[gpu] += 1
                self._submit(waiting.popleft(), kind)

    def _submit(self, call: _Call, kind: str) -> None:
        future = self._client.submit(
            call.function, *call.arguments, key=call.key, pure=False, resources={kind: 1}
        )
        self._futures[call.key] = future
        task = self._loop.create_task(self._follow(call.key, future))
        task.add_done_callback(functools.partial(self._on_end, call))

    def _on_end(self, call: _Call, _: asyncio.Task[None]) -> None:
        self._futures.pop(call.key, None)
        self._busy[call.gpu] -= 1
        self._pump()

    async def _follow(self, key: str, future: Future[Any]) -> None:
        try:
            with self._client.as_current():
                await wait([future])  # type: ignore[no-untyped-call]
            failed = future.status != "finished"
            error = await future.exception() if failed else None  # type: ignore[no-untyped-call]
        except Exception as unexpected:  # noqa: BLE001  (or the main thread would wait for ever)
            error = unexpected
        if error is None:
            self._news.put(Done(key=key))
        elif isinstance(error, KilledWorker):
            worker = error.last_worker
            self._news.put(Lost(key=key, worker=str(getattr(worker, "name", worker))))
        else:
            self._news.put(Broke(key=key, error=error))

    def _on_deserted(self, gpu: bool, descriptor: int) -> None:  # noqa: FBT001  (add_reader's)
        self._loop.remove_reader(descriptor)
        self._news.put(Deserted(gpu=gpu))


def serve(files: RunFiles, name: str) -> None:
    """Be a worker of the job until its scheduler is gone; one call at a time.

    Call it in the main thread of a process made for it, after the home opened the gate.
    """
    logging.getLogger("distributed").setLevel(logging.ERROR)
    address = json.loads(files.scheduler.read_text(encoding="ascii"))["address"]
    with dask.config.set(_CONFIG):
        asyncio.run(_serve(files, name, address))


def current_worker() -> str:
    """Return the name of the worker that makes the present call."""
    return str(get_worker().name)


async def _serve(files: RunFiles, name: str, address: str) -> None:
    async with SilentWorker(
        address,
        name=name,
        nthreads=1,
        host=HOST,
        security=security_of(files),
        death_timeout=START_LIMIT_S,  # A scheduler that is gone when we come will not come back.
        memory_limit=0,  # The lease limits memory, and nothing here may be spilled or paused.
        resources={CPU: 1},
        local_directory=os.fspath(files.directory),
    ) as worker:
        await worker.finished()


def security_of(files: RunFiles) -> Security:
    """Return the job's certificate as Dask takes it: both sides must show it."""
    key, certificate = os.fspath(files.key), os.fspath(files.certificate)
    return Security(  # type: ignore[no-untyped-call]
        require_encryption=True,
        tls_ca_file=certificate,
        tls_client_key=key,
        tls_client_cert=certificate,
        tls_scheduler_key=key,
        tls_scheduler_cert=certificate,
        tls_worker_key=key,
        tls_worker_cert=certificate,
    )


@contextlib.contextmanager
def _quiet_logs(thread: int) -> Iterator[None]:
    """Keep what Dask logs in our thread out of the cell's output; the user's own Dask may log."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    handlers = [one for name in names for one in logging.getLogger(name).handlers]

    def is_the_users(record: logging.LogRecord) -> bool:
        return record.thread != thread

    for handler in handlers:
        handler.addFilter(is_the_users)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_the_users)


def _ignore(_: asyncio.AbstractEventLoop, __: dict[str, Any]) -> None:
    """Drop what Dask's own coroutines leave behind when connections break."""
