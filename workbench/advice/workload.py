"""What a cell could use and how much data it touches, found without running anything."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Final

GPU_LIBRARIES: Final = ("torch", "cupy", "cudf", "cuml", "jax", "numba", "xgboost", "lightgbm")
"""Libraries that can use a GPU where the code asks them to."""
ALWAYS_GPU: Final = frozenset({"cupy", "cudf", "cuml"})
"""Those that use nothing else."""
CPU_LIBRARIES: Final = ("numpy", "pandas", "sklearn", "scipy", "polars")
_DEVICE_WORDS: Final = frozenset({"to", "cuda", "device", "tree_method", "device_type", "jit"})
_DEPTH: Final = 8


@dataclass(slots=True, kw_only=True)
class Workload:
    """What was found.

    Attributes:
        libraries: Top-level packages that the cell's names come from.
        asks_for_device: The code names a device somewhere (`.to(…)`, `device=`, `.cuda()`).
        data_bytes: Of the arrays, frames and tensors that it reads, where they tell their size.
        parameters: Of the torch modules that it reads.
        largest: The largest input and its bytes; None where none tells its size.
    """

    libraries: set[str] = field(default_factory=set)
    asks_for_device: bool = False
    data_bytes: int = 0
    parameters: int = 0
    largest: tuple[str, int] | None = None


def workload(tree: ast.AST, namespace: Mapping[str, Any]) -> Workload:
    """Look at a cell's code, the notebook functions it calls and the sizes of what it reads.

    Args:
        tree: The parsed cell.
        namespace: The notebook's names; only looked at, never called.
    """
    found = Workload()
    _visit(tree, namespace, found, seen=set(), depth=0)
    return found


def _visit(
    tree: ast.AST, namespace: Mapping[str, Any], found: Workload, *, seen: set[int], depth: int
) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.libraries.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.libraries.add(node.module.partition(".")[0])
        elif (isinstance(node, ast.Attribute) and node.attr in _DEVICE_WORDS) or (
            isinstance(node, ast.keyword) and node.arg in _DEVICE_WORDS
        ):
            found.asks_for_device = True
        elif isinstance(node, ast.Name) and node.id in namespace:
            value = namespace[node.id]
            if id(value) not in seen:
                seen.add(id(value))
                _value(node.id, value, namespace, found, seen=seen, depth=depth)


def _value(
    name: str,
    value: Any,
    namespace: Mapping[str, Any],
    found: Workload,
    *,
    seen: set[int],
    depth: int,
) -> None:
    module = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
    found.libraries.add(module.partition(".")[0])
    found.libraries.update(kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    is_code = isinstance(value, FunctionType | type)
    if is_code and module == "__main__" and depth < _DEPTH:
        for tree in _source_trees(value):
            _visit(tree, namespace, found, seen=seen, depth=depth + 1)
    size = _size_bytes(value)
    if size is not None:
        found.data_bytes += size
        if found.largest is None or size > found.largest[1]:
            found.largest = (name, size)
    found.parameters += _parameters(value)


def _module_of(value: Any) -> str:
    origin = value if isinstance(value, FunctionType | type) else type(value)
    return str(getattr(origin, "__module__", "") or "")


def _source_trees(value: FunctionType | type) -> Iterator[ast.AST]:
    try:
        yield ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError):
        return


def _size_bytes(value: Any) -> int | None:
    """Return the bytes of an array, tensor or frame, asked by its exact library type."""
    numpy, pandas, torch = (sys.modules.get(name) for name in ("numpy", "pandas", "torch"))
    if numpy is not None and isinstance(value, numpy.ndarray):
        return int(value.nbytes)
    if torch is not None and isinstance(value, torch.Tensor):
        return int(value.element_size() * value.nelement())
    if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
        usage = value.memory_usage(deep=False)
        return int(usage if isinstance(usage, int) else usage.sum())
    return None


def _parameters(value: Any) -> int:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.nn.Module):
        return 0
    return sum(int(parameter.numel()) for parameter in value.parameters())
