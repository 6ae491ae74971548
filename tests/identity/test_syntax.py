"""A user's function counts by the syntax tree of its source: comments do not count, and code does."""

import os

import pytest

from privatize.identity.declared import declare
from tests.identity.sources import FUNCTION


def digest(sampler):
    return declare(sampler).digest


# A name, a module with a value in an odd place, the expression that reads the value, and a change of it.
ODD = [
    ("property", "class A:\n @property\n def k(self): return 1\na=A()\n", "a.k", "return 1", "return 2"),
    ("static", "class A:\n @staticmethod\n def k(): return 1\n", "A.k()", "return 1", "return 2"),
    (
        "meta",
        "class M(type):\n def k(cls): return 1\nclass A(metaclass=M): pass\n",
        "A.k()",
        "return 1",
        "return 2",
    ),
    (
        "slots",
        "class A:\n __slots__=('k',)\n def __init__(self): self.k=1\na=A()\n",
        "a.k",
        "self.k=1",
        "self.k=2",
    ),
    ("slotstate", "class A:\n __slots__=('k',)\na=A()\na.k=1\n", "a.k", "a.k=1", "a.k=2"),
    (
        "enum",
        "import enum\nclass E(enum.Enum):\n  A=1\n  def k(self): return 1\n",
        "E.A.k()",
        "return 1",
        "return 2",
    ),
    ("enumval", "import enum\nclass E(enum.IntEnum):\n  A=1\n", "E.A", "A=1", "A=2"),
    (
        "dcfield",
        "import dataclasses as q\n@q.dataclass\nclass D:\n  k: int = q.field(default=1, metadata={'u':1})\n",
        "q.fields(D)[0].metadata['u']",
        "'u':1",
        "'u':2",
    ),
    ("dcdefault", "import dataclasses as q\n@q.dataclass\nclass D:\n  k: int = 1\n", "D().k", "= 1", "= 2"),
    (
        "dcmethod",
        "import dataclasses as q\n@q.dataclass\nclass D:\n  k: int = 1\n  def __eq__(self,o): return True\n",
        "(D(1)==D(2))",
        "return True",
        "return False",
    ),
    ("nt", "import typing\nclass T(typing.NamedTuple):\n  k: int = 1\n", "T().k", "= 1", "= 2"),
    ("ann", "def g(x: 1): pass\n", "g.__annotations__['x']", "x: 1", "x: 2"),
    ("doc", "def g():\n '1'\n", "float(g.__doc__)", "'1'", "'2'"),
    ("fname", "def g1(): pass\nG=g1\n", "int(G.__name__[1])", "g1", "g2"),
    (
        "deco",
        (
            "def s(k):\n def w(f):\n  def i(n,rng): return f(n,rng)*k\n  return i\n"
            " return w\n@s(1)\ndef draw(n,rng): return rng.random(n)\n"
        ),
        "",
        "@s(1)",
        "@s(2)",
    ),
    (
        "attrgetter",
        "import operator, types\nm=types.ModuleType('m')\nm.k=1\ng=operator.attrgetter('k')\n",
        "g(m)",
        "m.k=1",
        "m.k=2",
    ),
    (
        "format",
        "import types\nm=types.ModuleType('m')\nm.k=1\n",
        "float('{0.k}'.format(m))",
        "m.k=1",
        "m.k=2",
    ),
    (
        "twomods",
        "import types\nm=types.ModuleType('m')\nm.k=1\nm2=types.ModuleType('m')\nm2.k=1\n",
        "m.k*m2.k",
        "m2.k=1",
        "m2.k=2",
    ),
    (
        "modgetattr",
        "import types\nm=types.ModuleType('m')\ndef ga(name): return 1\nm.__getattr__=ga\n",
        "m.k",
        "return 1",
        "return 2",
    ),
    (
        "callable",
        "class A:\n def __init__(s,k): s.k=k\n def __call__(s,n,rng): return rng.random(n)*s.k\ndraw=A(1)\n",
        "",
        "A(1)",
        "A(2)",
    ),
    (
        "partialmethod",
        (
            "import functools\nclass A:\n def f(s,k,n,rng): return rng.random(n)*k\n"
            " draw=functools.partialmethod(f,1)\ndraw=A().draw\n"
        ),
        "",
        "f,1",
        "f,2",
    ),
    (
        "cached",
        "import functools\nclass A:\n @functools.cached_property\n def k(s): return 1\na=A()\n",
        "a.k",
        "return 1",
        "return 2",
    ),
    ("lru", "import functools\n@functools.lru_cache\ndef k(): return 1\n", "k()", "return 1", "return 2"),
    (
        "sd",
        (
            "import functools\n@functools.singledispatch\ndef k(x): return 1\n"
            "@k.register\ndef _(x: int): return 1.5\n"
        ),
        "k(1)",
        "1.5",
        "2.5",
    ),
    ("gen", "def k():\n yield 1\n", "next(k())", "yield 1", "yield 2"),
    ("nested", "def draw(n,rng):\n class A:\n  k=1\n return rng.random(n)*A.k\n", "", "k=1", "k=2"),
    (
        "module name",
        "__name__='one'\ndef draw(n,rng):\n class A: pass\n return rng.random(n)*len(__name__)\n",
        "",
        "'one'",
        "'three'",
    ),
    ("walrus", "", "(k:=1)", ":=1", ":=2"),
    ("fstring", "", "float(f'{1}')", "{1}", "{2}"),
    ("fspec", "", "float(f'{1.2345:.2f}')", ".2f", ".3f"),
    ("star", "T=(1,)\ndef f(*a): return a[0]\n", "f(*T)", "(1,)", "(2,)"),
    (
        "globalset",
        "K=1\ndef setk():\n global K\n K=K\ndef draw(n,rng):\n setk()\n return rng.random(n)*K\n",
        "",
        "K=1\n",
        "K=2\n",
    ),
    ("bool", "K=1\n", "K", "K=1", "K=True"),
    ("negzero", "K=0.0\n", "K", "K=0.0", "K=-0.0"),
    ("np", "import numpy as np\nK=np.arange(3)\n", "K[1]", "arange(3)", "arange(3)[::-1]"),
    ("df", "import pandas as pd\nK=pd.DataFrame({'a':[1,2]},index=[5,6])\n", "K.a[5]", "[5,6]", "[6,5]"),
    ("np func", "from numpy import sin as s\ndef draw(n,rng): return s(rng.random(n))\n", "", "sin", "cos"),
    (
        "np method",
        "import numpy as np\ns=np.linalg.norm\ndef draw(n,rng): return rng.random(n)+s([1])\n",
        "",
        "linalg.norm",
        "linalg.det",
    ),
    ("builtin", "s=max\n", "s(1,2)", "max", "min"),
    ("re", "import re\ns=re.compile('a')\n", "bool(s.match('a'))", "compile('a')", "compile('b')"),
    ("date", "import datetime\ns=datetime.date(2020,1,1)\n", "s.day", "1,1)", "1,2)"),
    ("defaultdict", "import collections\ns=collections.defaultdict(int,a=1)\n", "s['a']", "a=1", "a=2"),
    (
        "own dict",
        "class D(dict):\n def __missing__(s,k): return 1\ns=D()\n",
        "s['a']",
        "return 1",
        "return 2",
    ),
    ("own list", "class D(list): pass\ns=D([1])\n", "s[0]", "[1]", "[2]"),
    ("classattr", "class D: pass\nD.k=1\n", "D.k", "D.k=1", "D.k=2"),
    ("funcattr", "def g(): pass\ng.k=1\n", "g.k", "g.k=1", "g.k=2"),
    ("ownattr", "def draw(n,rng): return rng.random(n)*draw.k\ndraw.k=1\n", "", "draw.k=1", "draw.k=2"),
    (
        "scipy",
        "from scipy import stats\nr=stats.norm(0,1)\ndef draw(n,rng): return r.rvs(n,random_state=rng)\n",
        "",
        "(0,1)",
        "(0,2)",
    ),
    ("kwdef", "def draw(n,rng,*,k=1): return rng.random(n)*k\n", "", "k=1", "k=2"),
    ("async", "T={'a':{'b':[1]}}\n", "T['a']['b'][0]", "[1]", "[2]"),
    (
        "generic",
        "import typing\nX=typing.TypeVar('X')\nclass G(typing.Generic[X]):\n k=1\n",
        "G[int].k",
        "k=1",
        "k=2",
    ),
    (
        "newtype",
        "import typing\nN=typing.NewType('N',int)\n",
        "len(N.__supertype__.__name__)",
        "'N',int",
        "'N',float",
    ),
    (
        "origbases",
        "import typing\nX=typing.TypeVar('X')\nclass G(typing.Generic[X]): pass\nclass H(G[int]): pass\n",
        "len(H.__orig_bases__[0].__args__[0].__name__)",
        "G[int]",
        "G[float]",
    ),
]


