"""Versions and pins are each written once, and what stands twice agrees."""

import json
import re
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
import yaml

import workbench

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = "requirements/lock.txt"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines: list[str]) -> dict[str, set[str]]:
    """Reads `name==version ; marker` lines; a package may have one version per marker."""
    found: dict[str, set[str]] = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, _, pinned = line.partition(";")[0].strip().partition("==")
            assert pinned, f"{line!r} pins no version"
            found.setdefault(canonical(name), set()).add(pinned)
    return found


def locked() -> dict[str, set[str]]:
    return pins((ROOT / LOCK).read_text().splitlines())


def set_of_environment(file: Path) -> tuple[dict[str, set[str]], set[str]]:
    """The pins and the project's extras that an environment.yml asks for."""
    dependencies = yaml.safe_load(file.read_text())["dependencies"]
    (by_pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    lines: list[str] = []
    extras: set[str] = set()
    for entry in by_pip:
        option, _, value = entry.partition(" ")
        if option == "--constraint":
            lines += (ROOT / value).read_text().splitlines()
        elif option == "--editable":
            extras |= set(value.removeprefix(".[").removesuffix("]").split(","))
        else:
            lines.append(entry)
    return pins(lines), extras


def direct_dependencies() -> set[str]:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    names = {canonical(re.match(r"[\w.-]+", entry)[0]) for group in groups for entry in group}
    return names - {PROJECT["name"]}


def test_environment_yml_pins_the_same_set() -> None:
    everything = set(PROJECT["optional-dependencies"])
    assert set_of_environment(ROOT / "environment.yml") == (locked(), everything)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("      - --constraint requirements/lock.txt\n", ""),
        ("cuda,", ""),
        ("  - pip:\n", "  - pip:\n      - torch==2.12.0\n"),
    ],
)
def test_another_set_in_environment_yml_is_seen(tmp_path: Path, written: str, instead: str) -> None:
    text = (ROOT / "environment.yml").read_text()
    assert written in text
    changed = tmp_path / "environment.yml"
    changed.write_text(text.replace(written, instead))
    everything = set(PROJECT["optional-dependencies"])
    assert set_of_environment(changed) != (locked(), everything)


def test_environment_yml_and_the_project_ask_for_the_same_python() -> None:
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert f"python {PROJECT['requires-python']}" in dependencies


def test_every_direct_dependency_is_pinned() -> None:
    assert direct_dependencies() - set(locked()) == set()


@pytest.mark.parametrize("file", [LOCK, "requirements/toolchain.txt", "environment.yml"])
def test_pins_name_no_registry_and_no_folder(file: str) -> None:
    text = (ROOT / file).read_text()
    assert re.findall(r".*(?:://|--find-links|--index|--extra-index|file:).*", text) == []


def test_the_version_is_written_in_one_place() -> None:
    assert version("gpu-workbench") == workbench.__version__
    assert PROJECT["dynamic"] == ["version"]
    package = json.loads((ROOT / "labextension/package.json").read_text())
    assert package["version"] == workbench.__version__


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("console_scripts", "workbench"),
        ("jupyter_client.kernel_provisioners", "workbench-lease-provisioner"),
    ],
)
def test_an_entry_point_leads_to_code(group: str, name: str) -> None:
    (entry,) = entry_points(group=group, name=name)
    assert callable(entry.load())
