"""A project of several modules, whose functions are fingerprinted."""

import importlib
import sys
import textwrap

import numpy as np

from privatize import Laplace, samplers
from privatize.identity.origin import origin

HELPERS = """
    '''Helpers of the user.'''
    import functools
    LIMIT = 3
    TABLE = {"a": 1.0}
    def clip(x):
        '''Clip.'''
        return inner(x) + 1
    def inner(x):
        return x * 2
    @functools.lru_cache
    def cached(x):
        return x + 5
    class Base:
        factor = 2.0
        def scale(self, x):
            return self.factor * x
    class Child(Base):
        def apply(self, x):
            return self.scale(x)
"""
MAIN = """
    import functools
    import numpy as np
    import helpers
    import pkg.sub
    from helpers import clip as short, Child
    WEIGHTS = np.array([1.0, 2.0, 3.0])
    OPTIONS = {"mode": "fast", "depth": [1, 2]}
    UNUSED = 1
    def second(x, q=0.5, *, r=1):
        return np.mean(x) * q + r
    def f(x, k=2):
        '''Compute.'''
        # a comment
        total = x.sum() + WEIGHTS[0] * k
        if OPTIONS["mode"] == "fast":
            total = total - second(x) + helpers.clip(1) + short(2) + pkg.sub.FACTOR
        return Child().apply(total) + helpers.cached(2) + local(x) + max(len(x), helpers.LIMIT)
    def local(x):
        import late
        return late.offset(x) + sorted({"b", "a", "c"})[0].count("a") + getattr(helpers, "LIMIT")
"""
FILES = {
    "helpers": HELPERS,
    "pkg/__init__": "",
    "pkg/sub": "FACTOR = 1.0\nOTHER = 2.0\n",
    "late": "def offset(x):\n    return 0.25\n",
    "main": MAIN,
}


def write(folder, **files):
    """Write modules into a folder, and remove earlier imports of them."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        sys.modules.pop(name.replace("__", "."), None)
    for name in [n for n in sys.modules if n.partition(".")[0] in {f.partition("__")[0] for f in files}]:
        sys.modules.pop(name)
    importlib.invalidate_caches()
    origin.cache_clear()


class Louder(Laplace):
    """A user's subclass of one of our mechanisms, with an attribute that may change."""

    factor = 1.0

    def norm(self, gap):
        return self.factor * float(np.abs(gap).sum())


class Shifted(type(samplers.uniform(0, 1))):
    """A user's subclass of one of our samplers."""

    def draw(self, n, rng):
        return super().draw(n, rng) + vars(self).get("by", 0.0)
