"""The magics themselves: thin; each reads its line and hands over."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class

from workbench.advice.looks import attributes
from workbench.client import UserError, WorkbenchError
from workbench.frontends.magics import tables
from workbench.frontends.magics.options import (
    help_text,
    parse_options,
    refuse_leftover,
    schedule_arguments,
    split_line,
)
from workbench.frontends.magics.schedule import Scheduling, running_number, whole_cell
from workbench.graphs.show import plan_html, plan_text


def plain_errors(function: Callable[..., Any]) -> Any:
    """Show our own errors as one sentence instead of a traceback through Workbench."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except SyntaxError as error:
            raise _shown_syntax_error(arguments[0].shell, error) from None
        except KeyboardInterrupt as interrupt:
            if "_render_traceback_" not in attributes(interrupt):
                interrupt._render_traceback_ = lambda: ["KeyboardInterrupt"]  # type: ignore[attr-defined]
            raise interrupt from None
        except WorkbenchError as error:
            sentence = f"{type(error).__name__}: {error}"
            error._render_traceback_ = lambda: [sentence]  # type: ignore[attr-defined]
            raise error from None

    return wrapped


def _shown_syntax_error(shell: Any, error: SyntaxError) -> UserError:
    """Return an error that looks as the cell's own syntax error, without frames of ours.

    IPython adds the frames of the running magic to any SyntaxError; hence another class that has
    the same name.
    """
    kind = type(error)
    lines = shell.SyntaxTB.structured_traceback(kind, error, [])
    shown: UserError = type(kind.__name__, (UserError,), {})(str(error))
    shown._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
    return shown


@magics_class
class WorkbenchMagics(Magics):
    """`%%gpu-schedule` and the `%gpu-…` commands."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.shell: Any = shell
        self._made: Scheduling | None = None

    @property
    def scheduling(self) -> Scheduling:
        """What this notebook's magics share; made when first needed."""
        if self._made is None:
            self._made = Scheduling(self.shell)
        return self._made

    @schedule_arguments
    @line_cell_magic("gpu-schedule")
    @plain_errors
    def gpu_schedule(self, line: str, cell: str | None = None) -> Any:
        """Run this cell (or this line's code) as a job of the lab: queued, leased, watched."""
        if {"--help", "-h"} & set(line.split()):
            return tables.Shown(help_text(self.gpu_schedule))
        spelt, code = split_line(line)
        refuse_leftover(code, is_cell=cell is not None)
        if cell is None:
            _check_line_form(code)
        options = parse_options(self.gpu_schedule, spelt)
        body = code if cell is None else cell
        whole, head = whole_cell(self.shell, line, body)
        filename = self.shell.compile.get_code_name(whole, body, running_number(self.shell))
        scheduling = self.scheduling
        prepared = scheduling.prepare(options, body, head=head, filename=filename)
        if options.dry_run:
            return tables.dry_run(prepared)
        staged, sent = scheduling.pack(prepared)
        scheduling.submit(prepared, staged, options)
        if options.detach:
            scheduling.detached.add(staged.job, frozenset(prepared.cell.names.writes))
            return scheduling.job(staged.job, sent.crossing)
        return scheduling.see_through(prepared, staged, sent)

    @line_magic("gpu-status")
    @plain_errors
    def gpu_status(self, line: str) -> Any:
        """Show the lab: devices, whose they are, and the queue; `--all` with all ended jobs."""
        whole = _wants_all("%gpu-status", line)
        scheduling = self.scheduling
        return tables.lab(scheduling.background.run(scheduling.status()), whole=whole)

    @line_magic("gpu-jobs")
    @plain_errors
    def gpu_jobs(self, line: str) -> Any:
        """List jobs: running, waiting, and the last five that ended; `--all` for more."""
        whole = _wants_all("%gpu-jobs", line)
        scheduling = self.scheduling
        return tables.jobs(scheduling.background.run(scheduling.status()), whole=whole)

    @line_magic("gpu-cancel")
    @plain_errors
    def gpu_cancel(self, line: str) -> None:
        """End a job of yours: `%gpu-cancel ID` (a unique beginning of the id is enough)."""
        self.scheduling.job(_one_id("%gpu-cancel", line)).cancel()

    @line_magic("gpu-wait")
    @plain_errors
    def gpu_wait(self, line: str) -> str:
        """Wait until a job of yours has ended: `%gpu-wait ID`; returns how it ended.

        What it bound is not bound here yet: `.result()` of the job does that.
        """
        job = self.scheduling.job(_one_id("%gpu-wait", line))
        outcome = job.wait()
        if job.has_result:
            sys.stderr.write(
                f"gpu-wait: `import workbench; workbench.job({job.id[:8]!r}).result()` binds what "
                "the job bound, if that was not done yet\n"
            )
        return outcome

    @line_cell_magic("gpu-plan")
    @plain_errors
    def gpu_plan(self, line: str, cell: str | None = None) -> Any:
        """Show how a cell would be split, and why; runs nothing."""
        prepared = self._look("%gpu-plan", line, cell)
        return tables.Shown(plan_text(prepared.plan), plan_html(prepared.plan))

    @line_cell_magic("gpu-advise")
    @plain_errors
    def gpu_advise(self, line: str, cell: str | None = None) -> Any:
        """Say whether a cell belongs on the CPU or a GPU, and why; runs nothing."""
        return tables.advice(self._look("%gpu-advise", line, cell).advice)

    def _look(self, magic: str, line: str, cell: str | None) -> Any:
        body = line if cell is None else cell
        if not body.strip():
            raise UserError("there is no code to look at", next_step="Put code below the magic")
        options = parse_options(self.gpu_schedule, "" if cell is None else line)
        return self.scheduling.prepare(options, body, head="\n", filename=f"<{magic}>")


def misplaced_cell_magic(_line: str) -> None:
    """Explain `%%gpu-schedule` below a comment or behind blanks.

    IPython reads it as a line magic of the name `%gpu-schedule` then (ipython/ipython#15312).
    """
    raise UsageError(
        "%%gpu-schedule must be the very first line of its cell: no comment above it, no blanks "
        "before it. Move the comment below it."
    )


def _check_line_form(code: str) -> None:
    if not code:
        raise UsageError("%gpu-schedule needs code: `y = %gpu-schedule f(x)`, or `%%` above a cell")


def _wants_all(magic: str, line: str) -> bool:
    if line.strip() not in {"", "--all"}:
        raise UsageError(f"{magic} takes --all or nothing, got {line.strip()!r}")
    return bool(line.strip())


def _one_id(magic: str, line: str) -> str:
    words = line.split()
    if len(words) != 1:
        raise UsageError(f"{magic} takes one job id, got {len(words)}; %gpu-jobs lists them")
    return words[0]
