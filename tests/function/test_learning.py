"""P is learned from private data, for a plain charge, and nothing else of the data is shown."""

import numpy as np
import pandas as pd

from privatize import learn, learning_error, samplers
from tests.cases import for_each

rng = np.random.default_rng(0)
AGES = np.clip(rng.normal(40, 8, 2000), 0, 120)
UNIT = samplers.uniform(0, 120)


@for_each("data", [AGES, list(AGES), pd.Series(AGES), AGES.astype(np.float32)])
def test_a_learned_p_is_near_the_data(data):
    """The noise would be calibrated on data that looks nothing like that of the user."""
    P = learn(data, within=UNIT, epsilon=1)
    drawn = P.draw(20_000, np.random.default_rng(1))
    assert abs(np.median(drawn) - 40) < 3
    assert 5 < drawn.std() < 18
    assert (P.epsilon, P.n) == (1.0, 2000)


def test_what_is_noise_is_told_before_anything_is_spent():
    """Nobody could choose epsilon without spending it first."""
    found = learning_error(2000, within=UNIT, epsilon=1)
    assert found.noise == learn(AGES, within=UNIT, epsilon=1).noise
    assert learning_error(2000, within=UNIT, epsilon=0.5).smallest > found.smallest
    assert "a cell with" in repr(found)
