"""A lab of its own for one test: private directories, a real kernel, real controller and agent."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import BlockingKernelClient, KernelManager


@dataclass
class CellRun:
    """What one cell sent to the front-end before its reply, and the reply."""

    reply: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.reply["status"] == "ok"

    @property
    def stdout(self) -> str:
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        return self._stream("stderr")

    @property
    def error(self) -> str:
        """`Name: text` of the exception, empty where there was none."""
        return "" if self.ok else f"{self.reply['ename']}: {self.reply['evalue']}"

    @property
    def traceback(self) -> str:
        return "\n".join(self.reply.get("traceback", []))

    @property
    def result(self) -> str | None:
        """The text form of the cell's value, as the front-end shows it behind `Out[n]`."""
        found = [one["content"] for one in self.messages if one["msg_type"] == "execute_result"]
        return found[-1]["data"]["text/plain"] if found else None

    @property
    def displays(self) -> list[str]:
        """Each display's and update's text, in order; the last status line is the last one."""
        kinds = {"display_data", "update_display_data"}
        return [
            one["content"]["data"].get("text/plain", "")
            for one in self.messages
            if one["msg_type"] in kinds
        ]

    def _stream(self, name: str) -> str:
        return "".join(
            one["content"]["text"]
            for one in self.messages
            if one["msg_type"] == "stream" and one["content"]["name"] == name
        )


class Notebook:
    """One kernel and a client of it."""

    def __init__(self, env: dict[str, str], cwd: Path) -> None:
        self.manager = KernelManager()
        self.manager.start_kernel(env=env, cwd=str(cwd))
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=30)

    def run(self, code: str, *, timeout_s: float = 60) -> CellRun:
        """Run a cell to its reply and return everything it sent."""
        return self.collect(self.start(code), timeout_s=timeout_s)

    def start(self, code: str) -> str:
        """Begin a cell and return its message id."""
        return self.client.execute(code)

    def collect(self, message_id: str, *, timeout_s: float = 60) -> CellRun:
        """Return what the begun cell sent up to its reply and its idle message."""
        deadline = time.monotonic() + timeout_s
        messages = []
        while True:
            with contextlib.suppress(queue.Empty):
                message = self.client.get_iopub_msg(timeout=0.2)
                if message["parent_header"].get("msg_id") == message_id:
                    messages.append(message)
                    state = message["content"].get("execution_state")
                    if message["msg_type"] == "status" and state == "idle":
                        break
            assert time.monotonic() < deadline, f"the cell did not end: {messages}"
        while True:
            reply = self.client.get_shell_msg(timeout=max(0.1, deadline - time.monotonic()))
            if reply["parent_header"].get("msg_id") == message_id:
                return CellRun(reply["content"], messages)

    def shown(self, message_id: str, text: str, *, timeout_s: float = 30) -> list[str]:
        """Wait until a plain display or stream of the begun cell has `text`; return all so far."""
        deadline = time.monotonic() + timeout_s
        texts: list[str] = []
        while not any(text in one for one in texts):
            assert time.monotonic() < deadline, f"{text!r} never came, only {texts}"
            with contextlib.suppress(queue.Empty):
                message = self.client.get_iopub_msg(timeout=0.2)
                if message["parent_header"].get("msg_id") == message_id:
                    content = message["content"]
                    plain = content.get("data", {}).get("text/plain", "")
                    texts.append(content.get("text") or plain)
        return texts

    def interrupt(self) -> None:
        """Press ■."""
        self.manager.interrupt_kernel()

    def restart(self) -> None:
        """Restart the kernel: its names are gone."""
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(timeout=30)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


class Lab:
    """Private XDG directories; everything that was started in them is stopped at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("run", "state", "data", "home", "work"):
            (root / name).mkdir(mode=0o700)
        self.work = root / "work"
        self.env = dict(os.environ) | {
            "XDG_RUNTIME_DIR": str(root / "run"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_DATA_HOME": str(root / "data"),
            "HOME": str(root / "home"),
            "IPYTHONDIR": str(root / "home/.ipython"),
        }
        self.env.pop("WORKBENCH_CONTROLLER", None)
        self._notebooks: list[Notebook] = []

    @property
    def jobs(self) -> Path:
        return self.root / "data/gpu-workbench/jobs"

    def notebook(self, *, loaded: bool = True) -> Notebook:
        """Start a kernel in this lab, by default with the extension loaded."""
        notebook = Notebook(self.env, self.work)
        self._notebooks.append(notebook)
        if loaded:
            run = notebook.run("%load_ext workbench")
            assert run.ok, run.error
        return notebook

    def workbench(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line in this lab."""
        return subprocess.run(
            [sys.executable, "-m", "workbench.frontends.cli", *arguments],
            env=self.env,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def processes(self, *words: str) -> list[psutil.Process]:
        """Return this lab's live processes whose command line has each of `words`."""
        mark = f"XDG_RUNTIME_DIR={self.root / 'run'}"
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
                line = " ".join(process.cmdline())
                if mark.encode() in environment and all(word in line for word in words):
                    found.append(process)
        return found

    def close(self) -> None:
        for notebook in self._notebooks:
            notebook.close()
        for _ in range(50):
            left = [one for one in self.processes() if one.status() != psutil.STATUS_ZOMBIE]
            if not left:
                return
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
            psutil.wait_procs(left, timeout=0.1)
        raise AssertionError(f"these processes outlived their lab: {self.processes()}")


@contextlib.contextmanager
def lab(root: Path) -> Iterator[Lab]:
    """A lab that is gone when the block ends."""
    one = Lab(root)
    try:
        yield one
    finally:
        one.close()
