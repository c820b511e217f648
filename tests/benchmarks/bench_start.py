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

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.frontends.server.live_server import REAL, live_server  # noqa: E402  (needs the path)

SHELL = "from IPython.core.interactiveshell import InteractiveShell as S; shell = S.instance()"
LOAD = f"{SHELL}; shell.run_line_magic('load_ext', 'workbench')"
HEAVY = ("dask", "distributed", "numpy", "pandas", "psutil", "pynvml", "tornado", "torch")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the result.

    Attributes:
        name: What was started.
        bare_s: Median without Workbench; None where nothing was timed.
        with_workbench_s: Median with it.
        ratio: The second over the first.
        holds: Whether the rule holds; None where there is none and the number is only reported.
        detail: What broke the rule.
    """

    name: str
    bare_s: float | None = None
    with_workbench_s: float | None = None
    ratio: float | None = None
    holds: bool | None = None
    detail: str = ""


def compare(
    name: str, bare: Callable[[], float], extended: Callable[[], float], runs: int
) -> Check:
    """Time both by turns, so that a slow moment of the machine meets both."""
    bare(), extended()  # The first ones compile and read from disk.
    pairs = [(bare(), extended()) for _ in range(runs)]
    bare_s, extended_s = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"{name}: {bare_s * 1000:.0f} ms, with Workbench {extended_s * 1000:.0f} ms")
    return Check(
        name=name,
        bare_s=round(bare_s, 4),
        with_workbench_s=round(extended_s, 4),
        ratio=round(extended_s / bare_s, 3),
    )


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
    detail = f"loads {', '.join(loaded)}" if loaded else ""
    print(f"{name}: {detail or 'loads nothing heavy'}")
    return Check(name=name, holds=not loaded, detail=detail)


def main() -> int:
    """Time everything and print the result; 1 where a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="timed runs of each")
    runs = parser.parse_args().runs
    load = compare("%load_ext workbench over bare IPython", python(SHELL), python(LOAD), runs)
    checks = [
        load,
        compare("import workbench", python("pass"), python("import workbench"), runs),
        compare("Jupyter server", server(None), server(REAL), runs),
        stays_light("what import workbench loads", "import workbench"),
        stays_light("what %load_ext workbench loads", LOAD),
    ]
    holds = all(check.holds is not False for check in checks)
    result = {
        "name": "bench-start",
        "ratio": load.ratio,
        "target": None,
        "holds": holds,
        "checks": [asdict(check) for check in checks],
    }
    print(json.dumps(result))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
