"""A cell that runs elsewhere leaves what it would have left here: plain Python."""

import pytest

from tests.boundary.two_sides import Notebook, check_as_in_order

CASES = {
    "a_function_reads_the_names_of_the_other_side": (
        "k = 1\ndef f(x): return x + k",
        "k = 2\ny = f(3)",
    ),
    "a_name_that_only_a_function_reads": (
        "k = 5\ndef f(): return g()\ndef g(): return k",
        "y = f()",
    ),
    "a_name_that_only_a_nested_function_reads": ("k = 5\ndef f(): return (lambda: k)()", "y = f()"),
    "a_name_that_only_a_method_reads": (
        "k = 5\nclass C:\n    def m(self): return k\nc = C()",
        "y = c.m()\nk = 6\nz = c.m()",
    ),
    "a_name_that_a_function_binds": ("def f():\n    global new\n    new = 5", "f()"),
    "a_name_that_a_function_deletes": ("k = 5\ndef f():\n    global k\n    del k", "f()"),
    "a_function_made_there_reads_the_names_here": ("k = 1", "def f(): return k\nk = 2"),
    "recursion": ("def f(n): return n and n * f(n - 1) or 1", "y = f(5)"),
    "defaults_that_change": ("def f(x, seen=[]):\n    seen.append(x)\n    return seen", "y = f(1)"),
    "keyword_defaults": ("def f(*, seen={}):\n    seen[1] = 2\n    return seen", "y = f()"),
    "attributes_of_a_function": ("def f(): f.calls += 1\nf.calls = 0", "f()"),
    "first_attribute_of_a_function": ("def f(): pass", "f.calls = []"),
    "new_defaults_of_a_function": ("def f(x=1): return x", "f.__defaults__ = (2,)\ny = f()"),
    "a_lambda_in_a_container": ("d = {'f': lambda x: x + 1}", "y = d['f'](1)"),
    "a_closure": ("def make(n):\n    return lambda x: x + n\nf = make(3)", "y = f(1)"),
    "two_closures_over_one_variable": (
        "def make():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n"
        "    return up, lambda: n\nup, get = make()",
        "up()\ny = get()",
    ),
    "one_of_two_closures_crosses": (
        "def make():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n"
        "    return up, lambda: n\nup, get = make()",
        "up()\nup()",
    ),
    "a_closure_over_itself": (
        "def make():\n    def f(n): return n and f(n - 1)\n    return f\nf = make()",
        "y = f(3)",
    ),
    "a_closure_over_what_is_not_bound_yet": (
        "def make():\n    def f(): return later\n    keep = f\n    if False: later = 1\n    return keep\n"
        "f = make()",
        "try: f()\nexcept NameError as e: y = str(e)",
    ),
    "a_decorated_function": (
        "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def g(*a): return 2 * f(*a)\n"
        "    return g\n@twice\ndef f(x): return x + k\nk = 1",
        "y = f(1)\nz = f.__wrapped__(1), f.__name__",
    ),
    "a_partial": (
        "import functools\ndef f(a, b): return a + b + k\nk = 1\np = functools.partial(f, [1] and 1)",
        "y = p(2)\nq = functools.partial(p, 5)",
    ),
    "a_cached_function": (
        "import functools\n@functools.lru_cache(None)\ndef f(n): return n if n < 2 else f(n-1) + f(n-2)",
        "y = f(30)",
    ),
    "a_generator_function": ("def f():\n    yield 1\n    yield k\nk = 2", "y = list(f())"),
    "a_bound_method": ("class C:\n    def m(self): return self\nc = C()\nm = c.m", "y = m() is c"),
    "a_bound_method_of_a_list": ("xs = []\nadd = xs.append", "add(1)\nadd(xs)"),
    "views_of_a_dict": (
        "d = {1: 2}\nks, vs, its = d.keys(), d.values(), d.items()",
        "d[3] = 4\ny = list(ks), list(vs), list(its)",
    ),
    "the_same_list_under_two_names": ("a = [1, 2]\nb = a", "b.append(3)\nc = a is b"),
    "a_list_in_itself": ("a = [1]\na.append(a)", "a.append(2)\ny = a[1] is a"),
    "a_dict_in_itself": ("d = {}\nd['me'] = d", "d['me']['x'] = 1"),
    "a_tuple_that_holds_itself": (
        "a = []\nt = (a, 1)\na.append(t)",
        "y = t[0][0] is t\na.append(2)",
    ),
    "changes_deep_inside": (
        "d = {'a': [{'b': {1}}]}\ninner = d['a'][0]['b']",
        "d['a'][0]['b'].add(2)",
    ),
    "a_list_that_shrinks": ("a = list(range(100))", "del a[10:90]\na.insert(0, -1)\na.sort()"),
    "a_list_that_is_reversed": ("a = list(range(9))", "a.reverse()"),
    "a_dict_that_changes_order": (
        "d = {'a': 1, 'b': 1}\ne = {'a': 1}",
        "d['a'] = d.pop('a')\ne['c'] = 3",
    ),
    "a_dict_that_only_grows": ("d = {'a': 1, 'b': 2}", "d['b'] = 3\nd['c'] = d"),
    "sets": ("s = {1, 2}\nt = s", "s.discard(1)\ns.add((3,))"),
    "a_frozenset_of_objects": ("class C: pass\nc = C()\ns = frozenset([c])", "y = c in s\nc.x = s"),
    "a_bytearray": ("b = bytearray(b'abc')\nc = b", "b[0] = 0\nb += b'd'"),
    "a_deque": (
        "from collections import deque\nd = deque([1, 2], maxlen=3)",
        "d.append(3)\nd.append(4)",
    ),
    "a_bounded_deque_that_did_not_change": (
        "from collections import deque\nd = deque([[1]], maxlen=1)",
        "d[0].append(2)",
    ),
    "an_array": ("import array\na = array.array('d', [1, 2])", "a[0] = 9\na.append(3)"),
    "an_ordered_dict": (
        "from collections import OrderedDict\nd = OrderedDict(a=1, b=2)",
        "d.move_to_end('a')\nd['c'] = 3",
    ),
    "a_default_dict": (
        "from collections import defaultdict\nd = defaultdict(list)",
        "d['a'].append(1)\nd.default_factory = int",
    ),
    "a_counter": (
        "from collections import Counter\nc = Counter('aab')",
        "c.update('bc')\nc['a'] -= 1",
    ),
    "a_chain_map": (
        "from collections import ChainMap\nx = {1: 2}\nc = ChainMap(x, {3: 4})",
        "c[5] = 6",
    ),
    "subclasses_of_containers": (
        "class L(list): pass\nclass D(dict):\n    def __setitem__(self, k, v): super().__setitem__(k, [v])\n"
        "l = L([1])\nl.name = 'l'\nd = D()\nd['a'] = 1",
        "l.append(2)\nl.name += '!'\nd['b'] = 2",
    ),
    "an_instance": (
        "class C: pass\nc = C()\nc.v = 1\nd = c",
        "c.v = [c]\nc.w = 2\ny = isinstance(d, C)",
    ),
    "an_instance_that_loses_an_attribute": ("class C: pass\nc = C()\nc.v = c.w = 1", "del c.v"),
    "the_attributes_of_an_instance_as_a_dict": (
        "class C: pass\nc = C()\nc.v = 1\nd = vars(c)",
        "c.v = 2\nd['w'] = 3\ny = d['v'], c.w",
    ),
    "slots": (
        "class C:\n    __slots__ = ('a', 'b')\nc = C()\nc.a = [1]",
        "c.a.append(2)\nc.b = c\ntry: c.z = 1\nexcept AttributeError: y = 1",
    ),
    "slots_and_attributes": (
        "class A:\n    __slots__ = ('a',)\nclass B(A): pass\nb = B()\nb.a = 1\nb.c = 2",
        "b.a = 3\nb.c = 4\ndel b.c",
    ),
    "a_class_that_guards_its_attributes": (
        "class C:\n    def __setattr__(self, k, v): raise TypeError\nc = C()\nc.__dict__['a'] = 1",
        "c.__dict__['a'] = 2\nc.__dict__['b'] = 3",
    ),
    "another_class_for_an_instance": ("class A: pass\nclass B: pass\na = A()", "a.__class__ = B"),
    "an_instance_of_a_class_made_there": (
        "xs = []",
        "class C:\n    def m(self): return xs\nc = C()\nxs.append(c)",
    ),
    "a_subclass_made_there": (
        "class A:\n    def m(self): return 'A'",
        "class B(A):\n    def m(self): return super().m() + 'B'\n"
        "b = B()\ny = b.m(), isinstance(b, A)",
    ),
    "super_and_class_cells": (
        "class A:\n    def m(self): return __class__, 1\nclass B(A):\n    def m(self): return super().m()\nb = B()",
        "y = b.m()[0] is A",
    ),
    "class_attributes": (
        "class C:\n    n = 0\n    xs = []\nc = C()",
        "C.n += 1\nC.xs.append(1)\nC.new = C",
    ),
    "a_method_that_is_replaced": (
        "class C:\n    def m(self): return 1\nc = C()",
        "def m(self): return 2\nC.m = m\ny = c.m()",
    ),
    "a_class_attribute_that_goes": ("class C:\n    a = b = 1\nc = C()", "del C.a"),
    "kinds_of_methods": (
        "class C:\n    @property\n    def p(self): return k\n    @staticmethod\n    def s(): return k\n"
        "    @classmethod\n    def c(cls): return cls, k\nk = 1\no = C()",
        "k = 2\ny = o.p, o.s(), o.c()[1], C.c()[0] is C",
    ),
    "a_cached_property": (
        "import functools\nclass C:\n    @functools.cached_property\n    def p(self): return [1]\no = C()",
        "o.p.append(2)\ny = o.p",
    ),
    "an_abstract_class": (
        "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def m(self): ...\nclass B(A):\n    def m(self): return 1\n"
        "@A.register\nclass V: pass\nb = B()",
        "y = isinstance(b, A), issubclass(V, A)\ntry: A()\nexcept TypeError: z = 1",
    ),
    "a_dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    xs: list = dataclasses.field(default_factory=list)\n"
        "p = P(1)",
        "p.xs.append(p.x)\nq = dataclasses.replace(p, x=5)\ny = p == P(1, [1]), dataclasses.asdict(q), repr(P(7))",
    ),
    "a_frozen_dataclass_with_slots": (
        "import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True)\nclass P:\n    x: list\np = P([1])",
        "p.x.append(2)\nq = P([p])\ny = hash(P(1)) == hash(P(1))",
    ),
    "an_enum": (
        "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\n    @property\n    def twice(self): return 2 * self.value\n"
        "e = E.A\nd = {E.B: 1}",
        "y = e is E.A, E(2).twice, d[E.B]\nd[E.A] = 3\nz = E.B",
    ),
    "a_flag": (
        "import enum\nclass F(enum.Flag):\n    A = 1\n    B = 2\nf = F.A | F.B",
        "y = F.A in f\ng = f ^ F.A",
    ),
    "a_namedtuple": (
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\np = P(1, [2])",
        "p.y.append(3)\nq = p._replace(x=2)",
    ),
    "a_typed_namedtuple": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 2\np = P(1)",
        "q = P(5)\ny = q + p",
    ),
    "a_registry_filled_as_classes_are_made": (
        "made = []\nclass A:\n    def __init_subclass__(cls, **k): made.append(cls)\nclass B(A): pass\nb = B()",
        "y = made == [B]\nclass C(A): pass",
    ),
    "a_metaclass": (
        "made = []\nclass M(type):\n    def __new__(m, n, b, d):\n        c = super().__new__(m, n, b, d)\n        made.append(c)\n"
        "        return c\nclass A(metaclass=M): pass\na = A()",
        "y = made == [A], type(A) is M\nclass B(A): pass",
    ),
    "a_descriptor": (
        "class D:\n    def __set_name__(self, o, n): self.n = n\n    def __get__(self, i, o): return i.__dict__.get(self.n)\n"
        "    def __set__(self, i, v): i.__dict__[self.n] = [v]\nclass C:\n    x = D()\nc = C()\nc.x = 1",
        "c.x = c.x + [2]\ny = C.__dict__['x'].n",
    ),
    "instances_that_say_they_are_of_another_class": (
        "class C:\n    @property\n    def __class__(self): return int\nc = C()\nc.a = [1]",
        "c.a.append(2)\nc.b = 1\ny = isinstance(c, int), type(c) is C\nC.n = 3",
    ),
    "a_class_made_there_whose_instances_say_so": (
        "",
        "class C(dict):\n    @property\n    def __class__(self): return list if super() else __class__\n"
        "c = C()\nc['a'] = 1\nc.a = [1]\ny = isinstance(c, list)",
    ),
    "another_class_for_one_that_says_so": (
        "class A:\n    __class__ = property(lambda self: int)\nclass B: pass\na = A()",
        "object.__dict__['__class__'].__set__(a, B)",
    ),
    "attributes_that_a_class_has_of_its_own": (
        "class C:\n    __name__ = 1\nc = C()\ny = c.__name__",
        "class D:\n    @property\n    def __name__(self): return 'n'\n    @property\n    def __doc__(self): return 'd'\n"
        "    __mro__ = ()\n    __bases__ = 1\n"
        "d = D()\ny = d.__name__, d.__doc__, d.__mro__, d.__bases__, c.__name__",
    ),
    "attributes_that_a_metaclass_guards": (
        "class M(type):\n    @property\n    def x(cls): return 5\nclass C(metaclass=M):\n    x = 7\nc = C()",
        "class D(C):\n    x = 8\nd = D()\ny = c.x, C.x, d.x, D.x",
    ),
    "a_generic_class": (
        "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass Box(Generic[T]):\n    def __init__(self, x): self.x = x\n"
        "b = Box[int](1)",
        "c = Box(b)\ny = Box[int]\nz = isinstance(b, Box)",
    ),
    "own_pickling": (
        "class C:\n    def __init__(self): self.cache, self.v = (i for i in ()), 1\n"
        "    def __getstate__(self): return {'v': self.v}\n    def __setstate__(self, s): self.v, self.cache = s['v'], None\n"
        "c = C()\nc.v = [1]",
        "c.v.append(2)\nc.w = 3",
    ),
    "own_pickling_that_reads_names": (
        "import zlib\nclass C:\n    def __init__(self): self.v, self.w = [1], 0\n    def __getstate__(self): return {'v': self.v}\n"
        "    def __setstate__(self, s): self.v, self.w = s['v'], zlib.crc32(b'') * k + helper()\ndef helper(): return 0\nk = 3\nc = C()",
        "c.v.append(2)",
    ),
    "own_pickling_that_reads_names_of_the_cell": (
        "",
        "import zlib\nclass C:\n    def __init__(self): self.v, self.w = [1], 0\n    def __getstate__(self): return {'v': self.v}\n"
        "    def __setstate__(self, s): self.v, self.w = s['v'], zlib.crc32(b'') * k + helper()\ndef helper(): return 0\nk = 3\nc = C()\nc.v.append(2)",
    ),
    "keys_that_read_names": (
        "import zlib\nclass K:\n    def __init__(self, n): self.n = n\n    def __hash__(self): return zlib.crc32(self.n) + k\n"
        "    def __eq__(self, other): return zlib and self.n == other.n\nk = 3\nd, s = {K(b'a'): 1}, {K(b'b')}",
        "d[K(b'a')] = 2\nd[K(b'c')] = 3\ns.add(K(b'b'))\ns.add(K(b'd'))",
    ),
    "keys_that_read_names_of_the_cell": (
        "d, s = {}, set()",
        "import zlib\nclass K:\n    def __init__(self, n): self.n = n\n    def __hash__(self): return zlib.crc32(self.n) + k\n"
        "    def __eq__(self, other): return zlib and self.n == other.n\nk = 3\nd[K(b'a')] = 2\ns.add(K(b'b'))\ne = {K(b'a'): 1}",
    ),
    "an_exception_as_a_value": (
        "class E(Exception):\n    def __init__(self, a, b): super().__init__(f'{a}{b}')\n        \ntry: raise E(1, 2)\nexcept E as e: err = e",
        "y = str(err)\nerr.note = [1]",
    ),
    "an_error_ends_the_cell": ("xs = []", "xs.append(1)\ny = 1\n1 / 0\nz = 2"),
    "an_error_of_a_class_made_there": (
        "",
        "class Odd(Exception):\n    def __init__(self, a, *, b): super().__init__(a)\nraise Odd(1, b=2)",
    ),
    "names_that_are_deleted": ("a = b = c = 1", "del a, c\nc = 2"),
    "an_import": ("import json", "import string as s\nfrom os import path\ny = json.dumps([1])"),
    "singletons_of_modules": (
        "import dataclasses, inspect\nm = dataclasses.MISSING\ne = inspect.Parameter.empty",
        "y = m is dataclasses.MISSING, e is inspect.Parameter.empty",
    ),
    "values_of_the_standard_library": (
        "import datetime, decimal, fractions, pathlib, re, uuid, ipaddress, types\n"
        "v = [datetime.datetime(2020, 1, 1), decimal.Decimal('1.5'), fractions.Fraction(1, 3), pathlib.Path('/a'),\n"
        "     re.compile('a+'), uuid.UUID(int=5), ipaddress.ip_address('1.2.3.4'), types.SimpleNamespace(a=1), 1j, ..., slice(2)]",
        "v[7].a = 2\nw = list(v)",
    ),
    "a_bytes_buffer": (
        "import io\nb = io.BytesIO(b'abc')\ns = io.StringIO('x')",
        "b.seek(0, 2)\nb.write(b'd')\ns.write('y')",
    ),
    "a_random_generator": (
        "import random\nr = random.Random(5)\nq = random.Random(6)",
        "y = r.random()",
    ),
    "the_global_random_generator": (
        "import random\nfrom random import random as draw\nrandom.seed(3)",
        "y = draw(), random.random()\nrandom.shuffle(z := [1, 2, 3])",
    ),
    "an_object_that_is_in_two_places": (
        "class N: pass\na = N()\nb = N()\na.next = b\nb.next = a\nlst = [a, b]",
        "lst.pop()\na.next.v = a\nc = N()\nc.next = a\nlst.append(c)",
    ),
}


@pytest.mark.parametrize(("before", "cell"), CASES.values(), ids=CASES)
def test_as_in_order(notebook: Notebook, before: str, cell: str) -> None:
    check_as_in_order(notebook, before, cell)
