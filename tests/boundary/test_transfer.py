"""What goes wrong on the way, and what is true of every crossing."""

import os
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.boundary.two_sides import Notebook, new_world
from workbench.boundary import BrokenTransfer, RemoteError, load_result, pack, stage
from workbench.boundary.process_state import arrive, capture


def test_a_returned_instance_leaves_the_kernels_class_as_it_is(notebook: Notebook) -> None:
    notebook.start("class C:\n    def m(self): return 1\nc = C()")
    cls, method = notebook.world.names["C"], notebook.world.names["C"].m
    definition = dict(cls.__dict__)
    notebook.cross("d = [C(), c]")
    assert notebook.world.names["C"] is cls
    assert cls.m is method
    assert {**cls.__dict__, "__slotnames__": []} == {**definition, "__slotnames__": []}
    assert type(notebook.world.names["d"][0]) is cls
    assert notebook.world.names["d"][1] is notebook.world.names["c"]


def test_a_class_that_changed_here_meanwhile_is_not_set_back(notebook: Notebook) -> None:
    notebook.start("class C:\n    v = 1\nc = C()")
    with notebook.world.active():
        crossing = pack(notebook.world.names, ["c"])
        crossing.write(notebook.directory)
        notebook.world.names["C"].v = 2
        notebook.far_side.run(notebook.directory, "c.w = 5")
        stage(crossing, notebook.directory).commit(notebook.world.names)
    assert (notebook.world.names["c"].v, notebook.world.names["c"].w) == (2, 5)


def test_staging_touches_nothing(notebook: Notebook) -> None:
    notebook.start("xs = [1]\nd = {}\nk = 1\nimport os")
    with notebook.world.active():
        before = dict(notebook.world.names)
        state = capture()
        crossing = pack(notebook.world.names, ["xs", "d", "k", "os"])
        crossing.write(notebook.directory)
        cell = "xs.append(2)\nd[1] = xs\nk = 2\ndel d\nos.environ['NEW'] = '1'"
        notebook.far_side.run(notebook.directory, cell)
        changes = stage(crossing, notebook.directory)
        assert notebook.world.names == before == {**before, "xs": [1], "d": {}, "k": 1}
        assert capture() == state
        assert (changes.names, changes.deleted, changes.changed) == (["k"], ["d"], ["xs", "d"])
        changes.commit(notebook.world.names)
        arrive(state)
    assert notebook.world.names["xs"] == [1, 2]
    assert "d" not in notebook.world.names


