"""SIGINT and SIGTERM in a home: each raises KeyboardInterrupt in the statement that runs.

After SIGTERM, which comes when a job is cancelled or its time is over, no further statement begins;
what finished before is packed as after an interrupt, until the grace time is over.
"""

from __future__ import annotations

import os
import threading
from signal import (
    SIG_BLOCK,
    SIG_DFL,
    SIG_SETMASK,
    SIG_UNBLOCK,
    SIGINT,
    SIGTERM,
    getsignal,
    pthread_sigmask,
)
from signal import signal as set_handler
from types import FrameType
from typing import Final

_BOTH: Final = frozenset({SIGINT, SIGTERM})


class Interrupts:
    """The signals of one home; they are held back until `let_through`.

    Attributes:
        is_stopped: Whether SIGTERM came.
    """

    def __init__(self) -> None:
        self.is_stopped = False
        self._forking = threading.local()
        self.hold_back()
        set_handler(SIGTERM, self._on_term)
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork,
            after_in_child=self._leave_to_child,
        )

    @staticmethod
    def let_through() -> None:
        """Raise what comes, and what came meanwhile, from now on."""
        pthread_sigmask(SIG_UNBLOCK, _BOTH)

    @staticmethod
    def hold_back() -> None:
        """Keep what comes until `let_through`."""
        pthread_sigmask(SIG_BLOCK, _BOTH)

    def _on_term(self, _signum: int, _frame: FrameType | None) -> None:
        self.is_stopped = True
        raise KeyboardInterrupt

    # A process that the cell forks dies of SIGTERM, as everywhere, from its first moment on.

    def _before_fork(self) -> None:
        self._forking.mask = pthread_sigmask(SIG_BLOCK, {SIGTERM})

    def _after_fork(self) -> None:
        pthread_sigmask(SIG_SETMASK, self._forking.mask)

    def _leave_to_child(self) -> None:
        if getsignal(SIGTERM) == self._on_term:
            set_handler(SIGTERM, SIG_DFL)
        self._after_fork()
