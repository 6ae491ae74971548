"""What a function can see of its data besides the values."""

import warnings
from pathlib import Path

from privatize import privatize, samplers

UNIT = samplers.uniform(0, 1)


def layouts(sampler, data, layout, folder):
    """Return what a function sees of its data besides values: in calibration, then on the private data."""
    file = str(Path(folder) / "seen")

    def function(d):
        with Path(file).open("a") as out:
            out.write(repr(layout(d)) + "\n")
        return 1.0

    made = privatize(
        epsilon=1,
        gamma=0.3,
        sampler=sampler,
        min_sensitivity=1,
        workers="inline",
        store=None,
        seed=1,
    )(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made(data)
    return Path(file).read_text().splitlines()


def check(sampler, data, layout, folder):
    seen = layouts(sampler, data, layout, folder)
    assert len(seen) > 10
    assert set(seen) == {seen[-1]}


def of_array(x):
    fields = None if x.dtype.names is None else {k: str(v) for k, v in x.dtype.fields.items()}
    return (
        type(x).__name__,
        x.shape,
        x.strides,
        str(x.flags).split(),
        x.base is None,
        x.dtype.str,
        x.dtype.isnative,
        dict(x.dtype.metadata or {}),
        fields,
        x.dtype.isalignedstruct,
        x.dtype.itemsize,
    )


OF_EVERY_KIND = {
    "x": UNIT,
    "y": samplers.uniform(0, 100),
    "k": samplers.integers(0, 9),
    "s": samplers.choice(["a", "b"]),
    "c": samplers.categorical(["F", "M"]),
    "t": samplers.dates("2020-01-01", "2021-01-01"),
}
