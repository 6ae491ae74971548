"""Copies and parts of private columns are recognized by their content; common values are no evidence."""

import copy

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import DataError
from privatize.identity.reachable import is_private
from tests.cases import for_each
from tests.identity.private_data import AGES, COUNTS, FRAME, PEOPLE, RNG, STATES, TABLE, _loaded, found, pd

_loaded()
PROMISE = {"epsilon": 1, "gamma": 0.3, "workers": "inline", "store": None, "seed": 1}
P = samplers.uniform(0, 100)
PRICES = np.round(np.random.default_rng(5).uniform(1, 100, 500), 2)
SHOPS = pd.DataFrame(np.random.default_rng(6).uniform(5, 55, (80, 2)), columns=["north", "east"])
DOSES = [0.25, 0.5, 1.5, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0]
CENTS = np.round(RNG.normal(75, 15, 600), 2)


def _chosen(values, n, seed=0):
    return np.random.default_rng(seed).choice(np.asarray(values), n)


CODE_BOOKS = {
    "purchases at listed prices": (_chosen(PRICES, 200), PRICES),
    "fewer of them": (_chosen(PRICES, 100), PRICES),
    "many more": (_chosen(PRICES, 20_000), PRICES),
    "in a frame": (pd.DataFrame({"price": _chosen(PRICES, 200)}), pd.DataFrame({"price": PRICES})),
    "a list of prices": (_chosen(PRICES, 200).tolist(), PRICES.tolist()),
    "prices by product": (_chosen(PRICES, 200), dict(enumerate(PRICES.tolist()))),
    "visits to shops": (SHOPS.iloc[_chosen(range(80), 300)].reset_index(drop=True), SHOPS),
    "few visits": (SHOPS.iloc[_chosen(range(80), 90)].reset_index(drop=True), SHOPS),
    "visits to some of them": (SHOPS.iloc[_chosen(range(80), 300)].to_numpy(), SHOPS.iloc[::2].to_numpy()),
    "every state every year": (STATES * 10, STATES),
    "every shop every day": (np.tile(SHOPS["north"], 10), SHOPS["north"].to_numpy()),
    "doses in turn": (np.tile(DOSES, 20), DOSES),
    "codes in turn": (np.tile([3, 17, 4, 99, 23, 42, 8, 15], 25), (3, 17, 4, 99, 23, 42, 8, 15)),
    "people of states": (_chosen(STATES, 300), dict.fromkeys(STATES, 0.5)),
    "sorted and with fewer digits": (AGES, np.sort(AGES).round(2)),
    "few constants": (CENTS, (0.1, 0.7, 1.3, 2.2, 3.1, 4.7, 5.9, 7.4, 9.6)),
}
PARTS = {
    "eight in a row": (AGES, AGES[40:48].copy()),
    "the first ten of a frame": (FRAME, FRAME.head(10).copy()),
    "ten as a list": (AGES, AGES[:10].tolist()),
    "pieces of ten": (AGES, [piece.copy() for piece in np.split(AGES, 20)]),
    "the last eight": (FRAME["income"], FRAME["income"].tail(8).tolist()),
    "ten passed of all": (AGES[20:30].copy(), AGES.copy()),
    "three records of three numbers": (TABLE, TABLE[:3].copy()),
    "ten records": (PEOPLE, copy.deepcopy(PEOPLE[10:20])),
    "eight in a row, rounded to cents": (CENTS, CENTS[40:48].copy()),
    "every value once, rounded to cents": (CENTS, np.unique(CENTS)),
    "some, rounded to cents": (CENTS, CENTS[CENTS > 80]),
    "some passed, rounded to cents": (CENTS[CENTS > 80], CENTS.tolist()),
    "rounded to cents, in another order": (CENTS, RNG.permutation(CENTS)),
    "half of the integers": (COUNTS, COUNTS[:100].copy()),
    "half of the states": (_chosen(STATES, 300), _chosen(STATES, 300)[:150].tolist()),
    "states in another order": (_chosen(STATES, 300), sorted(_chosen(STATES, 300).tolist())),
}


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
class TestCodeBooks:
    """A public list that private values are chosen from is no copy of them; a few records in a row are."""

    @for_each("case", CODE_BOOKS)
    def test_lists_that_values_are_chosen_from_are_public(self, case):
        """A function that looks prices up in a public list would be refused."""
        assert not found(*CODE_BOOKS[case])

    @for_each("case", PARTS)
    def test_parts_of_columns_are_refused(self, case):
        """A few private records that somebody has copied would count as public ones."""
        assert found(*PARTS[case])

    @for_each(
        ("sampler", "n"),
        [(samplers.categorical(PRICES[:k].tolist()), n) for k in (10, 30, 50) for n in (20, 40, 200, 2000)]
        + [(samplers.choice(SHOPS["north"].tolist(), p=[1 / 80] * 80), 60)]
        + [(samplers.table(p=samplers.categorical(PRICES[:50].tolist()), w=P), n) for n in (40, 200)],
    )
    def test_data_has_values_that_p_was_declared_with(self, sampler, n):
        """Every honest dataset is made of P's own values, and would be refused for it."""

        @privatize(sampler=sampler, **PROMISE)
        def mean(data):
            return np.mean(data["p"].astype(float) if hasattr(data, "columns") else data)

        assert np.isfinite(mean(sampler.draw(n, np.random.default_rng(3))))

    @pytest.mark.parametrize("order", [STATES, STATES[::-1]])
    @pytest.mark.parametrize("wrap", [lambda p: p, lambda p: samplers.mixture([p, p], [0.5, 0.5])])
    def test_data_may_have_every_category_once(self, order, wrap):
        """A table with one row for each state, in whatever order, would be refused as a copy of P."""
        part = samplers.categorical(STATES)
        table = samplers.table(state=part, w=P)

        @privatize(sampler=wrap(table), **PROMISE)
        def mean(data):
            return data["w"].mean()

        assert np.isfinite(mean(pd.DataFrame({"state": order, "w": RNG.uniform(0, 100, 50)})))

    def test_measured_numbers_are_no_categories(self):
        """A P that is made from the private measurements would count as public."""
        own = RNG.uniform(0, 100, 60)
        for values in (own.tolist(), np.sort(own).tolist()):

            @privatize(sampler=samplers.categorical(values), **PROMISE)
            def mean(data):
                return np.mean(data)

            with pytest.raises(DataError, match="can be reached"):
                mean(own)

    def test_bootstrapped_records_are_no_list_of_values(self):
        """P would be made from a list of all private values, as if that list were public."""
        data = _chosen(AGES, 300)
        assert is_private(samplers.bootstrap(np.unique(data)), data)
