"""Cells whose planned run must be as their run in order, and what they need before them."""

from __future__ import annotations

from typing import Any

SLOW = """
def slow(x):
    total = 0
    for i in range(2000):
        total += i * x
    return total

def inverse(x):
    return slow(3) // x
"""
"""Enough work that the plan sends it; `slow(0)` is 0 and `inverse(0)` fails."""

NUMBERS = SLOW + "data = list(range(8))\n"

CASES: dict[str, dict[str, Any]] = {
    "a list of items": {"setup": NUMBERS, "cell": "ys = [slow(x) for x in data]\nys"},
    "a set of items": {"setup": NUMBERS, "cell": "ys = {slow(x % 3) for x in data}"},
    "a dict of items": {"setup": NUMBERS, "cell": "ys = {x % 3: slow(x) for x in data}"},
    "a dict under computed keys": {
        "setup": NUMBERS,
        "cell": "ys = {f'k{x % 3}': slow(x) for x in data}\nlist(ys)",
    },
    "two loops in one list": {
        "setup": NUMBERS,
        "cell": "ys = [slow(a) + b for a in data for b in (1, 2)]",
    },
    "a sum": {"setup": NUMBERS, "cell": "total = sum(slow(x) for x in data)\ntotal"},
    "a sum of floats": {
        "setup": SLOW,
        "cell": "t = 0.1\nfor x in range(9):\n    t += slow(x) / 7\nt",
    },
    "list of map": {"setup": NUMBERS, "cell": "ys = list(map(slow, data))"},
    "a loop that appends": {
        "setup": NUMBERS,
        "cell": "out = ['before']\nfor x in data:\n    y = slow(x)\n    out.append((x, y))\nx, y",
    },
    "a loop that fills a dict": {
        "setup": NUMBERS + "d = {3: 'old'}\n",
        "cell": "for x in data:\n    d[x % 5] = slow(x)\nlist(d)",
    },
    "no item": {
        "setup": NUMBERS + "out = []\ny = 'kept'\n",
        "cell": "for x in data[:0]:\n    y = slow(x)\n    out.append(y)\na = slow(1)\nb = slow(2)",
    },
    "two names for one list": {
        "setup": NUMBERS + "out = []\nsame = out\n",
        "cell": "for x in data:\n    out.append(slow(x))\nn = len(same)",
        "probe": "out is same",
    },
    "tasks after tasks": {
        "setup": SLOW,
        "cell": "a = slow(1)\nb = slow(2)\nc = slow(a % 7)\nd = slow(b % 7)\ne = a + b + c + d\ne",
    },
    "tuples are unpacked": {
        "setup": SLOW + "def pair(x):\n    return slow(x), slow(x + 1)\n",
        "cell": "a, b = pair(1)\n(c, d), e = pair(2), slow(3)",
    },
    "unpacking fails": {
        "setup": SLOW + "def pair(x):\n    return [slow(x)] * x\n",
        "cell": "a, b = pair(2)\nc, d = pair(3)\ne = slow(1)",
    },
    "barriers between tasks": {
        "setup": SLOW,
        "cell": "a = slow(1)\nprint('a', a)\nb = slow(2)\nprint('b', b)\nc = slow(3)",
    },
    "a name is bound again": {
        "setup": NUMBERS,
        "cell": "a = slow(1)\nb = slow(a % 5)\na = slow(2)\nc = slow(a % 5)\na = 'end'",
    },
    "an exception in a list": {
        "setup": SLOW,
        "cell": "a = slow(1)\nys = [inverse(x) for x in (1, 2, 0, 3)]\nb = slow(2)\nprint('never')",
    },
    "an exception in a loop that appends": {
        "setup": SLOW + "out = []\ny = 'old'\n",
        "cell": (
            "for x in (1, 2, 0, 3):\n    y = slow(x)\n    z = inverse(x)\n    out.append(y + z)\n"
            "print('never')"
        ),
    },
    "an exception in the first item": {
        "setup": SLOW + "out = []\ny = 'old'\n",
        "cell": "for x in (0, 1, 2):\n    y = inverse(x)\n    out.append(y)",
    },
    "an exception in a loop that fills a dict": {
        "setup": SLOW + "d = {}\n",
        "cell": "for x in (1, 2, 0, 3):\n    d[x] = inverse(x)",
    },
    "an exception in a sum in place": {
        "setup": SLOW,
        "cell": "t = 0\nfor x in (1, 2, 0, 3):\n    t += inverse(x)",
    },
    "an exception in a set": {"setup": SLOW, "cell": "ys = {inverse(x) for x in (1, 0)}"},
    "an exception in a dict": {"setup": SLOW, "cell": "ys = {x: inverse(x) for x in (1, 0)}"},
    "the first exception in program order": {
        "setup": SLOW,
        "cell": "a = slow(1)\nb = inverse(0)\nc = [0][slow(1)]\nd = slow(4)",
    },
    "a barrier fails before a task": {
        "setup": SLOW,
        "cell": "a = slow(1)\nb = slow(2)\nnothing.here\nc = inverse(0)\nd = slow(2)",
    },
    "an exception with a cause": {
        "setup": SLOW
        + "def wrapped(x):\n    try:\n        return inverse(x)\n"
        + "    except ZeroDivisionError as error:\n        raise ValueError('wrapped') from error\n",
        "cell": "a = slow(1)\nb = wrapped(0)",
        "moved": {0: "task", 1: "task"},
    },
    "classes of the notebook": {
        "setup": SLOW
        + "class Box:\n    def __init__(self, x):\n        self.x = x\n"
        + "def boxed(x):\n    return Box(slow(x))\n",
        "cell": "boxes = [boxed(x) for x in range(4)]\none = boxed(1)\ntwo = boxed(2)",
        "moved": {0: "map", 1: "task", 2: "task"},
        "probe": "[type(b) is Box for b in boxes], type(one) is Box, one.x",
    },
    "an exception class of the notebook": {
        "setup": SLOW
        + "class Wrong(Exception):\n    pass\n"
        + "def fail(x):\n    if slow(x) > 0:\n        raise Wrong(x)\n    return x\n",
        "cell": "ys = [fail(x) for x in (0, 0, 5, 6)]",
        "moved": {0: "map"},
    },
    "a closure": {
        "setup": SLOW + "def times(k):\n    def f(x):\n        return slow(x) * k\n    return f\n"
        "triple = times(3)\n",
        "cell": "ys = [triple(x) for x in range(6)]",
        "moved": {0: "map"},
    },
    "a global of a function, changed": {
        "setup": SLOW + "k = 1\ndef f(x):\n    return slow(x) + k\n",
        "cell": "a = f(1)\nb = f(2)\nk = 100\nc = f(1)\nd = f(2)",
    },
    "functions of the cell itself": {
        "setup": SLOW,
        "cell": "def g(x):\n    return slow(x) + 1\nys = [g(x) for x in range(6)]\na = g(1)\nb = g(2)",
    },
    "items that come back": {
        "setup": SLOW + "class Thing:\n    pass\nthings = [Thing(), Thing(), Thing()]\n"
        "def pair(t):\n    return slow(2), t, things, Thing, slow\n",
        "cell": "pairs = [pair(t) for t in things]\na = pair(1)",
        "moved": {0: "map", 1: "task"},
        "probe": "[[p[1] is t, p[2] is things, p[3] is Thing, p[4] is slow] "
        "for p, t in zip(pairs, things)], a[2] is things",
    },
    "new objects that are shared": {
        "setup": SLOW + "def twice(x):\n    one = [slow(x)]\n    return one, one\n",
        "cell": "pairs = [twice(x) for x in range(4)]\na, b = twice(1)",
        "moved": {0: "map", 1: "task"},
        "probe": "[p[0] is p[1] for p in pairs], a is b",
    },
    "functions that are made": {
        "setup": SLOW + "k = 2\ndef make(n):\n    return lambda x: slow(1) * 0 + x * n + k\n",
        "cell": "fs = [make(n) for n in range(4)]\nf = make(9)\nk = 5\nys = [g(1) for g in fs]\nf(1)",
        "moved": {0: "map", 1: "task"},
    },
    "a value that cannot come back": {
        "setup": SLOW + "def gen(x):\n    slow(x)\n    return (i for i in range(x))\n",
        "cell": "g = gen(3)\nh = gen(4)\na = list(g)\nb = list(h)",
        "moved": {0: "task", 1: "task"},
    },
    "a value that cannot go": {
        "setup": SLOW + "import threading\nlock = threading.Lock()\n"
        "def held(x):\n    slow(x)\n    return lock.locked()\n",
        "cell": "a = held(1)\nb = held(2)",
        "moved": {0: "task", 1: "task"},
    },
    "output of items": {
        "setup": SLOW + "import sys\ndef shout(x):\n    print('item', x)\n"
        "    print('err', x, file=sys.stderr)\n    return slow(x)\n",
        "cell": "print('first')\nys = [shout(x) for x in range(6)]\na = shout(9)\nprint('last')",
        "moved": {1: "map", 2: "task"},
    },
    "output before an exception": {
        "setup": SLOW + "def shout(x):\n    print('item', x)\n    return inverse(x)\n",
        "cell": "ys = [shout(x) for x in (1, 2, 0, 3, 4)]\nprint('never')",
        "moved": {0: "map"},
    },
    "SystemExit": {
        "setup": SLOW + "def leave(x):\n    raise SystemExit(slow(x))\n",
        "cell": "a = slow(1)\nb = leave(3)",
        "moved": {0: "task", 1: "task"},
    },
    "an exception that cannot come back": {
        "setup": SLOW + "class Held(Exception):\n    pass\n"
        "def fail(x):\n    slow(x)\n    raise Held((i for i in range(3)))\n",
        "cell": "a = slow(1)\nb = fail(2)",
        "moved": {0: "task", 1: "task"},
    },
    "a last expression": {
        "setup": NUMBERS,
        "cell": "a = slow(1)\nb = slow(2)\n[slow(x) for x in data]",
    },
    "arrays": {
        "setup": "import numpy as np\nx = np.arange(64.)\nA = np.ones((20, 20))\n",
        "cell": (
            "f = np.fft.fft(x)\ng = np.fft.fft(x * 2)\nd = np.abs(f - g).sum()\n"
            "u = np.linalg.svd(A)[1]\nv = np.linalg.svd(A * 2)[1]\nr = float(u[0] + v[0])"
        ),
    },
    "rows of an array": {
        "setup": "import numpy as np\nM = np.arange(32.).reshape(8, 4)\n",
        "cell": "norms = [np.linalg.norm(row) for row in M]",
    },
    "an array of values": {
        "setup": SLOW + "import numpy as np\n",
        "cell": "ys = np.array([slow(x) for x in range(6)])\nm = ys.max()",
    },
    "warnings": {
        "setup": "import numpy as np\nimport warnings\nwarnings.simplefilter('default')\n"
        "x = np.array([1., 0., -1.])\n",
        "cell": "a = np.log(x)\nprint('between')\nb = np.log(x * 2)\nc = np.fft.fft(x)\nd = np.sqrt(x)",
    },
    "warnings are errors": {
        "setup": "import numpy as np\nimport warnings\nwarnings.simplefilter('error')\n"
        "x = np.array([1., 0., -1.])\n",
        "cell": "c = np.fft.fft(abs(x))\na = np.log(x)\nb = np.fft.fft(x)",
    },
    "the directory and the environment": {
        "setup": SLOW + "import os\n",
        "cell": "os.environ['WB_X'] = '1'\nopen('here', 'w').close()\na = slow(1)\nb = slow(2)",
    },
}
