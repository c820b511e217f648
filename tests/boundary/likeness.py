"""Compares two object graphs: values, types, order, and who shares what with whom."""

import array
import collections
import gc
import re
import threading
import types
from typing import Any

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice, re.Pattern)
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


def difference(first: Any, second: Any) -> str:
    """Returns where two object graphs differ first; empty where they do not."""
    likeness = Likeness()
    likeness.compare(first, second, "")
    likeness.compare_memory()
    return "\n".join(likeness.found[:10])


class Likeness:
    def __init__(self) -> None:
        self.found: list[str] = []
        self.pairs: dict[int, tuple[Any, Any]] = {}
        self.partners: dict[int, int] = {}
        self.arrays: list[tuple[str, Any, Any]] = []

    def compare(self, one: Any, other: Any, path: str) -> None:
        if type(one).__qualname__ != type(other).__qualname__:
            self.found.append(f"{path}: {type(one)} is not {type(other)}")
        elif isinstance(one, ATOMS) and type(one) in ATOMS:
            if not (one == other or (one != one and other != other)):
                self.found.append(f"{path}: {one!r} is not {other!r}")
        elif isinstance(one, types.BuiltinFunctionType):
            if one.__name__ != other.__name__:
                self.found.append(f"{path}: {one!r} is not {other!r}")
            self.compare(one.__self__, other.__self__, f"{path}.__self__")
        elif isinstance(one, types.ModuleType):
            if one is not other and one.__name__ != "__main__":
                self.found.append(f"{path}: {one!r} is not {other!r}")
        elif type(one) is tuple and not one:
            return
        elif id(one) in self.pairs or id(other) in self.partners:
            if self.partners.get(id(other)) != id(one):
                self.found.append(f"{path}: shared here is not shared there")
        else:
            self.pairs[id(one)] = (one, other)
            self.partners[id(other)] = id(one)
            self.compare_content(one, other, path)

    def compare_content(self, one: Any, other: Any, path: str) -> None:
        module = type(one).__module__.partition(".")[0]
        if isinstance(one, type):
            self.compare_classes(one, other, path)
        elif isinstance(one, types.FunctionType):
            self.compare_functions(one, other, path)
        elif isinstance(one, types.MethodType):
            self.compare(one.__func__, other.__func__, f"{path}.__func__")
            self.compare(one.__self__, other.__self__, f"{path}.__self__")
        elif isinstance(one, types.CellType):
            self.compare(content(one), content(other), f"{path}.cell")
        elif module == "numpy" and hasattr(one, "strides") and hasattr(one, "flat"):
            self.compare_arrays(one, other, path)
        elif module == "torch" and hasattr(one, "storage_offset"):
            self.compare_tensors(one, other, path)
        elif hasattr(one, "equals") and (module == "pandas" or hasattr(one, "_mgr")):
            self.compare_frames(one, other, path)
        else:
            self.compare_items(one, other, path)

    def compare_items(self, one: Any, other: Any, path: str) -> None:
        if isinstance(one, dict):
            self.compare_lists(list(one.items()), list(other.items()), path)
        elif isinstance(one, list | tuple | collections.deque):
            self.compare_lists(list(one), list(other), path)
        elif isinstance(one, set | frozenset):
            plain = all(isinstance(item, ATOMS) for item in one)
            if len(one) != len(other) or (plain and one != other):
                self.found.append(f"{path}: {one!r} is not {other!r}")
        elif isinstance(one, bytearray | array.array):
            if one != other:
                self.found.append(f"{path}: {one!r} is not {other!r}")
        elif isinstance(one, BaseException):
            self.compare(one.args, other.args, f"{path}.args")
        elif isinstance(one, property):
            self.compare((one.fget, one.fset), (other.fget, other.fset), path)
        elif isinstance(one, VIEWS):
            self.compare(gc.get_referents(one), gc.get_referents(other), path)
        elif isinstance(one, types.MappingProxyType):
            self.compare(dict(one), dict(other), path)
        elif isinstance(one, types.GeneratorType | type(threading.RLock())):
            return
        elif not hasattr(one, "__dict__") and not hasattr(type(one), "__slots__"):
            self.compare_states(one, other, path)
        if hasattr(one, "param_groups"):  # A torch optimizer leaves the rest out when pickled.
            for name in ("state", "param_groups", "defaults"):
                self.compare(getattr(one, name), getattr(other, name), f"{path}.{name}")
        elif hasattr(one, "__dict__") and not isinstance(one, BaseException):
            self.compare(one.__dict__, other.__dict__, f"{path}.__dict__")
        for cls in type(one).__mro__:
            for name in cls.__dict__.get("__slots__", ()):
                if name not in ("__dict__", "__weakref__"):
                    mine, others = getattr(one, name, None), getattr(other, name, None)
                    self.compare(mine, others, f"{path}.{name}")

    def compare_lists(self, one: list[Any], other: list[Any], path: str) -> None:
        if len(one) != len(other):
            self.found.append(f"{path}: {len(one)} items are not {len(other)}: {one} {other}")
        for index, (mine, others) in enumerate(zip(one, other, strict=False)):
            if isinstance(mine, tuple) and len(mine) == 2 and type(mine[0]) is str:
                self.compare(mine[0], others[0], f"{path} key {index}")
                self.compare(mine[1], others[1], f"{path}[{mine[0]!r}]")
            else:
                self.compare(mine, others, f"{path}[{index}]")

    def compare_states(self, one: Any, other: Any, path: str) -> None:
        mine, others = one.__reduce_ex__(4), other.__reduce_ex__(4)
        if isinstance(mine, str):
            self.compare(mine, others, path)
        else:
            self.compare(list(mine[1:3]), list(others[1:3]), f"{path}.state")

    def compare_classes(self, one: type, other: type, path: str) -> None:
        if one is other:
            return
        if one.__module__ != "__main__":
            self.found.append(f"{path}: {one!r} was copied")
        self.compare(one.__bases__, other.__bases__, f"{path}.__bases__")
        left = ("__dict__", "__weakref__", "_abc_impl", "__slotnames__")
        mine = {name: v for name, v in one.__dict__.items() if name not in left}
        others = {name: v for name, v in other.__dict__.items() if name not in left}
        if sorted(mine) != sorted(others):
            self.found.append(f"{path}: {sorted(mine)} is not {sorted(others)}")
        for name in mine.keys() & others.keys():
            if not isinstance(mine[name], types.MemberDescriptorType | types.GetSetDescriptorType):
                self.compare(mine[name], others[name], f"{path}.{name}")

    def compare_functions(self, one: Any, other: Any, path: str) -> None:
        if one.__code__.co_code != other.__code__.co_code or one.__name__ != other.__name__:
            self.found.append(f"{path}: other code")
        if one.__globals__.get("__name__") != other.__globals__.get("__name__"):
            self.found.append(f"{path}: other globals")
        for name in ("__defaults__", "__kwdefaults__", "__closure__", "__dict__"):
            self.compare(getattr(one, name), getattr(other, name), f"{path}.{name}")

    def compare_arrays(self, one: Any, other: Any, path: str) -> None:
        self.arrays.append((path, one, other))
        if (one.dtype, one.shape, one.flags.writeable) != (
            other.dtype,
            other.shape,
            other.flags.writeable,
        ):
            self.found.append(f"{path}: {one.dtype, one.shape} is not {other.dtype, other.shape}")
        elif one.dtype.hasobject:
            self.compare(one.tolist(), other.tolist(), path)
        elif one.tobytes() != other.tobytes():
            self.found.append(f"{path}: {one!r} is not {other!r}")

    def compare_tensors(self, one: Any, other: Any, path: str) -> None:
        mine, others = one.detach(), other.detach()
        if (mine.dtype, mine.shape, mine.stride()) != (others.dtype, others.shape, others.stride()):
            self.found.append(
                f"{path}: {mine.dtype, mine.shape} is not {others.dtype, others.shape}"
            )
        elif not bool(((mine == others) | (mine != mine)).all()):
            self.found.append(f"{path}: {one!r} is not {other!r}")
        if one.requires_grad != other.requires_grad and one.is_leaf:
            self.found.append(f"{path}: requires_grad differs")
        if one.is_leaf:
            self.compare(one.grad, other.grad, f"{path}.grad")
        if mine.dtype.is_floating_point and mine.element_size() > 2:
            self.arrays.append((path, mine.numpy(), others.numpy()))

    def compare_frames(self, one: Any, other: Any, path: str) -> None:
        mine, others = (frame._mgr if hasattr(frame, "_mgr") else frame for frame in (one, other))
        if not mine.equals(others) or str(getattr(one, "dtypes", "")) != str(
            getattr(other, "dtypes", "")
        ):
            self.found.append(f"{path}:\n{one}\nis not\n{other}")
        if hasattr(one, "attrs"):
            self.compare(one.attrs, other.attrs, f"{path}.attrs")
            self.compare(one.index, other.index, f"{path}.index")
        if hasattr(one, "names"):
            self.compare(list(one.names), list(other.names), f"{path}.names")

    def compare_memory(self) -> None:
        for index, (path, mine, others) in enumerate(self.arrays):
            for other_path, mine_too, others_too in self.arrays[:index]:
                import numpy as np

                if np.shares_memory(mine, mine_too) != np.shares_memory(others, others_too):
                    self.found.append(f"{path} and {other_path}: memory shared on one side only")


def content(cell: types.CellType) -> Any:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()
