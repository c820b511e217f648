"""Shows in the notebook what a job printed elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

SHOWN_LIMIT_CHARACTERS: Final = 2**20
"""Of stream text that one cell shows; the rest is in the job's log."""


class NotReturned:
    """Stands for a cell's last value that cannot come back, and shows how the home rendered that.

    It is the cell's value here, so that `_` is not the value of an older cell.

    Args:
        reason: Why it could not.
        rendered: The `result` line of the job's output.
    """

    def __init__(self, reason: str, rendered: dict[str, Any] | None) -> None:
        self.reason = reason
        self._rendered = rendered or {"data": {}}

    def __repr__(self) -> str:
        return f"<the value could not come back: {self.reason}>"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data = dict(self._rendered["data"])
        data["text/plain"] = f"{data.get('text/plain', '')}\n{self!r}".lstrip()
        return data, self._rendered.get("metadata") or {}


class Publisher:
    """Replays lines of output.jsonl in order, each once.

    Args:
        shell: The kernel's shell; None outside IPython, where a display is its text.
        log: The job's output.jsonl, named where text is cut off.
    """

    def __init__(self, shell: Any, log: Path) -> None:
        self._shell = shell
        self._log = log
        self._left = SHOWN_LIMIT_CHARACTERS
        self.result: dict[str, Any] | None = None
        self.done, self.total = 0, 0

    def publish(self, line: dict[str, Any]) -> None:
        """Show one line; the value of a last expression is kept in `result` instead."""
        match line["kind"]:
            case "stream":
                self._stream(line["name"], line["text"])
            case "display" if self._shell is None:
                sys.stdout.write(f"{line['data'].get('text/plain', '')}\n")
            case "display":
                self._shell.display_pub.publish(
                    data=line["data"],
                    metadata=line.get("metadata") or {},
                    transient=line.get("transient") or {},
                    update=bool(line.get("update")),
                )
            case "clear" if self._shell is not None:
                self._shell.display_pub.clear_output(wait=bool(line.get("wait")))
            case "result":
                self.result = line
            case "progress":
                self.done, self.total = line["done"], line["total"]

    def flush(self) -> None:
        """Have everything on its way to the front-end before the cell's reply."""
        sys.stdout.flush()
        sys.stderr.flush()

    def _stream(self, name: str, text: str) -> None:
        if self._left <= 0:
            return
        stream = sys.stderr if name == "stderr" else sys.stdout
        stream.write(text[: self._left])
        self._left -= len(text)
        if self._left <= 0:
            stream.write(
                f"\n… more than {SHOWN_LIMIT_CHARACTERS} characters; all of it: {self._log}\n"
            )