def test_what_cannot_come_back_is_named_and_all_else_comes(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.start("xs = [1]\nys = [1]\nx = 0")
    cell = f"f = open({str(tmp_path)!r} + '/x', 'w')\nxs.append(f)\nys.append(2)\ng = (i for i in ys)\nx = 5"
    changes = notebook.cross(cell)
    assert changes.not_returned == {
        "f": "TextIOWrapper is an open file. Close it and open it in the cell that uses it",
        "g": "generator is a suspended computation. Make it in the same cell, or keep its items in a list",
    }
    assert changes.lost_changes == {
        "xs": "TextIOWrapper is an open file. Close it and open it in the cell that uses it"
    }
    names = notebook.world.names
    assert (names["xs"], names["ys"], names["x"]) == ([1], [1, 2], 5)
    assert "f" not in names


def test_a_hidden_change_that_cannot_be_written_back_is_told(notebook: Notebook) -> None:
    notebook.start("import decimal\nc = decimal.Context(prec=5)\nx = 1")
    changes = notebook.cross("c.prec = 7\nx = 2")
    assert (list(changes.not_returned), list(changes.lost_changes)) == ([], ["c"])
    assert "no way to write that back" in changes.lost_changes["c"]
    assert notebook.world.names["x"] == 2


def test_an_instance_that_will_not_say_what_it_is_crosses(notebook: Notebook) -> None:
    notebook.start(
        "class C:\n    @property\n    def __class__(self): raise KeyError\nc = C()\nc.a = []"
    )
    notebook.cross("c.a.append(c)\nc.d = C()")
    c = notebook.world.names["c"]
    assert c.a == [c]
    assert type(c.d) is notebook.world.names["C"]


def test_a_mock_comes_back(notebook: Notebook) -> None:
    notebook.start("")
    notebook.cross("from unittest.mock import Mock\nm = Mock(spec=dict)\nm.keys.return_value = [1]")
    m = notebook.world.names["m"]
    assert isinstance(m, dict)
    assert m.keys() == [1]


def test_a_class_whose_instances_name_another_module_comes_back(notebook: Notebook) -> None:
    notebook.start("")
    notebook.cross("class C:\n    @property\n    def __module__(self): return 'm'\nc = C()")
    assert notebook.world.names["c"].__module__ == "m"


def test_what_functions_bind_comes_back_unasked(notebook: Notebook) -> None:
    notebook.start(
        "count = 0\nold = 1\nnone = None\n"
        "def f():\n    global count, new, old, none\n    count += 1\n    new = 5\n    del old, none"
    )
    changes = notebook.cross("f()", name_nothing=True)
    assert (changes.names, changes.deleted) == (["count", "new"], ["old", "none"])
    assert (notebook.world.names["count"], notebook.world.names["new"]) == (1, 5)
    assert notebook.world.names.keys().isdisjoint({"old", "none"})


def test_an_error_comes_back_with_its_traceback(notebook: Notebook) -> None:
    notebook.start("xs = []")
    changes = notebook.cross("xs.append(1)\nclass Odd(ValueError): pass\nraise Odd('no', 5)")
    assert changes.error is not None
    error = changes.error.as_exception()
    assert type(error) is notebook.world.names["Odd"]
    assert error.args == ("no", 5)
    assert error._render_traceback_()[-1].strip() == "Odd: ('no', 5)"
    assert notebook.world.names["xs"] == [1]


def test_an_error_keeps_its_cause_and_its_notes(notebook: Notebook) -> None:
    notebook.start("")
    cell = "try: 1 / 0\nexcept ZeroDivisionError as e:\n    e.add_note('n')\n    raise OSError(2, 'gone') from e"
    changes = notebook.cross(cell)
    assert changes.error is not None
    error = changes.error.as_exception()
    assert isinstance(error, FileNotFoundError)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert error.__cause__.__notes__ == ["n"]


def test_a_result_after_a_restart_stands_on_what_was_sent(notebook: Notebook) -> None:
    notebook.start(
        "class C: pass\nc = C()\nxs = [c]\nk = 5\ndef f(): return k\nimport numpy as np\na = np.zeros(3)"
    )
    cell = "xs.append(1)\nd = {'c': c, 'f': f, 'a': a[1:]}\na[1] = 7\nc.v = xs"
    notebook.cross(cell)
    restarted = new_world()
    with restarted.active():
        changes = load_result(notebook.directory)
        changes.commit(restarted.names)
    names = restarted.names
    assert sorted(changes.names) == ["a", "c", "d", "xs"]
    assert names["d"]["c"] is names["c"] is names["xs"][0]
    assert names["c"].v is names["xs"]
    assert names["a"].tolist() == [0, 7, 0]
    assert np.shares_memory(names["a"], names["d"]["a"])


@pytest.mark.parametrize("base", ["object", "enum.Enum"])
def test_loading_a_result_beside_the_kernel_that_sent_it_leaves_its_classes(
    notebook: Notebook, base: str
) -> None:
    notebook.start(f"import enum\nclass C({base}):\n    v = 1\n    def m(self): pass\nc = C")
    notebook.cross("d = c")
    cls = notebook.world.names["C"]
    cls.m = method = lambda self: 2
    with notebook.world.active():
        load_result(notebook.directory)
    assert cls.m is method


@pytest.mark.parametrize("name", ["inputs.pickle", "buffers.bin"])
def test_inputs_that_are_cut_short_are_refused(notebook: Notebook, name: str) -> None:
    notebook.start("import numpy as np\na = np.arange(100)")
    notebook.cross("a[0] = 1")
    os.truncate(notebook.directory / name, 40)
    with pytest.raises(BrokenTransfer, match=f"{name} is cut short"):
        load_result(notebook.directory)


def test_a_result_of_another_format_is_refused_and_the_kernel_is_as_it_was(
    notebook: Notebook,
) -> None:
    notebook.start("xs = [1]")
    with notebook.world.active():
        crossing = pack(notebook.world.names, ["xs"])
        crossing.write(notebook.directory)
        notebook.far_side.run(notebook.directory, "xs.append(2)")
        path = notebook.directory / "result.pickle"
        path.write_bytes(b"wbparcel\x63" + path.read_bytes()[9:])
        with pytest.raises(BrokenTransfer, match="is of format b'wbparcel' 99"):
            stage(crossing, notebook.directory)
        path.unlink()
        with pytest.raises(BrokenTransfer, match="cannot be read: No such file"):
            stage(crossing, notebook.directory)
    assert notebook.world.names["xs"] == [1]


MADE_THERE_ALONE = (
    "class Picky:\n    def __reduce__(self): return make, (os.getpid(), [a, np.zeros(4000)])\n"
    "def make(pid, _):\n    if pid != os.getpid(): raise KeyError('not here')\n"
    "import numpy as np\na = np.arange(2000)\np = Picky()\nq = {'p': p, 'a': a}\nz = {'k': np.ones(3000)}\nos\n"
)


def test_only_what_cannot_be_made_here_is_not_returned(notebook: Notebook) -> None:
    notebook.start("xs = [1]\nimport os")
    changes = notebook.cross(f"{MADE_THERE_ALONE}xs.append(2)\nys = xs")
    assert changes.not_returned == {
        "p": "it cannot be made here: KeyError: 'not here'",
        "q": "it shares objects with what cannot be made here",
    }
    names = notebook.world.names
    assert names.keys() >= {"Picky", "make", "np", "a", "z", "ys"}
    assert names.keys().isdisjoint({"p", "q"})
    assert names["ys"] is names["xs"] == [1, 2]
    assert (names["z"]["k"].sum(), names["a"].sum()) == (3000, 1999000)


def test_what_raised_comes_in_other_words_where_it_holds_what_cannot_be_made_here(
    notebook: Notebook,
) -> None:
    notebook.start("import os")
    changes = notebook.cross(f"{MADE_THERE_ALONE}raise ValueError(p)")
    assert list(changes.not_returned) == ["p", "q"]
    assert changes.error is not None
    assert type(changes.error.as_exception()) is RemoteError


def test_a_change_that_cannot_be_made_here_changes_nothing(notebook: Notebook) -> None:
    notebook.start("xs = [1]\nimport os\nk = 1")
    message = (
        "p could not come back: it cannot be made here: KeyError: 'not here'; .*; "
        "a change in place could not come back: it shares"
    )
    with pytest.raises(BrokenTransfer, match=message):
        notebook.cross(f"{MADE_THERE_ALONE}k = 2\nxs.append(p)")
    assert (notebook.world.names["xs"], notebook.world.names["k"]) == ([1], 1)
    assert "p" not in notebook.world.names


def test_large_arrays_are_mapped_in_the_home(notebook: Notebook) -> None:
    notebook.start("import numpy as np\na = np.zeros(1 << 20)\nb = a[5:]\ns = np.zeros(4)")
    cell = (
        "def owner(x): return type(getattr(x.base, 'obj', x.base)).__name__\n"
        "mapped = owner(a), a.flags.owndata, s.flags.owndata"
    )
    notebook.cross(cell)
    assert notebook.world.names["mapped"] == ("mmap", False, True)
    assert (notebook.directory / "buffers.bin").stat().st_size < (8 << 20) + 4096


def test_a_view_does_not_ship_its_base(notebook: Notebook) -> None:
    notebook.start("import numpy as np\na = np.zeros((1024, 1024))\nv, c = a[0, :10], a[:, 3]")
    with notebook.world.active():
        assert pack(notebook.world.names, ["v"]).size_bytes < 20_000
        assert pack(notebook.world.names, ["c"]).size_bytes < 20_000


def test_a_view_that_cannot_share_memory_here_is_told(notebook: Notebook) -> None:
    notebook.start("import numpy as np\na = np.zeros((1024, 1024))\nc = a[:, 3]")
    changes = notebook.cross("w = c[1:3]\nw += 1")
    names = notebook.world.names
    assert changes.notes == [
        "a new view of an array with wide gaps between its items came back with memory of its own"
    ]
    assert names["w"].tolist() == names["a"][1:3, 3].tolist() == [1, 1]


def test_what_a_cache_holds_stays_behind_and_that_is_said(notebook: Notebook) -> None:
    notebook.start("import functools\n@functools.cache\ndef f(): return []\nx = f()")
    notebook.cross("y = f()")
    assert notebook.crossing is not None
    assert notebook.crossing.notes == ["the cache of f did not cross"]


def test_the_process_follows_the_cell(notebook: Notebook, tmp_path: Path) -> None:
    notebook.start("import os, sys, random, warnings, numpy as np")
    os.environ["BOUNDARY_GONE"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-kernel"
    state = capture()
    random.seed(1)
    cell = (
        "seen = random.random(), os.getcwd(), os.environ.get('CUDA_VISIBLE_DEVICES')\n"
        f"os.chdir({str(tmp_path)!r})\nos.environ['BOUNDARY_NEW'] = '2'\ndel os.environ['BOUNDARY_GONE']\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = 'GPU-home'\nsys.path.append('/added')\n"
        "warnings.simplefilter('ignore', ResourceWarning)\nnp.random.seed(4)\n"
    )
    here = Path.cwd()
    try:
        notebook.cross(cell)
        random.seed(1)
        assert notebook.world.names["seen"] == (random.random(), str(here), None)
        assert Path.cwd() == tmp_path
        assert os.environ["BOUNDARY_NEW"] == "2"
        assert "BOUNDARY_GONE" not in os.environ
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-kernel"
        assert sys.path[-1] == "/added"
        assert warnings.filters[0][::2] == ("ignore", ResourceWarning, 0)
        _, keys, *_ = np.random.get_state()  # noqa: NPY002  (it is the one that travels)
        assert keys[:3].tolist() == [4, 2954765717, 1495507861]  # What the seed 4 gives.
    finally:
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        arrive(state)
        os.environ.pop("BOUNDARY_GONE")


def test_what_the_cell_did_not_change_is_not_set(notebook: Notebook) -> None:
    notebook.start("import random")
    with notebook.world.active():
        crossing = pack(notebook.world.names, ["random"])
        crossing.write(notebook.directory)
        notebook.far_side.run(notebook.directory, "x = 1")
        random.seed(9)
        stage(crossing, notebook.directory).commit(notebook.world.names)
        drawn = random.random()
    random.seed(9)
    assert drawn == random.random()


def test_only_what_changed_comes_back(notebook: Notebook) -> None:
    notebook.start(
        "import numpy as np\nbig = np.zeros(1 << 20)\nviews = [big[1:], big[2:]]\n"
        "xs = list(range(100_000))\nd = dict.fromkeys(xs)"
    )
    notebook.cross("xs.append(1)\nd['new'] = big\nxs[50_000] = None\nviews[0][5] = 1")
    assert (notebook.directory / "result.pickle").stat().st_size < 1_500_000


PICKY = (
    "import os, random\nhome = os.getpid()\n"
    "class R(random.Random):\n    picky = False\n    def __setstate__(self, state):\n"
    "        super().__setstate__(state)\n        if self.picky and os.getpid() == home: raise KeyError('not here')\n"
    "class Q(R):\n    picky = True\n"
    "class K:\n    def __hash__(self):\n        if os.getpid() == home: raise KeyError('not here')\n        return 1\n"
    "xs, a, b = [1], R(1), Q(2)\nd, s, k = {1: 1}, {1}, [K()]\n"
)


@pytest.mark.parametrize("cell", ["a.random()\nb.random()", "d[k[0]] = 2", "s.add(k[0])"])
def test_a_change_that_the_users_own_code_refuses_changes_nothing(
    notebook: Notebook, cell: str
) -> None:
    notebook.start(PICKY)
    names = notebook.world.names
    states = names["a"].getstate(), names["b"].getstate()
    with pytest.raises(
        BrokenTransfer, match=r"refused what the cell made of it.*not here.*Nothing"
    ):
        notebook.cross(f"xs.append(2)\nnew = 1\n{cell}\nos, home")
    assert (names["xs"], names["d"], names["s"]) == ([1], {1: 1}, {1})
    assert (names["a"].getstate(), names["b"].getstate()) == states
    assert "new" not in names


def test_a_directory_that_went_meanwhile_leaves_the_names_bound(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.start("import os")
    state = capture()
    (tmp_path / "gone").mkdir()
    with notebook.world.active():
        crossing = pack(notebook.world.names, ["os"])
        crossing.write(notebook.directory)
        notebook.far_side.run(notebook.directory, f"x = 1\nos.chdir({str(tmp_path / 'gone')!r})")
        changes = stage(crossing, notebook.directory)
        (tmp_path / "gone").rmdir()
        with pytest.raises(FileNotFoundError):
            changes.commit(notebook.world.names)
    arrive(state)
    assert notebook.world.names["x"] == 1
