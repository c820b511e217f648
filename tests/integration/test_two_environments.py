"""The Jupyter server in one environment, the kernel in another; both have gpu-workbench."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient

from tests.integration.lab import Notebook
from tests.integration.leased import INSTALLED, LeasedLab, leased_lab, until
from tests.stand_ins.world import StubWorld

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-tests"
NOTEBOOK = "train.ipynb"


@pytest.fixture(scope="session")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with gpu-workbench's wheel, ipykernel and nothing else."""
    place = tmp_path_factory.mktemp("kernel-environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / "bin/python"
    pins = [
        word
        for name in ("lock.txt", "toolchain.txt")
        for word in ("--constraint", str(ROOT / "requirements" / name))
    ]
    subprocess.run(
        [
            *(str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet"),
            *("--python", str(python), *pins, "ipykernel", str(ROOT)),
        ],
        env={**os.environ, "HATCH_JUPYTER_BUILDER_SKIP_NPM": "1"},
        check=True,
    )
    return python


class Server:
    """A Jupyter server of this environment, spoken to over its REST API."""

    def __init__(self, labs: LeasedLab) -> None:
        self.labs = labs
        self._runtime = labs.lab.root / "runtime"
        file = until(lambda: next(self._runtime.glob("jpserver-*.json"), None), "the server")
        until(lambda: file.read_text().endswith("}"), "its address")
        self._url = json.loads(file.read_text())["url"]

    def _listens(self) -> bool:
        """Whether it takes connections; it names its port a moment before."""
        place = urllib.parse.urlsplit(self._url)
        with socket.socket() as probe:
            return probe.connect_ex((place.hostname, place.port)) == 0

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(
            self._url + path,
            json.dumps(body).encode(),
            {"Authorization": f"token {TOKEN}"},
        )
        until(self._listens, "a server that listens")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def start(self, kernel_name: str, notebook: str) -> tuple[int, dict[str, Any]]:
        """Start a notebook's kernel as JupyterLab does."""
        kernel = {"name": kernel_name}
        body = {"path": notebook, "name": notebook, "type": "notebook", "kernel": kernel}
        return self.post("api/sessions", body)

    def notebook(self, kernel: str) -> Notebook:
        """A client of a started kernel."""
        client = BlockingKernelClient(connection_file=str(self._runtime / f"kernel-{kernel}.json"))
        client.load_connection_file()
        client.start_channels()
        until(lambda: is_ready(client), "the kernel")
        notebook = Notebook.__new__(Notebook)
        notebook.client = client
        return notebook


def is_ready(client: BlockingKernelClient) -> bool:
    """Whether the kernel answers; a client takes one for dead that only just starts."""
    try:
        client.wait_for_ready(timeout=30)
    except RuntimeError:
        return False
    return True


@contextmanager
def server_of(labs: LeasedLab) -> Iterator[Server]:
    root = labs.lab.root
    with (root / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                *("--port=0", "--ip=127.0.0.1", f"--ServerApp.root_dir={labs.lab.work}"),
                f"--IdentityProvider.token={TOKEN}",
            ],
            env={
                **labs.lab.env,
                "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
                "JUPYTER_CONFIG_DIR": str(root / "config"),
            },
            cwd=labs.lab.work,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Server(labs)
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def server(nvml_stub: StubWorld) -> Iterator[Server]:
    nvml_stub.gpus(1)
    with leased_lab(nvml_stub) as labs, server_of(labs) as one:
        yield one


@pytest.mark.timeout(300)
def test_a_cell_runs_in_the_kernels_environment_not_in_the_servers(
    server: Server, other_python: Path
) -> None:
    labs = server.labs
    name = labs.spec("elsewhere", python=other_python)
    status, session = server.start(name, NOTEBOOK)
    assert status == 201, session
    view = labs.running()
    assert view.notebook == str(labs.lab.work / NOTEBOOK)

    notebook = server.notebook(session["kernel"]["id"])
    assert notebook.run("%load_ext workbench").ok
    assert notebook.run("import sys; sys.executable").result == repr(str(other_python))
    run = notebook.run(
        "%%gpu-schedule --cpus 1\n"
        "import os, sys, workbench\n"
        "seen = sys.executable, workbench.__file__, os.environ['CUDA_VISIBLE_DEVICES']"
    )
    assert run.ok, run.error
    found = notebook.run("seen").result
    notebook.client.stop_channels()
    assert found is not None
    executable, package, gpus = eval(found)
    assert executable == str(other_python)
    assert Path(package).is_relative_to(other_python.parents[1])
    assert gpus == ""


def test_the_browser_is_told_where_a_start_stands_that_got_no_gpu(server: Server) -> None:
    assert server.start(INSTALLED, "first.ipynb")[0] == 201
    hasty = server.labs.spec("hasty", wait_s=0.3)
    status, answer = server.start(hasty, NOTEBOOK)
    assert status == 500
    assert "place 1 in line" in answer["message"]
    assert "The ticket is kept for 10 min" in answer["message"]
