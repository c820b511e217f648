"""Waits in the kernel's main thread for a job, shows it, and turns ■ into what the user means."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from workbench.client import Background, KernelSession, WorkbenchError
from workbench.client.session import Happening, Over, Printed, Seen, Trouble
from workbench.frontends.magics.publish import Publisher
from workbench.frontends.magics.status_line import StatusLine, running_text, waiting_text
from workbench.protocol.messages import JobView, LeaseEnding


@dataclass(frozen=True, slots=True)
class _Interrupted:
    """The user pressed ■ once more."""


class Following:
    """Follows one job to its end.

    Args:
        job: The job id.
        publisher: Shows the job's output.
        line: Shows where the job stands.
    """

    def __init__(
        self,
        job: str,
        *,
        session: KernelSession,
        background: Background,
        publisher: Publisher,
        line: StatusLine,
    ) -> None:
        self._job = job
        self._session = session
        self._background = background
        self._publisher = publisher
        self._line = line
        self._feed: queue.SimpleQueue[Happening | _Interrupted] = queue.SimpleQueue()
        self._interrupts = 0
        self._has_printed = False
        self.view: JobView | None = None

    @property
    def was_interrupted(self) -> bool:
        """Whether the user pressed ■."""
        return self._interrupts > 0

    def run(self) -> LeaseEnding:
        """Show the job until it is over and return how it ended.

        The first ■ takes a waiting job out of the queue, or interrupts the running statement.

        Raises:
            KeyboardInterrupt: A second ■; the job is told to end and nobody waits for it.
        """
        self._background.start(self._pump())
        with self._interrupts_into_feed():
            while True:
                happening = self._feed.get()
                match happening:
                    case Over(ending=ending):
                        return ending
                    case _Interrupted():
                        self._on_interrupt()
                    case Seen(view=view):
                        self.view = view
                        self._show()
                    case Printed(line=line):
                        self._has_printed = True
                        self._publisher.publish(line)
                        if line["kind"] == "progress":
                            self._show()
                    case Trouble(error=error):
                        self._line.show(f"{error.message}; trying again, the job goes on")

    def _show(self) -> None:
        view = self.view
        if view is None:
            return
        if view.state == "queued":
            self._line.show(waiting_text(view))
        elif view.state == "running":
            self._line.show(running_text(view, self._publisher.done, self._publisher.total))

    def _on_interrupt(self) -> None:
        self._interrupts += 1
        if self._interrupts == 1 and self._runs():
            self._line.show("interrupted: keeping the statements that finished before")
            self._background.start(self._session.interrupt(self._job))
            return
        self._background.start(self._session.cancel(self._job, "interrupted by its owner"))
        if self._interrupts > 1:
            raise KeyboardInterrupt

    def _runs(self) -> bool:
        """Whether the home is up; its output can be here before the controller's word."""
        return self._has_printed or (self.view is not None and self.view.state == "running")

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
