"""What a cell raises comes back as what it is, whatever it holds."""

import urllib.error
from pathlib import Path
from typing import Any

import pytest

from tests.boundary.two_sides import Notebook
from workbench.boundary import RemoteError

LOCK = "import threading\nlock = threading.Lock()\n"


def raised(notebook: Notebook, cell: str, before: str = "") -> Any:
    notebook.start(before)
    changes = notebook.cross(cell)
    assert changes.error is not None
    return changes.error.as_exception()


def test_an_http_error_comes_back_without_its_answer(notebook: Notebook, tmp_path: Path) -> None:
    (tmp_path / "answer").write_bytes(b"x")
    error = raised(
        notebook,
        "from urllib.error import HTTPError\n"
        f"raise HTTPError('http://x/y', 404, 'Not Found', {{'A': 'b'}}, open({str(tmp_path)!r} + '/answer', 'rb'))",
    )
    assert type(error) is urllib.error.HTTPError
    assert str(error) == "HTTP Error 404: Not Found"
    assert (error.code, error.url, error.filename) == (404, "http://x/y", "http://x/y")
    assert (error.headers, error.reason) == ({"A": "b"}, "Not Found")
    (note,) = error.__notes__
    assert note.startswith("HTTPError came back without ")
    assert ".fp (BufferedReader is an open file)" in note
    assert not hasattr(error, "never_there")  # Its own __getattr__ looks for the answer.
    assert error._render_traceback_()[-1] == f"\n{note}"


@pytest.mark.parametrize(
    ("made", "what"),
    [
        ("threading.Lock()", "lock is a lock"),
        ("(i for i in ())", "generator is a suspended computation"),
        ("open('/dev/null')", "TextIOWrapper is an open file"),
        ("socket.socket()", "socket is a socket"),
        ("{'deep': [sys._getframe()]}", "frame is a suspended computation"),
    ],
)
def test_an_attribute_that_cannot_cross_is_dropped_and_named(
    notebook: Notebook, made: str, what: str
) -> None:
    error = raised(
        notebook,
        "import threading, socket, sys\nclass E(ValueError): pass\n"
        f"e = E('no', 5)\ne.kept = [1]\ne.held = {made}\ne.add_note('mine')\nerr = e.kept\nraise e",
    )
    assert type(error) is notebook.world.names["E"]
    assert (error.args, error.kept) == (("no", 5), [1])
    assert error.kept is notebook.world.names["err"]
    assert not hasattr(error, "held")
    assert error.__notes__ == ["mine", f"E came back without .held ({what})"]


def test_slots_that_cannot_cross_are_dropped_too(notebook: Notebook) -> None:
    error = raised(
        notebook,
        LOCK
        + "class E(Exception):\n    __slots__ = ('a', 'b')\ne = E(1)\ne.a, e.b = 2, lock\nraise e",
    )
    assert (error.args, error.a) == ((1,), 2)
    assert not hasattr(error, "b")


def test_an_argument_that_cannot_cross_shows_as_it_did(notebook: Notebook) -> None:
    error = raised(notebook, LOCK + "raise ValueError('no', [1, lock])")
    assert type(error) is ValueError
    assert str(error).startswith("('no', [1, <unlocked _thread.lock object at ")
    assert error.__notes__ == ["ValueError came back without args[1][1] (lock is a lock)"]


def test_what_it_arose_from_comes_too(notebook: Notebook) -> None:
    error = raised(
        notebook,
        LOCK + "try:\n    try: 1 / 0\n    except ZeroDivisionError as z:\n"
        "        z.held = lock\n        raise KeyError('k') from z\n"
        "except KeyError as k:\n    k.held = lock\n    raise OSError(2, 'gone', 'f')",
    )
    assert type(error) is FileNotFoundError
    assert (error.errno, error.strerror, error.filename) == (2, "gone", "f")
    assert error.__cause__ is None
    assert not error.__suppress_context__
    key = error.__context__
    assert (type(key), key.args, key.__suppress_context__) == (KeyError, ("k",), True)
    assert type(key.__cause__) is ZeroDivisionError
    assert key.__cause__ is key.__context__
    assert key.__cause__.__notes__ == ["ZeroDivisionError came back without .held (lock is a lock)"]
    assert not hasattr(error, "__notes__")
    assert "KeyError came back without" in "".join(error._render_traceback_())


