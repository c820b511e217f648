"""What the catalogue says of libraries is asked of the libraries themselves."""

from __future__ import annotations

import importlib
import itertools
import pickle
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench.graphs.catalogue import Rule, load_catalogue

CATALOGUE = load_catalogue()
FRESH = {"array", "reduce", "arrays", "result", "score", "xy", "dict:score", "list:array"}


def paths(root: str, results: set[str]) -> list[str]:
    return sorted(
        path
        for path, rule in CATALOGUE.calls.items()
        if path.startswith(root + ".") and rule.result in results
    )


def target(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def samples() -> list[tuple[Any, ...]]:
    a, b = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
    square = np.array([[4.0, 1.0], [1.0, 3.0]])
    flags, whole = np.array([True, False, True]), np.array([1, 2, 3])
    one = [(x,) for x in (square, a, flags, whole, 4, (2, 2), [a, b], [square, square], np.pi)]
    two = [
        (a, b), (square, square), (a, 1), (whole, whole), (a, 50), (square, a[:2]), (flags, flags),
        (flags, a), (1, 2), (np.array([1.0, 2.0]), a), (3, 0.5), ((2, 2), 7), (a, whole), (square, 2),
        (square, whole[:2]), (np.ones(6), np.arange(1, 7)),
    ]  # fmt: skip
    three = [
        (flags, a, b), (a, 0, 3), (a, a, b), (1, 2, 5), (a, b, 1), (whole, 1, 9.0), (square, 0, 0),
        (a, 1, 1), (5, [0.1, 0.1], [1.0, 0.2]), (np.ones(30), 5, 2),
    ]  # fmt: skip
    return [*one, *two, *three]


def arrays_in(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [found for one in value for found in arrays_in(one)]
    return [one for one in vars(value).values() if isinstance(one, np.ndarray)] if hasattr(
        value, "__dict__"
    ) else []  # fmt: skip


def watched(call: Callable[[], Any], given: Any, *, keeps: bool = False) -> Any:
    """Call, and assert that nothing that the catalogue promises is broken."""
    before = pickle.dumps(given)
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002  (the shared state is what is watched)
    states = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    result = call()
    assert (random.getstate(), str(np.random.get_state())) == states, "draws"  # noqa: NPY002
    assert pickle.dumps(given) == before, "changes its arguments"
    for old, new in itertools.product(arrays_in(given), [] if keeps else arrays_in(result)):
        assert old is not new
        assert not np.shares_memory(old, new), "gives its argument's memory"
    return result


def allowed(rule: Rule, given: tuple[Any, ...]) -> bool:
    plain = all(np.isscalar(one) for one in given[1:])
    return rule.least <= len(given) <= rule.positional and (rule.rest != "scalar" or plain)


@pytest.mark.parametrize("path", [*paths("numpy", FRESH), *paths("scipy", FRESH)])
def test_what_is_said_to_be_new_is_new_and_arguments_stay(path: str) -> None:
    rule = CATALOGUE.calls[path]
    function = target(path)
    worked = 0
    for given in samples():
        if not allowed(rule, given):
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                function(*pickle.loads(pickle.dumps(given)))
            except Exception:  # noqa: BLE001  (not what this function takes)
                continue
            result = watched(lambda given=given: function(*given), given)
        worked += 1
        if rule.result == "reduce" and len(given) == 1:
            assert not isinstance(result, np.ndarray)
        if rule.result == "arrays":
            assert isinstance(result, tuple)
    assert worked, "no sample fits: add one"


METHODS = ["array", "reduce", "arrays", "num"]


@pytest.mark.parametrize(
    "name", sorted(n for n, rule in CATALOGUE.methods["array"].items() if rule.result in METHODS)
)
def test_what_an_array_method_is_said_to_give_is_new(name: str) -> None:
    rule = CATALOGUE.methods["array"][name]
    worked = 0
    for array, given in itertools.product(
        [np.array([4.0, 2.0, 1.0]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0])],
        [(), (1,), (0,), (1, 3), ([0, 0],), ([True],), (np.array([1.0, 2.0]),)],
    ):
        if len(given) > rule.positional:
            continue
        try:
            getattr(array.copy(), name)(*given)
        except Exception:  # noqa: BLE001  (not what this method takes)
            continue
        watched(lambda array=array, given=given: getattr(array, name)(*given), (array, given))
        worked += 1
    assert worked


DATA = np.random.default_rng(0).random((40, 4))
LABELS = np.arange(40) % 2


def made(path: str, rule: Rule) -> Any:
    names = {"random_state": 0} if rule.seed else {}
    small = {"n_estimators": 5, "max_iter": 20, "n_clusters": 2, "n_components": 1, "perplexity": 5}
    constructor = target(path)
    known = getattr(constructor(), "get_params", dict)()
    if path.endswith("TSNE"):
        small["max_iter"] = 250
    return constructor(**names, **{k: v for k, v in small.items() if k in known})


@pytest.mark.parametrize("path", paths("sklearn", {"estimator"}))
@pytest.mark.filterwarnings("ignore")
def test_an_estimator_draws_nothing_changes_nothing_and_keeps_nothing(path: str) -> None:
    rule = CATALOGUE.calls[path]
    estimator = made(path, rule)
    one_column = "Isotonic" in path
    data = DATA[:, 0].copy() if one_column else DATA.copy()
    labels = LABELS.copy()
    if "Label" in path:
        watched(lambda: estimator.fit(labels), labels)
        return
    if not hasattr(estimator, "fit"):
        watched(lambda: list(estimator.split(data, labels)), (data, labels))
        return
    watched(lambda: estimator.fit(data, labels), (data, labels), keeps=rule.keeps)
    for name in CATALOGUE.methods["estimator"]:
        if name in {"fit", "partial_fit", "fit_transform", "fit_predict"}:
            continue
        if hasattr(estimator, name):
            state = pickle.dumps(estimator)
            arguments = (data, labels) if name == "score" else (data,)
            try:
                watched(lambda n=name, a=arguments: getattr(estimator, n)(*a), arguments)
            except ValueError:
                continue  # e.g. the inverse of what has fewer columns
            # A tree counts its queries.
            counts = "KNeighbors" in path
            assert counts or pickle.dumps(estimator) == state, f"{name} changes the estimator"


@pytest.mark.parametrize("path", paths("sklearn.datasets", {"xy", "dataset"}))
def test_data_sets_are_the_same_each_time_and_nobody_elses(path: str) -> None:
    names = {"random_state": 0} if CATALOGUE.calls[path].seed else {"return_X_y": True}
    first = watched(lambda: target(path)(**names), ())
    second = target(path)(**names)
    assert pickle.dumps(first) == pickle.dumps(second)
    for old, new in itertools.product(arrays_in(first), arrays_in(second)):
        assert not np.shares_memory(old, new)


@pytest.mark.parametrize("path", sorted(CATALOGUE.calls))
def test_every_path_of_the_catalogue_exists_and_is_the_librarys_own(path: str) -> None:
    if path == "builtins.display":
        return  # IPython's
    assert target(path) is not None
    catalogue = load_catalogue()  # it looks at what is loaded now
    assert catalogue.is_genuine(path)
    assert catalogue.path_of(target(path)) is not None


def test_every_rule_names_its_source() -> None:
    import json
    from importlib import resources

    table = json.loads(resources.files("workbench.graphs").joinpath("catalogue.json").read_text())
    groups = [*table["calls"], *(one for kind in table["methods"].values() for one in kind)]
    assert all(group["source"] for group in groups)