@pytest.mark.parametrize(
    ("text", "factor", "old", "new"), [row[1:] for row in ODD], ids=[row[0] for row in ODD]
)
def test_no_change_of_a_value_is_missed(load, text, factor, old, new):
    """If a value in an odd place changed, and with it the law, a ledger would take both laws for one P."""
    if factor:
        text += f"\ndef draw(n, rng):\n    return rng.random(n) * {factor}\n"
    assert old in text
    one, other, same = load(text), load(text.replace(old, new)), load(f"# moved\n\n{text}")
    assert digest(one.draw) != digest(other.draw)
    if not any(word in text for word in ("singledispatch", "typing.TypeVar", "NewType")):  # copies differ
        assert digest(one.draw) == digest(same.draw)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 3", "\n\n\nFACTOR = 3  # a comment"),
        ("x * FACTOR", "(x   *   FACTOR)"),
        ("FACTOR = 3", "UNUSED = 7\nFACTOR = 3"),
        ("def helper(x):\n", "def helper(\n    x,\n):\n    # a comment\n"),
        ("FACTOR = 3", "FACTOR = 1 + 2"),
    ],
)
def test_edits_that_do_not_count(load, old, new):
    """A comment, a blank line or another module would lock a team out of its ledger."""
    one, other = load(FUNCTION), load(FUNCTION.replace(old, new))
    assert one.draw.__code__.co_filename != other.draw.__code__.co_filename
    assert digest(one.draw) == digest(other.draw)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 3", "FACTOR = 4"),
        ("FACTOR = 3", "FACTOR = 3.0"),
        ("x * FACTOR", "FACTOR * x"),
        ("range(3)", "range(4)"),
        ("low=1", "low=0"),
        ("high=2", "high=3"),
        ("+ other.SHIFT", "- other.SHIFT"),
        ("low, high, n)", "high, low, n)"),
        ("    return helper", "    n = n + 0\n    return helper"),
        ('"Draw some records."', '"Draw other records."'),
        ("def helper(x):", "@np.vectorize\ndef helper(x):"),
    ],
)
def test_edits_that_count(load, old, new):
    """Answers under another law would be charged to the budget of this one."""
    assert FUNCTION.count(old) == 1
    assert digest(load(FUNCTION).draw) != digest(load(FUNCTION.replace(old, new)).draw)


