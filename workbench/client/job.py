"""A job that was handed over: its state, output and result, from any process of its owner."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from workbench.boundary import CannotCross, Changes, Crossing, load_result, stage
from workbench.client.background import Background
from workbench.client.publish import NotReturned, Publisher
from workbench.client.session import KernelSession, Over, find_job, parse_lines
from workbench.client.stopped import resume
from workbench.core.errors import UserError, WorkbenchError
from workbench.protocol.endings import ending_from
from workbench.protocol.job_files import (
    BUFFERS,
    ENDED,
    INPUTS,
    LAST_VALUE,
    OUTPUT,
    RESULT,
    read_json,
)
from workbench.protocol.messages import LeaseEnding
from workbench.transport.paths import jobs_directory

__all__ = ["CannotCross", "Job", "JobFailed", "bind"]

_MISSING: Final = object()
_NOTHING_KEPT: Final = "nothing of it came back: every name is as it was before"
_P = ParamSpec("_P")
_R = TypeVar("_R")


class JobFailed(WorkbenchError):
    """The job did not end by itself: it was killed, lost, cancelled or ran out of time.

    Args:
        ending: How it ended.
        log: Its output.
        fate: What became of what it had done until then.
    """

    def __init__(self, ending: LeaseEnding, log: Path, fate: str = _NOTHING_KEPT) -> None:
        super().__init__(
            f"the job ended: {ending.detail or ending.outcome}; {fate}",
            next_step=f"Its output is in {log}" if log.exists() else "",
        )
        self.ending = ending


def _without_own_frames(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have errors shown as one sentence, as the magics do, without frames of Workbench."""

    @functools.wraps(method)
    def wrapped(*arguments: _P.args, **options: _P.kwargs) -> _R:
        try:
            return method(*arguments, **options)
        except (WorkbenchError, TimeoutError, KeyboardInterrupt) as error:
            if hasattr(error, "_render_traceback_"):  # It is the job's own, or was here before.
                raise
            sentence = f"{type(error).__name__}: {error}"
            error._render_traceback_ = lambda: [sentence]  # type: ignore[union-attr]
            raise error from None

    return wrapped


