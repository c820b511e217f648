from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.running import Place
from tests.frontends.cli.conftest import CommandLine
from workbench.frontends.cli.checks.installation import _driver_version, installation_checks
from workbench.frontends.cli.checks.jupyter import _server, _sidebar
from workbench.frontends.cli.checks.verdict import Verdict

NAMES = [
    "python",
    "workbench",
    "torch",
    "sockets",
    "state",
    "jobs",
    "cgroup",
    "scope",
    "controller",
    "gpus",
    "agent",
    "sidebar",
    "server",
]


async def test_doctor_looks_at_everything_and_starts_nothing(
    place: Place, workbench: CommandLine
) -> None:
    checks = (await workbench("doctor", "--json")).json()
    assert [check["name"] for check in checks] == NAMES
    found = {check["name"]: check for check in checks}
    assert found["controller"]["message"].startswith("none runs")
    assert found["gpus"]["next_step"].startswith("Run `workbench up`")
    assert not place.socket.exists()
    said = await workbench("doctor")
    assert said.code == int(any(check["verdict"] == "problem" for check in checks))


async def test_doctor_says_whose_controller_answers_and_how_nvml_is(
    place: Place, workbench: CommandLine
) -> None:
    await place.start()
    found = {check["name"]: check for check in (await workbench("doctor", "--json")).json()}
    assert f"your own answers: pid {place.process.pid}" in found["controller"]["message"]
    assert "NVIDIA driver" in found["gpus"]["message"]
    assert found["gpus"]["verdict"] == "note"
    assert found["gpus"]["next_step"]


async def test_a_lab_that_is_down_and_a_place_that_cannot_be_are_problems(
    place: Place, workbench: CommandLine
) -> None:
    place.env["WORKBENCH_CONTROLLER"] = str(place.root / "lab")
    found = {check["name"]: check for check in (await workbench("doctor", "--json")).json()}
    assert found["controller"]["verdict"] == "problem"
    assert "WORKBENCH_CONTROLLER" in found["controller"]["message"]

    place.env["WORKBENCH_CONTROLLER"] = str(place.root / ("long" * 30))
    blocked = place.root / "blocked"
    blocked.write_text("a file, no directory")
    place.env["XDG_STATE_HOME"] = str(blocked)
    said = await workbench("doctor", "--json")
    found = {check["name"]: check for check in said.json()}
    assert said.code == 1
    assert "the limit is 100" in found["sockets"]["message"]
    assert str(blocked) in found["state"]["message"]
    assert found["state"]["verdict"] == "problem"


TORCH = """
__version__ = '2.13.0'
cuda: Optional[str] = {cuda}
"""
PROC = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Thu Jan  1 00:00:00 UTC 2026\n"


@pytest.mark.parametrize(
    ("cuda", "driver", "verdict", "says"),
    [
        ("None", None, Verdict.OK, "built without CUDA"),
        ("None", "570.86.15", Verdict.PROBLEM, "this host has NVIDIA driver 570.86.15"),
        ("'12.6'", None, Verdict.NOTE, "no NVIDIA driver"),
        ("'12.6'", "570.86.15", Verdict.OK, "built for CUDA 12.6; NVIDIA driver 570.86.15"),
        ("'13.0'", "570.86.15", Verdict.PROBLEM, "needs NVIDIA driver 580 or newer"),
    ],
)
def test_torchs_cuda_is_compared_with_the_driver_without_importing_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cuda: str,
    driver: str | None,
    verdict: Verdict,
    says: str,
) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "version.py").write_text(TORCH.format(cuda=cuda))
    metadata = tmp_path / "torch-2.13.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    proc = tmp_path / "version"
    if driver is not None:
        proc.write_text(PROC.format(version=driver))
    monkeypatch.syspath_prepend(tmp_path)
    check = installation_checks(proc)[2]
    assert (check.name, check.verdict) == ("torch", verdict)
    assert says in check.message


def test_an_open_driver_tells_its_version_too(tmp_path: Path) -> None:
    proc = tmp_path / "version"
    proc.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    )
    assert _driver_version(proc) == "580.65.06"


def test_each_missing_or_disabled_half_of_the_extension_is_a_problem(tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "config"
    assert _sidebar([data], [config]).verdict is Verdict.PROBLEM
    (data / "gpu-workbench").mkdir(parents=True)
    assert _sidebar([data], [config]).verdict is Verdict.OK
    page = config / "labconfig/page_config.json"
    page.parent.mkdir(parents=True)
    page.write_text('{"disabledExtensions": {"gpu-workbench": true}}')
    disabled = _sidebar([data], [config])
    assert (disabled.verdict, "disabled" in disabled.message) == (Verdict.PROBLEM, True)

    assert "not installed" in _server([config]).message
    part = config / "jupyter_server_config.d/gpu-workbench.json"
    part.parent.mkdir()
    part.write_text('{"ServerApp": {"jpserver_extensions": {"workbench.frontends.server": true}}}')
    assert _server([config]).verdict is Verdict.OK
    stronger = config / "jupyter_server_config.json"
    stronger.write_text(
        '{"ServerApp": {"jpserver_extensions": {"workbench.frontends.server": false}}}'
    )
    assert "disabled" in _server([config]).message
    stronger.write_text("not json")
    assert _server([config]).verdict is Verdict.OK