def test_an_exception_within_one_is_pared_itself(notebook: Notebook) -> None:
    error = raised(
        notebook,
        LOCK + "class Inner(Exception): pass\ni = Inner(1)\ni.pool = lock\n"
        "e = ConnectionError(i)\ne.reason = i\nraise e",
    )
    assert type(error) is ConnectionError
    (inner,) = error.args
    assert type(inner) is notebook.world.names["Inner"]
    assert error.reason is inner
    assert inner.__notes__ == ["Inner came back without .pool (lock is a lock)"]


def test_exceptions_that_hold_one_another_come_back_so(notebook: Notebook) -> None:
    error = raised(
        notebook,
        LOCK + "a, b = KeyError('a'), KeyError('b')\na.b, b.a = b, a\nb.held = lock\nraise a",
    )
    assert error.b.a is error


def test_members_of_a_group_are_pared_each(notebook: Notebook) -> None:
    error = raised(
        notebook,
        LOCK + "a, b = KeyError('a'), OSError(2, 'gone')\na.held = lock\n"
        "inner = ExceptionGroup('in', [b])\nb.__context__ = a\n"
        "raise ExceptionGroup('out', [a, inner, TypeError(1)])",
    )
    assert type(error) is ExceptionGroup
    assert str(error) == "out (3 sub-exceptions)"
    first, inner, last = error.exceptions
    assert [type(first), type(inner), type(last)] == [KeyError, ExceptionGroup, TypeError]
    assert type(inner.exceptions[0]) is FileNotFoundError
    assert inner.exceptions[0].__context__ is first
    assert not hasattr(first, "held")
    assert error.args == ("out", [first, inner, last])


def test_a_group_whose_constructor_takes_something_else(notebook: Notebook) -> None:
    error = raised(
        notebook,
        LOCK + "class G(ExceptionGroup):\n    def __new__(cls, errors, code):\n"
        "        self = super().__new__(G, f'code {code}', errors)\n        self.code = code\n"
        "        return self\n"
        "k = KeyError('a')\nk.held = lock\nraise G([k], 5)",
    )
    assert type(error) is notebook.world.names["G"]
    assert (error.code, error.message) == (5, "code 5")
    assert error.args == ([error.exceptions[0]], 5)


HOLD = "{}\nimport threading\ntry:\n    {}\nexcept BaseException as e:\n    e.held = threading.Lock()\n    raise"


