"""What a process has beside its names: random state, directory, environment, settings.

It is carried as plain values. Only what changed is set on the other side.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workbench.boundary import library_settings as settings

_LEASE_OWN: Final = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES")
_LEASE_PREFIX: Final = "GPU_WORKBENCH_"
_THREADS_SUFFIX: Final = "_NUM_THREADS"
_STATUS: Final = Path("/proc/self/status")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One piece of state.

    Attributes:
        library: The library that has it; it is neither read nor set where that is not loaded.
        read: Returns it.
        set: Makes it so; given what it is now and what it becomes.
    """

    library: str
    read: Callable[[], Any]
    set: Callable[[Any, Any], None]


def capture() -> dict[str, Any]:
    """Returns the state of this process, by part."""
    return {name: part.read() for name, part in _PARTS.items() if part.library in sys.modules}


def changed_since(before: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns the parts that are no longer as they were: what they were and what they are."""
    now = capture()
    return {
        name: (before.get(name), value)
        for name, value in now.items()
        if name not in before or not _equal(before[name], value)
    }


def arrive(state: Mapping[str, Any]) -> None:
    """Makes this process what the kernel is; libraries that the kernel has loaded are loaded."""
    for name, value in state.items():
        importlib.import_module(_PARTS[name].library)
        now = _PARTS[name].read()
        if not _equal(now, value):  # To set some takes seconds, even to what they are.
            _PARTS[name].set(now, value)


def give_back(changed: Mapping[str, tuple[Any, Any]]) -> None:
    """Makes this process follow the changes; of libraries it never loaded, nothing."""
    for name, (before, now) in changed.items():
        if _PARTS[name].library in sys.modules:
            _PARTS[name].set(before, now)


def _equal(first: Any, second: Any) -> bool:
    return bool(first == second)


def _set_directory(_: str | None, now: str | None) -> None:
    if now is not None:
        os.chdir(now)


def _read_directory() -> str | None:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # It was removed under the process.
        return None


def _read_mask() -> int | None:
    """Returns the mask as Linux tells it: `os.umask` can only tell it by setting another."""
    try:
        status = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = next((line for line in status.splitlines() if line.startswith("Umask:")), None)
    return None if found is None else int(found.split()[1], base=8)


def _set_mask(_: int | None, now: int | None) -> None:
    if now is not None:
        os.umask(now)


def _read_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not _is_of_the_lease(name)}


def _set_environment(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    for name in before.keys() - now.keys():
        os.environ.pop(name, None)
    os.environ.update({name: value for name, value in now.items() if before.get(name) != value})


def _is_of_the_lease(name: str) -> bool:
    return name in _LEASE_OWN or name.startswith(_LEASE_PREFIX) or name.endswith(_THREADS_SUFFIX)


def _read_path() -> list[Any]:
    return list(sys.path)


def _set_path(_: Any, now: list[Any]) -> None:
    sys.path[:] = now


def _read_filters() -> list[Any]:
    return list(warnings.filters)


def _set_filters(_: Any, now: list[Any]) -> None:
    warnings.filters[:] = now  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]  # noqa: SLF001  (makes caches follow)


def _read_random() -> Any:
    return random.getstate()


def _set_random(_: Any, now: Any) -> None:
    random.setstate(now)


def _read_numpy() -> tuple[Any, ...]:
    name, keys, position, has_gauss, gauss = _library("numpy").random.get_state()
    return name, keys.tobytes(), position, has_gauss, gauss


def _set_numpy(_: Any, now: tuple[Any, ...]) -> None:
    numpy = _library("numpy")
    name, keys, *rest = now
    numpy.random.set_state((name, numpy.frombuffer(keys, numpy.uint32), *rest))


def _read_torch() -> bytes:
    return bytes(_library("torch").get_rng_state().numpy())


def _set_torch(_: Any, now: bytes) -> None:
    torch = _library("torch")
    torch.set_rng_state(torch.frombuffer(bytearray(now), dtype=torch.uint8))


def _library(name: str) -> Any:
    return sys.modules[name]


_PARTS: Final = {
    "path": _Part(library="sys", read=_read_path, set=_set_path),
    "directory": _Part(library="os", read=_read_directory, set=_set_directory),
    "environment": _Part(library="os", read=_read_environment, set=_set_environment),
    "file mode mask": _Part(library="os", read=_read_mask, set=_set_mask),
    "filters": _Part(library="warnings", read=_read_filters, set=_set_filters),
    "random": _Part(library="random", read=_read_random, set=_set_random),
    "numpy": _Part(library="numpy", read=_read_numpy, set=_set_numpy),
    "torch": _Part(library="torch", read=_read_torch, set=_set_torch),
    "recursion limit": _Part(
        library="sys", read=sys.getrecursionlimit, set=settings.set_recursion_limit
    ),
    "decimal": _Part(library="decimal", read=settings.read_decimal, set=settings.set_decimal),
    "numpy settings": _Part(library="numpy", read=settings.read_numpy, set=settings.set_numpy),
    "pandas settings": _Part(library="pandas", read=settings.read_pandas, set=settings.set_pandas),
    "torch settings": _Part(library="torch", read=settings.read_torch, set=settings.set_torch),
    "logging": _Part(library="logging", read=settings.read_logging, set=settings.set_logging),
}
