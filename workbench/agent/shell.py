"""The IPython shell of a home: magics, `!cmd`, displays and tracebacks as in a kernel.

Imported by zygotes only, since IPython is heavy. A zygote makes the shell before it forks; the
home then connects it to its job's output.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import linecache
import os
import signal
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

import workbench
from workbench.agent.channels import Channels
from workbench.graphs.cell import Cell
from workbench.graphs.run_failures import first_in

SHELL_GRACE_S: Final = 1.0
_OURS: Final = str(Path(workbench.__file__).parent)
_WIDGET_VIEW: Final = "application/vnd.jupyter.widget-view+json"


class HomePublisher(DisplayPublisher):
    """Sends `display`, updates and `clear_output` to the job's output."""

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        source: object = None,  # noqa: ARG002  (IPython's, unused there too)
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        """Add a display."""
        self.shell.append(
            "display",
            data=_as_json(data),
            metadata=metadata or {},
            transient=transient or {},
            update=update,
        )

    def clear_output(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002  (IPython's)
        """Clear what the cell has shown so far."""
        self.shell.append("clear", wait=wait)


class HomeDisplayHook(DisplayHook):
    """Sends the value of a last expression; keeps no history, the kernel does that."""

    def quiet(self) -> bool:
        """Whether to show nothing; the cell's own semicolon was looked at before."""
        return False

    def write_output_prompt(self) -> None:
        """Write nothing: the front-end writes the prompt."""

    def compute_format_data(self, result: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Render the value; what fails here fails in the kernel too, which shows it as its own."""
        assert self.shell is not None
        self.shell.hides_tracebacks = True
        try:
            return super().compute_format_data(result)  # type: ignore[no-any-return, no-untyped-call]
        finally:
            self.shell.hides_tracebacks = False

    def write_format_data(
        self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None
    ) -> None:
        """Add the value to the output."""
        assert self.shell is not None
        self.shell.append("result", data=_as_json(format_dict), metadata=md_dict or {})

    def update_user_ns(self, result: Any) -> None:
        """Leave `_` and `Out` to the kernel."""

    def log_output(self, format_dict: dict[str, Any]) -> None:
        """Keep no log."""

    def finish_displayhook(self) -> None:
        """Be ready for the next value."""
        self._is_active = False


class HomeShell(InteractiveShell):
    """A shell without terminal, history or configuration files."""

    display_pub_class = Type(HomePublisher)
    displayhook_class = Type(HomeDisplayHook)
    _channels: Channels | None = None
    hides_tracebacks = False

    @classmethod
    def make(cls) -> HomeShell:
        """Make it the process's one shell, with an empty namespace as `__main__`."""
        config = Config()
        config.HistoryManager.enabled = False
        shell: HomeShell = cls.instance(config=config)
        try:
            raise LookupError  # noqa: TRY301
        except LookupError as error:
            shell.render(error, __file__)  # Loads what renders, so that no home has to.
        return shell

    def connect(self, channels: Channels) -> None:
        """Send output to a job from now on, and answer `input()` with an error."""
        self._channels = channels
        builtins.input = _no_input

    def append(self, kind: str, **fields: Any) -> None:
        """Add a line to the job's output, after all that was printed before."""
        if self._channels is not None:
            self._channels.settle()
            self._channels.log.append(kind, **fields)

    def showtraceback(self, *arguments: Any, **options: Any) -> None:
        """Show what the user's own code raised while a value was rendered."""
        if not self.hides_tracebacks:
            super().showtraceback(*arguments, **options)

    def ask_exit(self) -> NoReturn:
        """End the cell: what `exit()` and `quit()` do here.

        Raises:
            SystemExit: Always.
        """
        raise SystemExit("exit() ends a scheduled cell, not the kernel")

    def system(self, cmd: str) -> None:
        """Run `cmd` in the user's shell; its output is the cell's, in order.

        Raises:
            KeyboardInterrupt: The cell was interrupted; the command and its children were ended.
        """
        expanded = self.var_expand(cmd, depth=1)  # type: ignore[no-untyped-call]
        if expanded.rstrip().endswith("&"):
            raise OSError("background commands are not supported in a cell: they would be lost")
        process = subprocess.Popen(
            [os.environ.get("SHELL") or "/bin/sh", "-c", expanded],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,  # As in a kernel, where both go to one terminal.
            process_group=0,
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            _end_group(process)
            raise
        self.user_ns["_exit_code"] = code
        if self.system_raise_on_error and code != 0:
            raise subprocess.CalledProcessError(code, cmd)

    def know_source(self, cell: Cell, execution_count: int, head: str) -> None:
        """Have tracebacks show the user's own lines of this cell as `Cell In[n]`."""
        self.compile.flags |= cell.future_flags  # As in a kernel; %time compiles with them.
        self.execution_count = execution_count
        self.compile._filename_map[cell.filename] = execution_count  # noqa: SLF001  (no other way)
        above = head.splitlines(keepends=True)
        above += ["\n"] * (cell.first_line - 1 - len(above))
        lines = above + cell.raw.splitlines(keepends=True)
        linecache.cache[cell.filename] = (len(cell.raw), None, lines, cell.filename)

    def render(self, error: BaseException, filename: str) -> list[str]:
        """Return the traceback of `error` as the kernel would show it, from the cell on."""
        for one in _chain(error):
            frames = one.__traceback__
            one.__traceback__ = first_in(frames, filename) or _without_ours(frames)
        frames = first_in(error.__traceback__, filename)
        try:
            return self._structured(error, frames)
        except Exception:  # noqa: BLE001  (the user's own __str__ and __repr__ run here)
            return traceback.format_exception(type(error), error, frames)

    def _structured(self, error: BaseException, frames: TracebackType | None) -> list[str]:
        kind = type(error)
        if isinstance(error, UsageError):
            return [f"UsageError: {error}"]
        if isinstance(error, SyntaxError) and frames is None:
            return list(self.SyntaxTB.structured_traceback(kind, error))
        if hasattr(error, "_render_traceback_"):
            return list(error._render_traceback_())
        if isinstance(error, BaseExceptionGroup):
            return traceback.format_exception(kind, error, frames)
        return list(self.InteractiveTB.structured_traceback(kind, error, frames, tb_offset=0))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Walk an exception, what it arose from and the members of groups, each once."""
    seen: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is None or any(one is other for other in seen):
            continue
        seen.append(one)
        yield one
        pending += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            pending += one.exceptions


def _without_ours(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback that never was in the cell, from the first frame on that is not ours."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    return frames


def _as_json(data: dict[str, Any]) -> dict[str, Any]:
    """Return a MIME bundle that JSON can carry; a widget's view has no model in the kernel."""
    return {
        mime: base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
        for mime, value in data.items()
        if mime != _WIDGET_VIEW
    }


def _no_input(prompt: object = "") -> NoReturn:
    raise StdinNotImplementedError(
        f"input({prompt!r}) has nobody to ask: a scheduled cell runs apart from the notebook. "
        "Ask in a cell of its own, before this one"
    )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        try:
            process.wait(SHELL_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        return
