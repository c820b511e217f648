"""Objects that defend themselves are looked at all the same, and none of their code runs."""

from __future__ import annotations

import ast
import weakref
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from workbench.advice.looks import attributes, is_a, module_of
from workbench.advice.workload import workload
from workbench.frontends.magics.schedule import imported_modules


def _refuse(*_: Any) -> Any:
    raise ZeroDivisionError


class Lying:
    __class__ = property(_refuse)  # type: ignore[assignment]
    __module__ = "lying"


class Indexed(dict[str, Any]):
    __getattr__ = dict.__getitem__


class Guarded:
    __getattribute__ = _refuse


class Guarding(type):
    def __getattr__(cls, name: str) -> Any:
        raise ZeroDivisionError


class Made(metaclass=Guarding):
    pass


class Mapped(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError


class Array(np.ndarray[Any, Any]):
    nbytes = property(_refuse)  # type: ignore[assignment]


class Net(torch.nn.Linear):
    def parameters(self, *_: Any) -> Any:
        raise ZeroDivisionError


def hostile() -> dict[str, Any]:
    kept = Lying()
    return {
        "lying": kept,
        "indexed": Indexed(a=1),
        "guarded": Guarded(),
        "made": Made,
        "of_made": Made(),
        "mock": MagicMock(),
        "proxy": weakref.proxy(kept),
        "mapped": torch.zeros(2).as_subclass(Mapped),
        "array": np.zeros(4).view(Array),
        "net": Net(2, 3),
        "kept": kept,
    }


@pytest.mark.parametrize("name", list(hostile()))
def test_looking_runs_no_code_of_the_users(name: str) -> None:
    namespace = hostile()
    workload(ast.parse(name), namespace)
    assert imported_modules({name: namespace[name]}) is not None


def test_what_is_said_of_an_object_is_what_it_truly_is() -> None:
    assert is_a(np.zeros(1).view(Array), np.ndarray)
    assert not is_a(MagicMock(spec=dict), dict)
    assert module_of(np) == "numpy"
    assert module_of(np.zeros) == "numpy"
    assert module_of(np.zeros(1)) == "numpy"
    assert module_of(np.ndarray) == "numpy"
    assert module_of(ast.parse) == "ast"
    assert attributes(3) == {}


def test_sizes_are_found_behind_what_users_override() -> None:
    found = workload(ast.parse("array; net"), hostile())
    assert found.data_bytes == 32
    assert found.parameters == 9
