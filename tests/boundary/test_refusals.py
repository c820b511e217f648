"""What cannot cross is named, with the way to it, before anything is queued."""

import gc
import io
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boundary.two_sides import Notebook
from workbench.boundary import CannotCross, pack

CASES = {
    "an_open_file": (
        "f = open(TMP + '/x', 'w')",
        "f (_io.TextIOWrapper) is an open file. Close it",
    ),
    "a_file_deep_inside": (
        "cfg = {'log': [1, {'f': open(TMP + '/x', 'w')}]}",
        "cfg['log'][1]['f'] (_io.TextIOWrapper) is an open file",
    ),
    "a_file_in_an_attribute": (
        "class C: pass\nc = C()\nc.out = open(TMP + '/x', 'w')",
        "c.out (_io.TextIOWrapper) is an open file",
    ),
    "a_file_in_a_closure": (
        "def make():\n    out = open(TMP + '/x', 'w')\n    return lambda: out\nf = make()",
        "f's variable 'out' (_io.TextIOWrapper) is an open file",
    ),
    "a_name_that_only_a_function_reads": (
        "out = open(TMP + '/x', 'w')\ndef f(): return out",
        "out (_io.TextIOWrapper) is an open file",
    ),
    "a_lock": ("import threading\nx = [threading.Lock()]", "x[0] (_thread.lock) is a lock"),
    "a_thread": ("import threading\nt = threading.Thread()", "t (threading.Thread) is a thread"),
    "a_socket": (
        "import socket\ns = socket.socket()\ns.close()",
        "s (socket.socket) is a socket. Connect",
    ),
    "a_generator": ("g = (i for i in ())", "g (builtins.generator) is a suspended computation"),
    "a_list_iterator": ("it = iter([1])", "it (builtins.list_iterator) is an iterator"),
    "an_itertools_object": (
        "import itertools\nd = {'n': itertools.count()}",
        "d['n'] (itertools.count) is an iterator",
    ),
    "a_zip": ("z = zip([1], [2])", "z (builtins.zip) is an iterator"),
    "a_memoryview": (
        "m = memoryview(b'abc')",
        "m (builtins.memoryview) is a view of this process's memory",
    ),
    "a_module_made_at_run_time": (
        "import types\nm = types.ModuleType('m')",
        "m (builtins.module) is a module that was made",
    ),
    "a_weak_reference": (
        "import weakref\nclass C: pass\nc = C()\nw = weakref.ref(c)",
        "w (weakref.ReferenceType) is a weak",
    ),
    "a_record_of_an_array": (
        "import numpy as np\nv = np.zeros(2, dtype=[('x', 'i4')])[0]",
        "v (numpy.void) is one record",
    ),
    "a_mapped_array": (
        "import numpy as np\nm = np.memmap(TMP + '/x', dtype='u1', mode='w+', shape=3)",
        "m (numpy.memmap) is a view of a file",
    ),
    "attributes_that_cannot_be_seen": (
        "class C:\n    @property\n    def __dict__(self): return {}\nc = C()",
        "something in c (builtins.type) is the class C, whose own __dict__ hides what",
    ),
    "own_pickling_that_fails": (
        "class C:\n    def __reduce__(self): raise KeyError('no')\nc = [C()]",
        "c[0] (__main__.C) cannot be pickled: 'no'",
    ),
}


@pytest.fixture
def open_files(tmp_path: Path) -> Iterator[None]:
    """Closes what the notebook left open, which it could not do itself."""
    yield
    for file in gc.get_objects():
        if type(file) is io.TextIOWrapper and str(file.name).startswith(str(tmp_path)):
            file.close()


@pytest.mark.usefixtures("open_files")
@pytest.mark.parametrize(("before", "message"), CASES.values(), ids=CASES)
def test_what_cannot_cross_is_named(
    notebook: Notebook, tmp_path: Path, before: str, message: str
) -> None:
    notebook.start(f"TMP = {str(tmp_path)!r}\n{before}")
    last = [name for name in notebook.world.names if not name.startswith("__")][-1]
    with notebook.world.active(), pytest.raises(CannotCross, match=re.escape(message)) as caught:
        pack(notebook.world.names, [last])
    assert caught.value.next_step
    assert message.removeprefix("something in ").startswith(caught.value.name)


def test_names_that_are_not_there_are_left_out(notebook: Notebook) -> None:
    notebook.start("x = 1")
    with notebook.world.active():
        assert pack(notebook.world.names, ["print", "x", "never"]).names == ["x"]


def test_what_the_shell_gives_every_home_is_left_out(notebook: Notebook) -> None:
    shell = types.new_class(
        "Shell", exec_body=lambda body: body.update(__module__="ipykernel.zmqshell")
    )
    notebook.world.names.update(get_ipython=shell(), quit=5)
    notebook.world.names.update(shown=shell())
    with notebook.world.active():
        crossing = pack(notebook.world.names, ["get_ipython", "quit", "__name__", "shown"])
    assert crossing.names == ["quit", "shown"]


def test_too_much_is_refused_with_the_largest_names(notebook: Notebook) -> None:
    notebook.start("import numpy as np\nbig = np.zeros(1 << 20)\nsmall = 'x'\nmid = bytes(1 << 20)")
    with notebook.world.active(), pytest.raises(CannotCross) as caught:
        pack(notebook.world.names, ["small", "mid", "big"], limit_bytes=2 << 20)
    assert "the limit is 2 MiB; largest: big 8 MiB, mid 1 MiB, small" in str(caught.value)
    assert caught.value.name == "big"


def test_sizes_are_measured(notebook: Notebook) -> None:
    notebook.start("import numpy as np\nbig = np.zeros(1 << 20)\nagain = big\nsmall = 'x'")
    with notebook.world.active():
        crossing = pack(notebook.world.names, ["big", "again", "small"])
    (name, size), *_ = crossing.largest
    assert (name, size >> 20) == ("big", 8)
    assert crossing.size_bytes == sum(size for _, size in crossing.largest)
    assert crossing.size_bytes < (8 << 20) + 4096
    assert crossing.notes == []


def test_the_files_are_their_owners_alone(notebook: Notebook) -> None:
    notebook.start("import numpy as np\na = np.zeros(3)")
    notebook.cross("a[0] = 1")
    modes = {path.name: path.stat().st_mode & 0o777 for path in notebook.directory.iterdir()}
    assert modes == {"inputs.pickle": 0o600, "buffers.bin": 0o600, "result.pickle": 0o600}


def test_a_refusal_leaves_the_kernel_as_it_was(notebook: Notebook) -> None:
    notebook.start("xs = [1]\ng = (i for i in ())")
    before = dict(notebook.world.names)
    with pytest.raises(CannotCross):
        notebook.cross("xs.append(next(g))")
    assert notebook.world.names == before
