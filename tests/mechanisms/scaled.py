"""Private means of columns in different units."""

from privatize import Gaussian, Laplace, privatize, samplers

# Three columns in different units: the income moves 3,000 times as far as the age.
PEOPLE = samplers.uniform([18, 0, 0], [90, 200_000, 1])


def means(data):
    """Return the mean of each column."""
    return data.mean(axis=0)


def private(function=means, mechanism=None, **more):
    """Decorate with a fixed seed and no store."""
    chosen = mechanism or Laplace(scaled="relative")
    settings = {"epsilon": 1, "gamma": 0.1, "sampler": PEOPLE, "seed": 5, "store": None, "workers": "inline"}
    delta = 1e-6 if isinstance(chosen, Gaussian) else 0.0
    return privatize(**(settings | {"mechanism": chosen, "delta": delta} | more))(function)
