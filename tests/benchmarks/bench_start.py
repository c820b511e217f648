"""`make bench-start`: what Workbench adds to the start of Python, IPython and the Jupyter server.

Each pair is run by turns, with Workbench and bare, several times (`ARGS="--runs 3"` for a quick
look), and the medians are compared; that is only reported. No heavy library may be loaded: a bare
Python loads none either, so there `ratio` is how many more there are.
The last line is JSON: `ratio` and `target` are those of the first check.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.result import Check, compared, report
from tests.frontends.server.live_server import REAL, ROOT, live_server

SHELL = "from IPython.core.interactiveshell import InteractiveShell as S; shell = S.instance()"
LOAD = f"{SHELL}; shell.run_line_magic('load_ext', 'workbench')"
HEAVY = ("dask", "distributed", "numpy", "pandas", "psutil", "pynvml", "tornado", "torch")


def compare(
    name: str, bare: Callable[[], float], extended: Callable[[], float], runs: int
) -> Check:
    """Time both by turns, so that a slow moment of the machine meets both."""
    extended(), bare()  # The first ones compile and read from disk.
    return compared(name, [(extended(), bare()) for _ in range(runs)], unit="s")


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
    print(f"{name}: {', '.join(loaded) or 'none'}")
    count = len(loaded)
    return Check(name=name, ours=count, peer=0, unit="libraries", ratio=count, target=0)


def main() -> int:
    """Time everything and print the result; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="timed runs of each")
    runs = parser.parse_args().runs
    checks = [
        compare("%load_ext workbench, over IPython alone", python(SHELL), python(LOAD), runs),
        compare("import workbench, over Python", python("pass"), python("import workbench"), runs),
        compare("the Jupyter server listens, over one alone", server(None), server(REAL), runs),
        stays_light("heavy libraries that import workbench loads", "import workbench"),
        stays_light("heavy libraries that %load_ext workbench loads", LOAD),
    ]
    return report("bench-start", checks)


if __name__ == "__main__":
    sys.exit(main())
