"""What a cell could use and how much data it touches, found without running anything."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

from workbench.advice.looks import attributes, bases, is_a, module_of

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
    """

    libraries: set[str] = field(default_factory=set)
    asks_for_device: bool = False
    data_bytes: int = 0
    parameters: int = 0


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
                _value(value, namespace, found, seen=seen, depth=depth)


def _value(
    value: Any,
    namespace: Mapping[str, Any],
    found: Workload,
    *,
    seen: set[int],
    depth: int,
) -> None:
    module = module_of(value)
    found.libraries.add(module.partition(".")[0])
    found.libraries.update(module_of(kind).partition(".")[0] for kind in bases(type(value)))
    if is_a(value, FunctionType, type) and module == "__main__" and depth < _DEPTH:
        for tree in _source_trees(value):
            _visit(tree, namespace, found, seen=seen, depth=depth + 1)
    size = _size_bytes(value)
    if size is not None:
        found.data_bytes += size
    found.parameters += _parameters(value)


def _source_trees(value: FunctionType | type) -> Iterator[ast.AST]:
    if inspect.getattr_static(type(value), "__getattr__", None) is not None:
        return  # A metaclass that answers for attributes would be asked by `inspect`.
    try:
        yield ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return


def _size_bytes(value: Any) -> int | None:
    """Return the bytes of an array, tensor or frame; None for users' own subclasses of some."""
    numpy, pandas, torch = (sys.modules.get(name) for name in ("numpy", "pandas", "torch"))
    if numpy is not None and is_a(value, numpy.ndarray):
        return int(numpy.ndarray.nbytes.__get__(value))
    if torch is not None and type(value) in {torch.Tensor, torch.nn.Parameter}:
        return int(value.element_size() * value.nelement())
    if pandas is not None and type(value) in {pandas.DataFrame, pandas.Series}:
        usage = value.memory_usage(deep=False)
        return int(usage if isinstance(usage, int) else usage.sum())
    return None


def _parameters(value: Any) -> int:
    """Return how many weights a torch module has, without asking the module."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    total, left, seen = 0, [value], set()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if type(one) is torch.nn.Parameter:
            total += int(one.numel())
        elif is_a(one, torch.nn.Module):
            for place in ("_parameters", "_modules"):
                inside = attributes(one).get(place)
                if type(inside) is dict or type(inside) is OrderedDict:
                    left += inside.values()
    return total
