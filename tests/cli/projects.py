"""The code of projects that `privatize check` reads."""

HEAD = """
import numpy as np
from privatize import privatize, samplers
promise = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1))
"""
MEAN = HEAD + "@promise\ndef mean(x):\n    return float(np.mean(x))\n"
PACKAGE = {
    "app__init": "from .stats import mean\n",
    "app__stats": MEAN
    + """
class Report:
    @promise
    def total(self, x):
        return float(np.sum(x))
""",
    "app__deep__init": "",
    "app__deep__more": "from ..stats import mean, promise\nmedian = promise(lambda x: float(sorted(x)[0]))\n",
}
