"""Samplers of users, and whether records lie in a box."""


def within(sampler, drawn):
    """Tell whether all the records lie between the sampler's own bounds."""
    low, high = sampler.support
    return bool(((low <= drawn) & (drawn <= high)).all())


class Dice:
    """A sampler of a user's own: a class with a draw method, and no more."""

    def __repr__(self):
        return "Dice()"

    def draw(self, n, generator):
        return generator.integers(1, 7, n)


class Callable:
    """A callable object (n, rng)."""

    def __call__(self, n, generator):
        return generator.random(n)
