"""What is nested deeply crosses both ways, and what is wrong deep inside is named shortly."""

import re
import signal
import sys
import threading

import pytest

from tests.boundary.two_sides import Notebook
from workbench.boundary import CannotCross, pack

DEPTH = 100_000
NODES = """
class Node:
    def __init__(self, value, next): self.value, self.next = value, next
class Slot:
    __slots__ = ('value', 'next')
    def __init__(self, value, next): self.value, self.next = value, next
class Own(Node):
    def __getstate__(self): return dict(vars(self))
def add_layers(make, count, x=None):
    for n in range(count): x = make(n, x)
    return x
def depth_of(step, x):
    n = 0
    while (x := step(x)) is not None: n += 1
    return n
"""
INNERMOST = """
def innermost(x):
    while isinstance(x[0], list): x = x[0]
    return x
"""
KINDS = {
    "instances": ("Node", "lambda x: x.next"),
    "instances_with_slots": ("Slot", "lambda x: x.next"),
    "instances_with_a_say": ("Own", "lambda x: x.next"),
    "lists": ("lambda n, x: [x]", "lambda x: x[0]"),
    "dicts": ("lambda n, x: {n: x}", "lambda x: next(iter(x.values()))"),
    "tuples": ("lambda n, x: (n, x)", "lambda x: x[1]"),
    "lists_in_instances": ("lambda n, x: [Node(n, x)]", "lambda x: x[0].next"),
}


@pytest.mark.parametrize(("make", "step"), KINDS.values(), ids=KINDS)
def test_deep_structures_cross_both_ways(notebook: Notebook, make: str, step: str) -> None:
    depth = DEPTH if make == "Node" else DEPTH // 5
    notebook.start(
        f"{NODES}make, step = {make}, {step}\nx = add_layers(make, {depth})\nbefore = [1]"
    )
    limit, stack = sys.getrecursionlimit(), threading.stack_size()
    changes = notebook.cross(
        f"make, before.append(2)\nthere = depth_of(step, x)\ny = add_layers(make, {depth}, x)\nz = 5"
    )
    names = notebook.world.names
    assert not changes.not_returned, changes.not_returned
    assert (names["there"], names["before"], names["z"]) == (depth - 1, [1, 2], 5)
    assert names["depth_of"](names["step"], names["y"]) == 2 * depth - 1
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, stack)
    inner = names["y"]
    for _ in range(depth):
        inner = names["step"](inner)
    assert inner is names["x"]


@pytest.mark.parametrize(("depth", "where"), [(3, "x.next.next.next.value"), (1000, "x.next.next")])
def test_what_cannot_cross_deep_inside_is_named_shortly(
    notebook: Notebook, depth: int, where: str
) -> None:
    notebook.start(f"{NODES}import threading\nx = Node(threading.Lock(), None)")
    notebook.start(f"x = add_layers(Node, {depth}, x)")
    with notebook.world.active(), pytest.raises(CannotCross) as caught:
        pack(notebook.world.names, ["x"])
    text = str(caught.value)
    assert text.startswith(where)
    assert "next.value (_thread.lock) is a lock" in text
    assert ("more)" in text) == (depth > 10)
    assert len(text) < 150


def test_what_cannot_come_back_from_deep_inside_leaves_the_rest(notebook: Notebook) -> None:
    notebook.start(NODES)
    cell = f"x = add_layers(Node, {DEPTH // 5}, Node(iter([]), None))\ny = add_layers(Node, 2000)\nNode, z = Node, (i for i in ())"
    changes = notebook.cross(cell, ["Node", "add_layers"])
    assert list(changes.not_returned) == ["z"]
    assert notebook.world.names["depth_of"](lambda x: x.next, notebook.world.names["y"]) == 1999


def test_a_recursion_limit_beyond_the_stack_is_not_relied_on(notebook: Notebook) -> None:
    notebook.start(f"{NODES}import sys\nx = add_layers(Node, {DEPTH})")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**8)
    try:
        notebook.cross(f"y = add_layers(Node, {DEPTH}, x)\nallowed = sys.getrecursionlimit()")
        assert sys.getrecursionlimit() == notebook.world.names["allowed"] == 10**8
    finally:
        sys.setrecursionlimit(limit)


def test_own_code_that_never_ends_is_named(notebook: Notebook) -> None:
    notebook.start(
        "class C:\n    def __reduce_ex__(self, p): return self.__reduce_ex__(p)\nx = [C()]"
    )
    message = re.escape("x[0] (__main__.C) cannot be pickled: maximum recursion")
    with notebook.world.active(), pytest.raises(CannotCross, match=message):
        pack(notebook.world.names, ["x"])


def test_a_limit_that_python_itself_sets_is_named(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.boundary.deep._HAS_FIXED_LIMIT", True)
    notebook.start(
        "class C:\n    def __reduce_ex__(self, p): return self.__reduce_ex__(p)\nx = [C()]"
    )
    message = r"maximum recursion .*: Python 3\.\d+ pickles only some thousand levels deep"
    with notebook.world.active(), pytest.raises(CannotCross, match=message):
        pack(notebook.world.names, ["x"])


def test_an_interrupt_waits_until_the_limit_is_as_it_was(notebook: Notebook) -> None:
    notebook.start(f"{NODES}x = add_layers(Node, {DEPTH})")
    limit = sys.getrecursionlimit()
    raised = threading.Event()

    def interrupt() -> None:
        while sys.getrecursionlimit() == limit:
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        raised.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with notebook.world.active(), pytest.raises(KeyboardInterrupt):
        pack(notebook.world.names, ["x"])
    thread.join()
    assert raised.is_set()
    assert sys.getrecursionlimit() == limit


def test_a_change_deep_in_what_did_not_itself_cross_comes_back(notebook: Notebook) -> None:
    """A fingerprint of it is taken on a deep stack too."""
    notebook.start(
        f"{NODES}class Box:\n    def __init__(self): self.deep = add_layers(lambda n, x: [x], 5000, [0])\n"
        "    def __getstate__(self): return {}\n    def __setstate__(self, _): self.__init__()\n"
        "box = Box()"
    )
    notebook.cross(f"{INNERMOST}innermost(box.deep)[0] = 'new'\nadd_layers")
    assert notebook.world.names["innermost"](notebook.world.names["box"].deep) == ["new"]