class Job:
    """One job of this user's.

    Args:
        id: The job id, or a prefix that only one job directory has.
        namespace: Where `result` binds names; None for nowhere.
        shell: The kernel's shell, which shows what the job displayed; None outside IPython.
        crossing: What this very process sent; None in another process than the submitter's.
        on_bound: Called with the id once `result` has bound the names.
        on_error: Called with what the job's code raised, right before `result` raises it.

    Raises:
        UserError: No job directory, or more than one, begins with `id`.
    """

    def __init__(
        self,
        id: str,  # noqa: A002  (the field's word, and users write Job("3f2a"))
        *,
        session: KernelSession,
        background: Background,
        namespace: dict[str, Any] | None = None,
        shell: Any = None,
        crossing: Crossing | None = None,
        on_bound: Callable[[str], None] | None = None,
        on_error: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.id = _full_id(id)
        self.directory = jobs_directory() / self.id
        self._session = session
        self._background = background
        self._namespace = {} if namespace is None else namespace
        self._shell = shell
        self._crossing = crossing
        self._on_bound = on_bound
        self._on_error = on_error

    def __repr__(self) -> str:
        return f"Job({self.id[:8]!r}: {self.status()})"

    def status(self) -> str:
        """Return `queued`, `starting`, `running`, `stopping`, or how the job ended."""
        if (ending := self._ending()) is not None:
            return ending.outcome
        view = find_job(self._background.run(self._status()), self.id)
        if view is None:
            return "unknown to the controller"
        return view.outcome or view.state

    def logs(self) -> str:
        """Return what the job has printed so far (stdout and stderr, in order)."""
        return "".join(line["text"] for line in self._output() if line["kind"] == "stream")

    @_without_own_frames
    def cancel(self) -> None:
        """End the job; on an ended one this changes nothing."""
        if self._ending() is None:
            self._background.run(self._session.cancel(self.id, "cancelled by its owner"))

    @_without_own_frames
    def wait(self, timeout_s: float | None = None) -> str:
        """Wait until the job has ended and return how.

        Raises:
            TimeoutError: It still runs after `timeout_s`; it goes on.
        """
        if self._ending() is None:
            resume()
            self._background.run(self._until_over(), timeout_s=timeout_s)
        return self.status()

    @_without_own_frames
    def result(self, timeout_s: float | None = None) -> Any:
        """Do what a cell that was not detached does at its end, and return its last value.

        Waits, shows what the job printed and displayed, and binds in the notebook what it bound.

        Raises:
            JobFailed: The job ended without a result.
            TimeoutError: It still runs after `timeout_s`; it goes on.
            BaseException: What the job's code raised; names bound before it are bound first.
        """
        self.wait(timeout_s)
        publisher = Publisher(self._shell, self.directory / OUTPUT)
        for line in self._output():
            publisher.publish(line)
        changes = self.changes()
        for sentence in bind(changes, self._namespace):
            sys.stderr.write(f"gpu-schedule: {sentence}\n")
        if self._on_bound is not None:
            self._on_bound(self.id)
        if (failure := self.failure(changes)) is not None:
            raise failure
        if changes.error is not None:
            error = changes.error.as_exception()
            if self._on_error is not None:
                self._on_error(error)
            raise error
        value = self._namespace.pop(LAST_VALUE, None)
        reason = changes.not_returned.get(LAST_VALUE)
        return value if reason is None else NotReturned(reason, publisher.result)

    def changes(self) -> Changes:
        """Return what the ended job bound and changed, loaded but not yet committed.

        Raises:
            JobFailed: The job ended without a result.
        """
        if not self.has_result:
            ending = self._ending() or LeaseEnding(outcome="lost", detail="it left no record")
            raise JobFailed(ending, self.directory / OUTPUT)
        if self._crossing is not None:
            return stage(self._crossing, self.directory)
        return load_result(self.directory)

    def failure(self, changes: Changes) -> JobFailed | None:
        """Return the error of a job that was ended, where its finished statements came back."""
        ending = self._ending()
        if changes.error is None or ending is None or ending.outcome in {"done", "failed"}:
            return None
        names = sorted({*changes.names, *changes.changed, *changes.deleted} - {LAST_VALUE})
        kept = ", ".join(names) or "nothing"
        fate = f"what was finished before is kept: {kept}"
        return JobFailed(ending, self.directory / OUTPUT, fate)

    @property
    def has_result(self) -> bool:
        """Whether the job has left something that `result` can bind."""
        return (self.directory / RESULT).exists()

    def drop_data(self) -> None:
        """Remove inputs and result, which can be large; output and ending stay."""
        for name in (INPUTS, BUFFERS, RESULT):
            (self.directory / name).unlink(missing_ok=True)

    def abandon(self) -> None:
        """End the job and drop its data once it is over, while nobody waits."""
        self._background.start(self._abandoned())

    def _output(self) -> list[dict[str, Any]]:
        try:
            with (self.directory / OUTPUT).open("rb") as file:
                return parse_lines(file)
        except FileNotFoundError:
            return []

    def _ending(self) -> LeaseEnding | None:
        record = read_json(self.directory / ENDED)
        return None if record is None else ending_from(record)

    async def _abandoned(self) -> None:
        await self._session.cancel(self.id, "interrupted by its owner")
        await self._until_over()
        self.drop_data()

    async def _status(self) -> Any:
        return await (await self._session.controller()).status()

    async def _until_over(self) -> None:
        async with contextlib.aclosing(self._session.follow(self.id)) as happenings:
            async for happening in happenings:
                if isinstance(happening, Over):
                    return


def bind(changes: Changes, namespace: dict[str, Any]) -> list[str]:
    """Make a job's changes those of a notebook; return what the user has to be told, in sentences.

    A name that was bound to something that cannot come back is unbound: its old value would pass
    for the new one. What an unreturned change was made in place keeps its old state.
    """
    changes.commit(namespace)
    sentences = list(changes.notes)
    for name, reason in changes.not_returned.items():
        if name == LAST_VALUE:
            sentences.append(f"the cell's last value could not come back: {reason}")
            continue
        unbound = namespace.pop(name, _MISSING) is not _MISSING
        sentences.append(
            f"{name} could not come back{' and is unbound now' if unbound else ''}: {reason}"
        )
    bound_anew = {*changes.names, *changes.deleted, *changes.not_returned}
    for name, reason in changes.lost_changes.items():
        what = f"what {name} was" if name in bound_anew else name
        sentences.append(
            f"{what} is as it was before the cell, for its change cannot come back: {reason}"
        )
    return sentences


def _full_id(prefix: str) -> str:
    found = sorted(path.name for path in jobs_directory().glob(f"{prefix}*"))
    if prefix and prefix.isalnum() and len(found) == 1:
        return found[0]
    if found and prefix:
        raise UserError(
            f"{prefix!r} begins the ids of {len(found)} jobs",
            next_step="Give more of the id; %gpu-jobs lists them",
        )
    raise UserError(f"there is no job {prefix!r} of yours here", next_step="%gpu-jobs lists them")