@pytest.mark.parametrize(
    ("before", "statement", "attributes"),
    [
        ("import json", "json.loads('[1,')", ("msg", "doc", "pos", "lineno", "colno")),
        ("", "b'\\xff'.decode()", ("encoding", "object", "start", "end", "reason")),
        (
            "import subprocess",
            "raise subprocess.CalledProcessError(3, ['x'], output='o')",
            ("returncode", "cmd", "output", "stderr"),
        ),
        (
            "import subprocess",
            "raise subprocess.CalledProcessError(returncode=-9, cmd='x')",
            ("returncode", "cmd"),
        ),
        ("", "import no_such_module", ("msg", "name", "path")),
        ("", "never_bound", ("name",)),
        ("", "(1).nothing", ("name",)),
        ("", "compile('1 +', 'f', 'exec')", ("msg", "filename", "lineno", "offset", "text")),
        ("", "open('/no/such/file')", ("errno", "strerror", "filename", "filename2")),
        ("", "raise SystemExit(3)", ("code",)),
        ("", "raise StopIteration([1])", ("value",)),
        ("", "raise BlockingIOError(11, 'full', 7)", ("errno", "characters_written")),
        (
            "class E(KeyError):\n    def __init__(self, *, key): self.key = key",
            "raise E(key=1)",
            ("key",),
        ),
        (
            "class E(Exception):\n    def __new__(cls, a, *, b): return super().__new__(cls, a)\n"
            "    def __init__(self, a, *, b): self.b = b",
            "raise E(1, b=2)",
            ("b",),
        ),
        (
            "class E(UnicodeDecodeError):\n    def __init__(self): self.x = 1",
            "raise E()",
            ("x", "encoding", "object"),
        ),
        (
            "class E(Exception):\n    def __init__(self, a): self.a = a\n"
            "    def __reduce__(self): raise TypeError('cannot pickle me')",
            "raise E([1])",
            ("a",),
        ),
        (
            "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass E(Exception):\n    a: int",
            "raise E(1)",
            ("a",),
        ),
        (
            "class E(OSError):\n    def __init__(self, path): super().__init__(2, 'gone', path)",
            "raise E('p')",
            ("errno", "strerror", "filename"),
        ),
    ],
)
@pytest.mark.parametrize("holds", [False, True])
def test_it_is_what_it_is_when_run_here(
    notebook: Notebook, before: str, statement: str, attributes: tuple[str, ...], *, holds: bool
) -> None:
    frozen = "frozen" in before
    hold = HOLD.replace("e.held = ", "e.__dict__['held'] = ") if frozen else HOLD
    cell = hold.format("", statement) if holds else statement
    names: dict[str, Any] = {"__name__": "__main__"}
    with pytest.raises(BaseException) as caught:  # noqa: PT011  (any)
        exec(f"{before}\n{statement}", names)
    here: Any = caught.value
    error = raised(notebook, cell, before)
    assert type(error).__qualname__ == type(here).__qualname__
    assert not isinstance(error, RemoteError)
    assert str(error) == str(here)
    assert error.args == here.args
    assert {name: getattr(error, name) for name in attributes} == {
        name: getattr(here, name) for name in attributes
    }
    notes = [f"{type(here).__qualname__} came back without .held (lock is a lock)"]
    assert getattr(error, "__notes__", None) == (notes if holds else None)
    assert not hasattr(error, "held")


def test_a_type_that_cannot_come_back_is_told_by_its_text(notebook: Notebook) -> None:
    error = raised(
        notebook,
        LOCK + "class E(ValueError):\n    guard = lock\n"
        "try: 1 / 0\nexcept ZeroDivisionError as z:\n    e = E('no')\n    e.add_note('n')\n    raise e from z",
    )
    assert type(error) is RemoteError
    assert str(error) == "E: no"
    assert type(error.__cause__) is ZeroDivisionError
    assert error.__notes__ == ["n", "E could not itself come back: lock is a lock"]


def test_a_long_chain_comes_back_whole(notebook: Notebook) -> None:
    error: BaseException | None = raised(
        notebook,
        "e = None\nfor n in range(2000):\n    new = KeyError(n)\n    new.__context__ = e\n    e = new\nraise e",
    )
    numbers: list[int] = []
    while error is not None:
        numbers += error.args
        error = error.__context__
    assert numbers == list(range(2000))[::-1]


def test_one_that_cannot_be_made_here_keeps_its_traceback(notebook: Notebook) -> None:
    error = raised(
        notebook,
        "class Picky:\n    def __reduce__(self): return make, (os.getpid(),)\n"
        "def make(pid):\n    if pid != os.getpid(): raise KeyError('not here')\n"
        "def fail():\n    e = ValueError('v')\n    e.picky = Picky()\n    raise e\nfail()",
        "import os",
    )
    assert type(error) is RemoteError
    assert error.__notes__ == ["It cannot be made here: KeyError: 'not here'"]
    assert error._render_traceback_()[-1].strip() == "ValueError: v"
