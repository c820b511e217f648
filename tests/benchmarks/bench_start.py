"""What Workbench adds to the start of Python, IPython and the Jupyter server.

Each pair is run in turn, the bare start and then the one with Workbench, several times; medians
are compared. Run it with `make bench-start`, with `ARGS="--runs 3"` for a quick look. The last line
is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.frontends.server.live_server import REAL, ROOT, live_server

SHELL = "from IPython.core.interactiveshell import InteractiveShell as S; shell = S.instance()"
LOAD = f"{SHELL}; shell.run_line_magic('load_ext', 'workbench')"
HEAVY = ("dask", "distributed", "numpy", "pandas", "psutil", "pynvml", "tornado", "torch")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the result.

    Attributes:
        target: The most that `value` may be; None where the number is only reported.
    """

    name: str
    value: float
    unit: str
    target: float | None
    detail: str

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        return None if self.target is None else self.value <= self.target


def compare(
    name: str, bare: Callable[[], float], extended: Callable[[], float], runs: int
) -> tuple[float, Check]:
    """Time both by turns, so that a slow moment of the machine meets both; return the ratio too."""
    bare(), extended()  # The first ones compile and read from disk.
    pairs = [(bare(), extended()) for _ in range(runs)]
    bare_s, extended_s = (statistics.median(times) for times in zip(*pairs, strict=True))
    check = Check(
        name=name,
        value=round(extended_s - bare_s, 4),
        unit="s",
        target=None,
        detail=f"{bare_s:.3f} s bare, {extended_s:.3f} s with Workbench",
    )
    return extended_s / bare_s, check


def python(code: str) -> Callable[[], float]:
    """Return what times a Python process that runs `code`."""

    def timed() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
        return time.perf_counter() - began

    return timed


def server(extension: str | None) -> Callable[[], float]:
    """Return what times a Jupyter server until it listens."""

    def timed() -> float:
        with tempfile.TemporaryDirectory(prefix="wb") as place:
            began = time.perf_counter()
            with live_server(Path(place), extension=extension):
                return time.perf_counter() - began

    return timed


def stays_light(name: str, code: str) -> Check:
    """Check that `code` loads none of the heavy libraries."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    loaded = [one for one in HEAVY if one in json.loads(found.stdout.splitlines()[-1])]
    return Check(
        name=name,
        value=len(loaded),
        unit="heavy libraries",
        target=0,
        detail=", ".join(loaded),
    )


def main() -> int:
    """Time everything and print the result; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="timed runs of each")
    runs = parser.parse_args().runs
    ratio, load = compare("%load_ext workbench adds to IPython", python(SHELL), python(LOAD), runs)
    _, bare = compare("import workbench adds", python("pass"), python("import workbench"), runs)
    _, web = compare("the Jupyter server starts later by", server(None), server(REAL), runs)
    checks = [
        load,
        bare,
        web,
        stays_light("import workbench loads", "import workbench"),
        stays_light("%load_ext workbench loads", LOAD),
    ]
    for check in checks:
        print(f"{check.name}: {check.value} {check.unit} {check.detail}".rstrip())
    holds = all(check.holds is not False for check in checks)
    result = {
        "name": "bench-start",
        "ratio": round(ratio, 3),
        "target": None,
        "holds": holds,
        "checks": [{**asdict(check), "holds": check.holds} for check in checks],
    }
    print(json.dumps(result))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
