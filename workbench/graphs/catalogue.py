"""What library callables do, read from `catalogue.json`, and whether a live one is the real one."""

from __future__ import annotations

import json
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

_FILE: Final = Path(__file__).with_name("catalogue.json")
_C_CALLABLES: Final = frozenset(
    {
        "ufunc",
        "_ArrayFunctionDispatcher",
        "builtin_function_or_method",
        "cython_function_or_method",
        "_Function",  # scipy.fft's
    }
)
_MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a call does.

    Attributes:
        result: What it gives, in the words that `library_calls.py` explains.
        positional: The most positional arguments it may be given (an `out=` may come after).
        forbid: Keywords under which it would do something else.
        least: The fewest arguments it must be given.
        rest: What the arguments after the first must be: `scalar`, or empty for anything plain.
        seed: It draws random numbers unless `random_state` is an integer.
        seed_unless: By keyword, the values that need no `random_state`.
        keeps: An estimator that keeps the arrays that it is fitted on.
        heavy: Worth a task of its own.
    """

    result: str
    positional: int
    least: int
    forbid: frozenset[str]
    rest: str
    seed: bool
    seed_unless: dict[str, frozenset[str]]
    keeps: bool
    heavy: bool


@dataclass(eq=False, slots=True)
class Catalogue:
    """The rules, and the live objects that they speak of.

    Attributes:
        calls: By public path, e.g. `numpy.linalg.svd`.
        methods: By kind of value, then by name.
        modules: Every module that holds such a path, and their parents.
        constants: Kind of a module's constant, by path.
    """

    calls: dict[str, Rule]
    methods: dict[str, dict[str, Rule]]
    modules: frozenset[str]
    constants: dict[str, str]
    _by_id: dict[int, str] | None = None
    _genuine: dict[str, bool] = field(default_factory=dict)
    _installed: dict[str, bool] = field(default_factory=dict)

    def path_of(self, target: Any) -> str | None:
        """Return the public path of a live library object, found by identity."""
        if self._by_id is None:
            self._by_id = {}
            for path in self.calls:
                found = live_object(path)
                if found is not _MISSING:
                    self._by_id.setdefault(id(found), path)
        known = self._by_id.get(id(target))
        return known if known is not None and self.is_genuine(known) else None

    def is_genuine(self, path: str) -> bool:
        """Whether a path has a rule, and is (or will be, once imported) the library's own."""
        known = self._genuine.get(path)
        if known is None:
            installed = path in self.calls and self.is_installed(path)
            known = self._genuine[path] = installed and _is_genuine(path)
        return known

    def is_installed(self, path: str) -> bool:
        """Whether a path's top-level module is an installed one, not a file of the user's."""
        root = path.partition(".")[0]
        known = self._installed.get(root)
        if known is None:
            known = self._installed[root] = _is_installed(root)
        return known

    def is_module(self, path: str) -> bool:
        """Whether a path is (or will be, once imported) the installed module of that name."""
        parent, _, name = path.rpartition(".")
        held = live_object(path) if parent else _MISSING
        same = held is _MISSING or held is sys.modules.get(path)
        return same and bool(name) and self.is_installed(path)

    def is_constant(self, path: str) -> bool:
        """Whether a constant has a constant's type."""
        found = live_object(path)
        plain = found is _MISSING or found is None or type(found) in {float, int}
        return plain and self.is_installed(path)

    def imports_quietly(self, module: str) -> bool:
        """Whether importing a module runs nothing but an installed package's own set-up."""
        root = module.partition(".")[0]
        known = root in self.modules or root in sys.stdlib_module_names or module in sys.modules
        return known and self.is_installed(module)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return table


def _rules(groups: list[dict[str, Any]], always: frozenset[str]) -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    for group in groups:
        rule = Rule(
            result=group["result"],
            positional=group.get("positional", 9),
            least=group.get("least", 0),
            forbid=always | frozenset(group.get("forbid", "").split()),
            rest=group.get("rest", ""),
            seed=group.get("seed", False),
            seed_unless={
                name: frozenset(values.split())
                for name, values in group.get("seed_unless", {}).items()
            },
            keeps=group.get("keeps", False),
            heavy=group.get("heavy", True),
        )
        prefix = f"{group['in']}." if "in" in group else ""
        for name in group["names"].split():
            found[prefix + name] = rule
    return found


@cache
def _parsed() -> tuple[dict[str, Rule], dict[str, dict[str, Rule]], frozenset[str], dict[str, str]]:
    table = _table()
    always = frozenset(table["forbid_always"].split())
    calls = _rules(table["calls"], always)
    methods = {kind: _rules(groups, always) for kind, groups in table["methods"].items()}
    constants = {
        f"{group['in']}.{name}": group["kind"]
        for group in table["constants"]
        for name in group["names"].split()
    }
    modules: set[str] = set()
    for path in [*calls, *constants]:
        parts = path.split(".")[:-1]
        modules.update(".".join(parts[: n + 1]) for n in range(len(parts)))
    return calls, methods, frozenset(modules), constants


def load_catalogue() -> Catalogue:
    """Return the catalogue; what is live is looked up anew for each analysis."""
    calls, methods, modules, constants = _parsed()
    return Catalogue(calls, methods, modules, constants)


def live_object(path: str) -> Any:
    """Return what a path names in the modules that are loaded, or a marker for nothing.

    Nothing is imported, and no module's `__getattr__` runs.
    """
    module, _, name = path.rpartition(".")
    loaded = sys.modules.get(module)
    return vars(loaded).get(name, _MISSING) if type(loaded) is ModuleType else _MISSING


def _is_genuine(path: str) -> bool:
    found = live_object(path)
    root = path.partition(".")[0]
    if found is _MISSING:
        # A loaded module without the name has been changed, or is of another version.
        return path.rpartition(".")[0] not in sys.modules
    if not _is_plain_callable(found):
        return False
    if type(found) is FunctionType:
        package = _folder(sys.modules[root])
        return package is not None and found.__code__.co_filename.startswith(package)
    # Some of C's functions name no module.
    home = getattr(found, "__module__", None)
    same_root = home is None or home.partition(".")[0].lstrip("_") == root.lstrip("_")
    return same_root or root in _IN_C


_IN_C: Final = frozenset({"math", "hashlib", "time", "itertools", "functools", "operator"})


def _is_plain_callable(target: Any) -> bool:
    kind = type(target)  # never isinstance: that would ask the object itself
    return (
        issubclass(kind, type)
        or kind in {BuiltinFunctionType, FunctionType}
        or kind.__name__ in _C_CALLABLES
    )


def _folder(module: ModuleType) -> str | None:
    origin = vars(module).get("__file__")
    if origin is None:
        return None
    path = Path(origin)
    return str(path.parent) if path.name == "__init__.py" else str(path)


def _is_installed(root: str) -> bool:
    """Whether a top-level module comes from where packages are installed.

    A user's own `statistics.py` beside the notebook is not Python's.
    """
    if root in sys.builtin_module_names:
        return True
    loaded = sys.modules.get(root)
    if loaded is not None:
        origin = vars(loaded).get("__file__") if type(loaded) is ModuleType else None
    else:
        spec = PathFinder.find_spec(root)
        origin = spec.origin if spec is not None else None
    return isinstance(origin, str) and origin.startswith(_installed_places())


@cache
def _installed_places() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(sorted({sysconfig.get_path(name) + "/" for name in names}))
