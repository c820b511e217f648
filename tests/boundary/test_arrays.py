"""numpy arrays cross with their memory: shared, changed in place, never shipped for nothing."""

import pytest

from tests.boundary.two_sides import Notebook, check_as_in_order

CASES = {
    "a_view_and_its_base": ("a = np.zeros(4)\nv = a[:2]", "v[:] = 1\na[3] = 5\ny = v.base is a"),
    "a_view_alone": ("a = np.arange(6.)\nv = a[2:4]\nw = v", "v += 1"),
    "two_views_that_overlap": (
        "a = np.arange(10)\nv, w = a[:6], a[4:]\ndel a",
        "v[:] = -1\nw[0] = 7",
    ),
    "views_that_do_not_overlap": ("a = np.arange(10)\nv, w = a[:5], a[5:]", "v[:] = 1\nw[:] = 2"),
    "a_view_in_a_list": ("a = np.zeros(4)\nd = {'v': [a[1:]]}", "d['v'][0][:] = 3\ny = a.sum()"),
    "a_transposed_view": ("a = np.arange(6.).reshape(2, 3)\nt = a.T", "t[0] = 9\nu = t @ a"),
    "strided_and_reversed_views": (
        "a = np.arange(10)\nv, w = a[::2], a[::-1]",
        "v[:] = 0\nw[0] = 1",
    ),
    "a_column_and_its_matrix": ("a = np.zeros((50, 50))\nc = a[:, 3]", "c[:] = 1"),
    "a_column_alone": ("a = np.zeros((50, 50))\nc = a[:, 3]", "c += 1"),
    "a_strided_view_alone": ("a = np.arange(10)\nv = a[::2]", "v[1] = -1\nw = v[1:]"),
    "a_new_view_of_a_strided_view": ("a = np.arange(100)\nv = a[::2]", "w = v[3:9:2]\nw[:] = 0"),
    "a_view_made_there": ("a = np.arange(6.)", "v = a[1:4]\nv[0] = 9\nw = v.reshape(3, 1)"),
    "a_view_made_there_of_a_view": ("a = np.arange(6.)\nv = a[1:]", "w = v[1:]\nw[0] = 9"),
    "views_among_what_is_made_there": ("", "a = np.arange(6.)\nb = [a[1:], a[:3]]"),
    "another_type_over_the_same_memory": (
        "a = np.zeros(4)\nb = a.view(np.uint8)",
        "b[:8] = 255\ny = a[0] != a[0]",
    ),
    "nan_and_negative_zero": ("a = np.array([np.nan, 0.0])", "a[1] = -0.0\nb = a.copy()"),
    "a_fortran_array": (
        "a = np.asfortranarray(np.arange(6).reshape(2, 3))",
        "a[0, 1] = 7\nf = a.flags.f_contiguous",
    ),
    "zero_dimensions": (
        "a = np.array(5)\nb = np.array(3.5, dtype=object)",
        "a[...] = 6\nb[()] = [1]",
    ),
    "no_items": (
        "a = np.zeros((0, 3))\nb = np.zeros(0, dtype='S3')",
        "c = a.sum(), b.dtype\nd = a.T",
    ),
    "structured": (
        "a = np.zeros(3, dtype=[('x', 'i4'), ('y', 'f8', 2)])\nx = a['x']",
        "a['y'][1] = 5\nx[:] = 3\nb = a[1:2]",
    ),
    "records": (
        "a = np.rec.array([(1, 2.0)], dtype=[('x', 'i4'), ('y', 'f8')])",
        "a.x[0] = 7\ny = type(a).__name__",
    ),
    "objects": (
        "xs = [1]\na = np.array([xs, None, 'a'], dtype=object)",
        "a[1] = xs\na[0].append(2)\nb = a[:2]",
    ),
    "objects_in_views": (
        "a = np.array([[1], [2], [3]], dtype=object)\nv = a[1:]",
        "v[0] = {'x': a[2]}",
    ),
    "objects_in_a_reversed_view_alone": (
        "v = np.array([[1], [2], [3]], dtype=object)[::-1]",
        "w = v[:2]\nw[0] = v\nu = v[::-1]",
    ),
    "objects_in_fortran_order": (
        "a = np.asfortranarray(np.array([[[1], 2], [3, 4]], dtype=object))",
        "a[0, 1] = a[0, 0]\nb = a.T",
    ),
    "objects_in_a_column_alone": (
        "a = np.empty((1000, 3), dtype=object)\nc = a[:, 1]\nb = [a]\ndel a",
        "c[5] = [c[0]]",
    ),
    "objects_that_hold_the_array": ("a = np.empty(2, dtype=object)\na[0] = a", "a[1] = a"),
    "structured_with_objects": (
        "a = np.zeros(2, dtype=[('x', 'O'), ('y', 'i4')])\na['x'][0] = [1]",
        "a['x'][1] = 'z'\na['y'] = 3",
    ),
    "strings_and_dates": (
        "s = np.array(['a', 'bc'])\nd = np.array(['2020-01-01'], dtype='M8[D]')\nb = np.array([b'x', b'yz'])\nv = d[:]",
        "s[0] = 'zz'\nd[0] = np.datetime64('2021-01-01')\nb[1] = b'q'",
    ),
    "strings_of_any_length": (
        "s = np.array(['a', 'bc'], dtype=np.dtypes.StringDType())",
        "s[0] = 'a long string, longer than any small one'",
    ),
    "big_endian_and_bool": (
        "a = np.arange(3, dtype='>i4')\nb = np.ones(3, bool)",
        "a += 1\nb[1] = False",
    ),
    "broadcast": (
        "a = np.broadcast_to(np.arange(3), (1000, 3))",
        "b = a.sum(0)\nc = a.strides, a.flags.writeable",
    ),
    "read_only": (
        "a = np.arange(3)\na.flags.writeable = False",
        "try: a[0] = 1\nexcept ValueError: y = 1\nb = a + 1",
    ),
    "made_read_only_there": ("a = np.arange(3)", "a[0] = 9\na.flags.writeable = False"),
    "masked_values": (
        "k = np.ma.array([1, 2, 3], mask=[0, 1, 0])",
        "k[0] = np.ma.masked\ny = k.sum()",
    ),
    "a_subclass_with_attributes": (
        "class A(np.ndarray):\n    def __array_finalize__(self, o): self.unit = getattr(o, 'unit', None)\n"
        "a = np.arange(3).view(A)\na.unit = ['m']",
        "a.unit.append('s')\na[0] = 9\nb = a[1:]",
    ),
    "resized_there": ("a = np.arange(3)", "a.resize((5,), refcheck=False)\na[4] = 1"),
    "a_bytearray_under_an_array": (
        "b = bytearray(8)\na = np.frombuffer(b, dtype='u1')\nv = a[2:]",
        "a[0] = 1\nb[1] = 2\nv[0] = 3",
    ),
    "an_array_over_a_bytearray_made_there": (
        "b = bytearray(8)",
        "a = np.frombuffer(b, dtype='i4')\na[0] = 1",
    ),
    "a_standard_array_under_an_array": (
        "import array\nb = array.array('d', [1, 2])\na = np.frombuffer(b)",
        "a[0] = 7",
    ),
    "scalars_and_types": (
        "x = np.float32(1.5)\nt = np.dtype('f4')\nu = np.add\nd = np.int64",
        "y = x + 1, t.itemsize, u(1, 2), d(3)",
    ),
    "a_generator_of_random_numbers": (
        "g = np.random.default_rng(3)\nh = np.random.RandomState(4)",
        "y = g.random(), h.rand()\nz = g.spawn(1)[0]",
    ),
    "the_global_random_numbers": (
        "from numpy.random import rand\nnp.random.seed(5)",
        "y = rand(), np.random.rand()",
    ),
    "large_arrays": (
        "a = np.zeros(1 << 18)\nb = a[1000:]\nc = np.ones(1 << 17)",
        "b[5] = 1\na[-1] = 2\ny = b.base is a\nd = c[:10]\ne = np.arange(1 << 17)",
    ),
    "a_large_array_that_did_not_change": ("a = np.arange(1 << 18)", "y = a.sum()"),
    "a_polynomial": ("p = np.polynomial.Polynomial([1, 2])", "q = p(3)\np.coef[0] = 7"),
}


@pytest.mark.parametrize(("before", "cell"), CASES.values(), ids=CASES)
def test_as_in_order(notebook: Notebook, before: str, cell: str) -> None:
    check_as_in_order(notebook, f"import numpy as np\n{before}", cell)
