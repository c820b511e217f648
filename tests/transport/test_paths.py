from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from workbench.transport.errors import BadPlace
from workbench.transport.paths import (
    SOCKET_PATH_LIMIT,
    agent_socket,
    checked_socket_path,
    controller_place,
    jobs_directory,
    private_directory,
    runtime_directory,
    state_directory,
)


@pytest.fixture(autouse=True)
def own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("WORKBENCH_CONTROLLER", raising=False)


def test_every_directory_is_made_for_this_user_alone(tmp_path: Path) -> None:
    for path in (state_directory(), jobs_directory(), jobs_directory().parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert state_directory() == tmp_path / "state/gpu-workbench"
    assert jobs_directory() == tmp_path / "data/gpu-workbench/jobs"


def test_a_directory_that_others_can_read_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private_directory(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_without_a_runtime_directory_the_temp_directory_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runtime_directory() == tmp_path / f"gpu-workbench-{os.getuid()}"


def test_a_file_or_a_link_in_the_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BadPlace, match="private directory"):
        private_directory(file)
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(BadPlace, match="must be a directory of uid"):
        private_directory(link)


@pytest.mark.skipif(os.getuid() != 0, reason="NOT TESTED: only root can give a directory away")
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 54321, 54321)
    with pytest.raises(BadPlace, match="it belongs to uid 54321"):
        private_directory(tmp_path)


def test_a_socket_path_that_is_too_long_is_refused_with_both_numbers() -> None:
    assert checked_socket_path(Path("/" + "d" * 99)) == Path("/" + "d" * 99)
    with pytest.raises(BadPlace, match=f"101 bytes, the limit is {SOCKET_PATH_LIMIT}"):
        checked_socket_path(Path("/" + "d" * 100))
    with pytest.raises(BadPlace, match="XDG_RUNTIME_DIR"):
        checked_socket_path(Path("/" + "é" * 50))


def test_without_a_lab_the_controller_is_the_users_own(tmp_path: Path) -> None:
    place = controller_place(tmp_path / "none.toml")
    assert not place.lab
    assert place.socket == runtime_directory() / "controller.sock"
    assert place.trusted_uids == (os.getuid(), 0)
    assert agent_socket().parent == place.socket.parent


def test_the_variable_names_the_lab_before_the_configuration_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "config.toml"
    configuration.write_text('controller = "/run/lab"\ncontroller_uid = 987\n')
    place = controller_place(configuration)
    assert (place.lab, place.socket) == (True, Path("/run/lab/controller.sock"))
    assert place.trusted_uids == (os.getuid(), 0, 987)
    assert place.named_by == str(configuration)

    monkeypatch.setenv("WORKBENCH_CONTROLLER", "/run/other")
    place = controller_place(configuration)
    assert (place.lab, place.socket) == (True, Path("/run/other/controller.sock"))
    assert place.named_by == "WORKBENCH_CONTROLLER"


@pytest.mark.parametrize("text", ["controller = ", "\xff\xfe"])
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    configuration = tmp_path / "config.toml"
    configuration.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadPlace, match=str(configuration)):
        controller_place(configuration)
