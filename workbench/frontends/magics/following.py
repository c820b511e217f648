"""Waits in the kernel's main thread for a job, shows it, and turns ■ into what the user means."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from workbench.client import Background, KernelSession, WorkbenchError
from workbench.client.publish import Publisher
from workbench.client.session import Happening, Over, Printed, Seen, Trouble
from workbench.frontends.magics.status_line import StatusLine, running_text, waiting_text
from workbench.protocol.environment import lease_of_process
from workbench.protocol.job_files import LEASE
from workbench.protocol.messages import JobView, LeaseEnding


@dataclass(frozen=True, slots=True)
class _Interrupted:
    """The user pressed ■ once more."""


class Following:
    """Follows one job to its end.

    Args:
        job: The job id.
        directory: The job's.
        publisher: Shows the job's output.
        line: Shows where the job stands.
    """

    def __init__(
        self,
        job: str,
        directory: Path,
        *,
        session: KernelSession,
        background: Background,
        publisher: Publisher,
        line: StatusLine,
    ) -> None:
        self._job = job
        self._directory = directory
        self._session = session
        self._background = background
        self._publisher = publisher
        self._line = line
        self._feed: queue.SimpleQueue[Happening | _Interrupted] = queue.SimpleQueue()
        self._interrupts = 0
        self.view: JobView | None = None

    @property
    def was_interrupted(self) -> bool:
        """Whether the user pressed ■."""
        return self._interrupts > 0

    def run(self) -> LeaseEnding:
        """Show the job until it is over and return how it ended.

        The first ■ takes a waiting job out of the queue, or interrupts the running statement.

        Raises:
            KeyboardInterrupt: A second ■: the job goes on, and whoever called must end it.
        """
        self._line.show("queued")  # Now, so that it is above whatever the cell shows.
        self._background.start(self._pump())
        with self._interrupts_into_feed():
            while True:
                match self._next():
                    case Over(ending=ending):
                        return ending
                    case _Interrupted():
                        self._on_interrupt()
                    case Seen(view=view):
                        self.view = view
                        self._show()
                    case Printed(line=line):
                        self._publisher.publish(line)
                        if line["kind"] == "progress":
                            self._show()
                    case Trouble(error=error):
                        self._line.show(f"{error.message}; trying again, the job goes on")

    def _next(self) -> Happening | _Interrupted:
        while True:
            try:
                return self._feed.get(timeout=self._line.due_s())
            except queue.Empty:
                self._line.catch_up()

    def _show(self) -> None:
        view = self.view
        if view is None or self._interrupts:
            return
        if view.state == "queued":
            self._line.show(waiting_text(view, own_lease=lease_of_process(os.environ)))
        elif view.state == "running":
            self._line.show(running_text(view, self._publisher.done, self._publisher.total))

    def _on_interrupt(self) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            raise KeyboardInterrupt
        self._line.show("interrupted: keeping the statements that finished before")
        self._background.start(self._interrupt())

    async def _interrupt(self) -> None:
        """Interrupt the job, and take it out of the queue where nobody has granted it yet.

        In this order: once its agent has heard, a job that is granted meanwhile never starts.
        """
        try:
            await self._session.interrupt(self._job)
        finally:
            if not (self._directory / LEASE).exists():
                await self._session.cancel(self._job, "interrupted by its owner")

    async def _pump(self) -> None:
        try:
            async with contextlib.aclosing(self._session.follow(self._job)) as happenings:
                async for happening in happenings:
                    self._feed.put(happening)
        except WorkbenchError as error:
            self._feed.put(Over(ending=LeaseEnding(outcome="lost", detail=str(error))))

    @contextlib.contextmanager
    def _interrupts_into_feed(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_sigint(_number: int, _frame: FrameType | None) -> None:
            self._feed.put(_Interrupted())

        before = signal.signal(signal.SIGINT, on_sigint)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
