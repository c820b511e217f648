"""What a cell could use and how much data it touches, found without running anything."""

from __future__ import annotations

import ast
import dis
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, Final

from workbench.advice.looks import attributes, bases, is_a, module_of

GPU_LIBRARIES: Final = ("torch", "cupy", "cudf", "cuml", "jax", "numba", "xgboost", "lightgbm")
"""Libraries that can use a GPU where the code asks them to."""
ALWAYS_GPU: Final = frozenset({"cupy", "cudf", "cuml"})
"""Those that use nothing else."""
CPU_LIBRARIES: Final = ("numpy", "pandas", "sklearn", "scipy", "polars")
_DEVICE_WORDS: Final = frozenset({"to", "cuda", "device", "tree_method", "device_type", "jit"})
_of_class = type.__dict__["__dict__"].__get__


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
    names = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                found.libraries.update(_package(alias.name) for alias in aliases)
            case ast.ImportFrom(module=str(module)):
                found.libraries.add(_package(module))
            case ast.Attribute(attr=word) | ast.keyword(arg=word):
                found.asks_for_device |= word in _DEVICE_WORDS
            case ast.Name(id=name):
                names.append(name)
    _visit(names, namespace, found)
    return found


def _visit(names: list[str], namespace: Mapping[str, Any], found: Workload) -> None:
    """Look at the values of names, and at those that their functions read, and so on."""
    seen: set[int] = set()
    while names:
        name = names.pop()
        if name not in namespace or id(namespace[name]) in seen:
            continue
        value = namespace[name]
        seen.add(id(value))
        module = module_of(value)
        found.libraries.add(_package(module))
        found.libraries.update(_package(module_of(kind)) for kind in bases(type(value)))
        found.data_bytes += _size_bytes(value) or 0
        found.parameters += _parameters(value)
        if module == "__main__":
            for function in _functions(value):
                names += _read(function.__code__, found)


def _package(module: str) -> str:
    return module.partition(".")[0]


def _functions(value: Any) -> Iterator[FunctionType]:
    """Yield a function, or those that a class defines, without asking either."""
    inside = _of_class(value).values() if is_a(value, type) else (value,)
    for one in inside:
        function = one.__func__ if type(one) in {staticmethod, classmethod} else one
        if type(function) is FunctionType:
            yield function


def _read(code: CodeType, found: Workload) -> Iterator[str]:
    """Note what a function's code does, and yield the global names that it reads.

    A job's home has no source of the functions that come from other cells.
    """
    for step in dis.get_instructions(code):
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield step.argval
        elif step.opname in {"LOAD_ATTR", "LOAD_METHOD"}:
            found.asks_for_device |= step.argval in _DEVICE_WORDS
        elif step.opname == "IMPORT_NAME":
            found.libraries.add(_package(step.argval))
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _read(constant, found)
        elif type(constant) is tuple:  # The names of keyword arguments are among these.
            found.asks_for_device |= not _DEVICE_WORDS.isdisjoint(constant)


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