def test_names_in_strings(load, monkeypatch):
    """``getattr(module, name)`` reads a part of the law, wherever the name comes from."""
    text = "import other_of_declared as other\nNAME = 'SHIFT'\n"
    literal = load(text + "def draw(n, rng):\n    return rng.random(n) * getattr(other, 'SHIFT')\n")
    through = load(text + "def draw(n, rng):\n    return rng.random(n) * getattr(other, NAME)\n")
    inside = load(
        text + "def draw(n, rng):\n    import other_of_declared as o\n    return rng.random(n) * o.SHIFT\n"
    )
    taken = load(
        text
        + "def draw(n, rng):\n    from other_of_declared import SHIFT\n    return rng.random(n) * SHIFT\n"
    )
    before = [digest(each.draw) for each in (literal, through, inside, taken)]
    monkeypatch.setattr(literal.other, "SHIFT", 99)
    for each, known in zip((literal, through, inside, taken), before, strict=True):
        assert digest(each.draw) != known


def test_two_lambdas_in_one_line(load):
    """The law of the other lambda in the same line would be declared."""
    text = "PAIR = [lambda n, rng: rng.random(n) * 2, lambda n, rng: rng.random(n) * 3]\n"
    text += "made = lambda a: lambda n, rng: rng.random(n) * a\n"
    text += "SPLIT = (lambda n,\n  rng: rng.random(n) * 2)\n"
    module = load(text)
    assert digest(module.PAIR[0]) != digest(module.PAIR[1])
    assert digest(module.PAIR[0]) == digest(module.SPLIT)
    assert digest(module.made(1)) != digest(module.made(2))
    assert digest(module.made(1)) == digest(module.made(1))
    assert digest(load(text.replace("*", " * ")).PAIR[1]) == digest(module.PAIR[1])


def test_a_file_that_was_edited_after_its_import(load, tmp_path):
    """The law on disk would be declared, but records would be drawn from the law in memory."""
    made = load(FUNCTION, "edited_for_declared")
    before = digest(made.draw)
    file = tmp_path / "edited_for_declared.py"
    text = FUNCTION.replace("low, high, n)", "high, low, size=n)")  # longer: Python compares size and time
    file.write_text(text, encoding="utf-8")
    os.utime(file, (1, 1))
    while_edited = digest(made.draw)
    edited = digest(load(text, "edited_for_declared").draw)
    assert len({before, while_edited, edited}) == 3


def test_without_source():
    """A function that was typed in, or made by exec, counts by its bytecode."""
    made = []
    for text in ("rng.random(n)", "rng.random(n)", "rng.random(n) * 2"):
        scope = {}
        exec(f"def draw(n, rng):\n    return {text}", scope)
        made.append(scope["draw"])
    assert digest(made[0]) == digest(made[1]) != digest(made[2])
    assert digest(made[0]).startswith("P1-bytecode:")
