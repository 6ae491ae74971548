"""Parts of a budget are disjoint and fixed beforehand, and the largest of them counts."""

import numpy as np
import pytest

from privatize import privatize, samplers, seal
from privatize.errors import (
    BudgetExceeded,
    SettingsError,
)
from privatize.samplers.tables import columns_of
from tests.budgets.charged import charge, everything, new_budget
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
DATA = np.linspace(0.1, 0.9, 50)


def mean(x):
    return float(x.mean())


def made(raw=mean, **changes):
    """Return a private function that is calibrated in this process only."""
    return privatize(**({"epsilon": 0.3, "gamma": 0.2, "sampler": UNIT, "store": None} | changes))(raw)


def two_columns(n, rng):
    return rng.random(n), rng.random(n)


class TestPartition:
    def test_the_largest_part_counts(self):
        """Sites that share no people do not pay for each other; an answer about everybody adds to all."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B", "C"])
        for part, epsilon in [("A", 0.5), ("B", 0.3), ("B", 0.3)]:
            sites[part].reserve(charge(epsilon, gamma=0.1, dataset=part))
        assert budget.spent == (0.6, 0, 0.2)
        budget.reserve(charge(0.4, dataset="all"))
        assert budget.spent == (1, 0, 0.2)
        sites["A"].reserve(charge(0.1, dataset="A"))
        before = everything(budget)
        for part in "AB":
            with pytest.raises(BudgetExceeded):
                sites[part].reserve(charge(0.01, dataset=part))
        assert everything(budget) == before
        sites["C"].reserve(charge(0.6, dataset="C"))
        assert budget.verify() == (1, 0, 0.2)
        assert list(budget.history()["part"]) == ["A", "B", "B", "", "A", "C"]

    def test_partitions_add_up(self):
        """A person is in one part of each partition, so the costs of partitions add up."""
        budget = new_budget()
        budget.partition("site", parts=["A", "B"])["A"].reserve(charge(0.4, dataset="A"))
        budget.partition("year", parts=["A", "B"])["B"].reserve(charge(0.5, dataset="2025"))
        assert budget.verify().epsilon == 0.9

    def test_through_private_functions(self):
        """A part can be used like a budget: in a with block, as budget=, and with sealed data."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        f = made()
        with sites["A"]:
            f(seal(DATA, name="A"))
        f(seal(DATA, name="B", budget=sites["B"]))
        made(budget=sites["B"])(seal(DATA, name="B"))
        assert budget.verify().epsilon == 0.6

    def test_a_partition_is_a_mapping(self):
        """`in` and `get` would raise an error for a part that does not exist."""
        sites = new_budget().partition("site", parts=["A", "B"])
        assert "A" in sites and "Z" not in sites and 3 not in sites
        assert sites.get("A") is sites["A"] and sites.get("Z") is None and sites.get("Z", 1) == 1
        assert list(sites) == ["A", "B"] and sites == dict(sites.items())
        with pytest.raises(SettingsError, match="'Z' is not a part of 'site': its parts are A, B"):
            sites["Z"]

    def test_undeclared_data_is_refused(self):
        """Without names nobody knows whether the parts are separate people."""
        budget = new_budget()
        part = budget.partition("site", parts=["A", "B"])["A"]
        with part, pytest.raises(SettingsError, match="one function that returns all groups"):
            made()(DATA)
        assert budget.spent == (0, 0, 0) and len(budget.history()) == 0

    def test_a_dataset_is_in_one_part(self):
        """The same people in two parts would pay once for two answers."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        sites["A"].reserve(charge(dataset="d"))
        for place in (sites["B"], budget, budget.partition("year", parts=["A"])["A"]):
            with pytest.raises(SettingsError, match="A dataset is in one part"):
                place.reserve(charge(dataset="d"))
        assert budget.verify().epsilon == 0.1

    def test_versions_are_the_same_people(self):
        """A later version of the same table in another part would be free, though it has the same people."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        f = made(epsilon=0.5)
        with sites["A"]:
            f(seal(DATA, name="people", version="1"))
        with sites["B"], pytest.raises(SettingsError, match="A dataset is in one part"):
            f(seal(DATA, name="people", version="2"))

    def test_people_in_several_datasets(self):
        """Columns that are sealed one by one and used together are about the same people."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        pairs = samplers.from_function(two_columns)
        f = made(lambda x, y: float((x * y).mean()), data=("x", "y"), sampler=pairs)
        first, second, third = (seal(DATA, name=name) for name in ("u", "v", "w"))
        with sites["A"]:
            f(first, second)
        with sites["B"], pytest.raises(SettingsError, match="A dataset is in one part"):
            f(first, third)
        assert budget.verify().epsilon == 0.3

    def test_parts_are_fixed_beforehand(self):
        """A mistyped part would count as a new one: only the listed parts exist, and all of them differ."""
        sites = new_budget().partition("site", parts=["A", "B"])
        assert list(sites) == ["A", "B"] and len(sites) == 2 and "A" in repr(sites["A"])
        with pytest.raises(SettingsError, match="'D' is not a part of 'site': its parts are A, B"):
            sites["D"]
        for name, parts in [("", ["A"]), ("site", []), ("site", ["A", "A"]), ("site", [1]), (3, ["A"])]:
            with pytest.raises(SettingsError, match="different parts"):
                new_budget().partition(name, parts=parts)


class TestPartsAndEverybody:
    """Answers about parts and about everybody add up only if they are about one distribution of pairs."""

    def test_parts_with_their_own_p(self):
        """Two sites with a P each are two distributions: the larger amounts hold for each of them."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        sites["A"].reserve(charge(0.2, gamma=0.1, dataset="A"))
        sites["B"].reserve(charge(0.1, gamma=0.2, dataset="B", declared=("P1:other",)))
        assert budget.verify() == (0.2, 0, 0.2)
        for request in (charge(dataset="all"), charge(dataset="all", declared=("P1:other",)), charge()):
            with pytest.raises(SettingsError, match=r"under one P.*another budget"):
                budget.reserve(request)
        with pytest.raises(SettingsError, match="under one P"):
            budget.partition("year", parts=["1"])["1"].reserve(charge(dataset="1"))
        assert len(budget.history()) == 2

    @pytest.mark.parametrize("dataset", ["all", ""])
    def test_a_part_under_another_p_than_everybody(self, dataset):
        """Shares of failing pairs under two P cannot be added: their sum would be no promise."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        budget.reserve(charge(dataset=dataset))
        with pytest.raises(SettingsError, match="under one P"):
            sites["A"].reserve(charge(dataset="A", declared=("P1:other",)))
        sites["A"].reserve(charge(dataset="A"))
        with pytest.raises(SettingsError, match="under one P"):
            sites["B"].reserve(charge(dataset="B", declared=("P1:other",)))
        with pytest.raises(SettingsError, match="under one P"):
            budget.reserve(charge(dataset="more", declared=("P1:other",)))
        assert len(budget.history()) == 2 and budget.verify().epsilon == 0.2

    @pytest.mark.parametrize("column", ["site", " Site"])
    @pytest.mark.parametrize("first", ["part", "everybody"])
    def test_a_partition_by_a_column(self, column, first):
        """Under P a record may change its site; in a part it cannot."""
        budget = new_budget()
        law = samplers.table({"x": UNIT, column: samplers.categorical(["A", "B"])}, frame="dict")
        part = budget.partition("site", parts=["A", "B"])["A"]
        f = made(sampler=law["x"])
        places = [(part, "A"), (budget, "all")][:: 1 if first == "part" else -1]
        f.replace(budget=places[0][0])(seal(DATA, name=places[0][1]))
        with pytest.raises(SettingsError, match="has the column"):
            f.replace(budget=places[1][0])(seal(DATA, name=places[1][1]))
        assert len(budget.history()) == 1
        made(sampler=law["x"], budget=new_budget())(seal(DATA, name="all"))

    def test_the_counter_example(self):
        """A function may fail on 3% of independent pairs, and on most of those that stay in their site.

        With 2,000 pairs each and true shares of 0.03 and 0.7, the test fails by chance with probability 1e-9.
        """
        rng = np.random.default_rng(9)
        n = 1000

        def unstable(x, site):
            """Return a mean, unless exactly 100 people are in site B."""
            return x.sum() % 1 if site.sum() == 100 else x.mean()

        def gap(fixed):
            x, site = rng.random(n), rng.random(n) < 0.1
            if fixed:
                site = np.arange(n) < 100
            x2, site2 = x.copy(), site.copy()
            at = rng.integers(n)
            x2[at] = rng.random()
            site2[at] = site[at] if fixed else rng.random() < 0.1
            return abs(unstable(x, site) - unstable(x2, site2))

        independent, within = (np.array([gap(fixed) for _ in range(2000)]) for fixed in (False, True))
        estimate = np.quantile(np.array([gap(False) for _ in range(2000)]), 0.95)
        assert np.mean(independent > estimate) < 0.1
        assert np.mean(within > estimate) > 0.5  # beyond the promise of the same estimate
        law = samplers.table(x=UNIT, site=samplers.categorical(["A", "B"]), frame="dict")
        one = samplers.table(x=UNIT, frame="dict")
        data = {"x": DATA, "site": np.array(["A"] * 40 + ["B"] * 10)}
        everybody = made(lambda d: float(d["x"].mean()), sampler=law)
        for place in (law, one):  # P of the site, with and without the column
            budget = new_budget()
            sites = budget.partition("site", parts=["A", "B"])
            everybody.replace(budget=budget)(seal(data, name="all"))
            part = made(lambda d: float(d["x"].mean()), sampler=place, budget=sites["B"])
            some = {name: values[40:] for name, values in data.items() if place is law or name == "x"}
            with pytest.raises(SettingsError, match="another budget"):
                part(seal(some, name="B"))
            assert budget.verify().epsilon == 0.3

    @for_each(
        "form",
        [
            "fields",
            "nested fields",
            "records",
            "dict",
            "pandas index",
            "pandas levels",
            "index levels",
            "pair",
        ],
    )
    def test_a_partition_by_a_column_of_any_container(self, form):
        """A site in a field, an index or a level of P would be overlooked, and a wrong total promised."""

        def drawn(n, rng):
            x, site = rng.random(n), rng.integers(2, size=n)
            if form == "fields":
                return np.rec.fromarrays([x, site], names="x,site").view(np.ndarray)
            if form == "nested fields":
                made = np.zeros(n, dtype=[("x", float), ("of", [("site", int)])])
                made["x"] = x
                return made
            if form == "records":
                return [{"x": a, "site": b} for a, b in zip(x.tolist(), site.tolist(), strict=True)]
            if form == "dict":
                return {"x": x, "site": site}
            pandas = pytest.importorskip("pandas")
            if form == "pandas index":
                return pandas.DataFrame({"x": x}, index=pandas.Index(site.astype(float), name="site"))
            if form == "index levels":
                return pandas.Series(
                    x, index=pandas.MultiIndex.from_arrays([site, site], names=["of", "site"])
                )
            if form == "pandas levels":
                return pandas.DataFrame({("a", "x"): x, ("a", "Site"): site})
            return x, pandas.DataFrame({"site": site})

        law = samplers.from_function(drawn)
        names = columns_of(law, drawn(2, np.random.default_rng(1)))
        budget = new_budget()
        budget.reserve(charge(dataset="all", columns=names))
        with pytest.raises(SettingsError, match=r"has the column '[sS]ite'"):
            budget.partition("site", parts=["A", "B"])["B"].reserve(charge(dataset="B", columns=names))

    def test_a_partition_by_a_field_through_a_private_function(self):
        """The same counter-example with a structured array would be answered, and added up."""

        def drawn(n, rng):
            made = np.zeros(n, dtype=[("x", float), ("site", "i4")])
            made["x"], made["site"] = rng.random(n), rng.random(n) < 0.1
            return made

        data = drawn(50, np.random.default_rng(1))
        budget = new_budget()
        f = made(lambda d: float(d["x"].mean()), sampler=samplers.from_function(drawn))
        f.replace(budget=budget)(seal(data, name="all"))
        with pytest.raises(SettingsError, match="has the column 'site'"):
            f.replace(budget=budget.partition("site", parts=["A", "B"])["B"])(seal(data[:9], name="B"))
        assert len(budget.history()) == 1

    @for_each("column", ["site_id", "site id", "SITE", "Site-ID", "siteId", "sites", "ｓite"])
    def test_a_partition_by_a_column_of_similar_name(self, column):
        """The same column, spelled a little differently, would be taken for something else."""
        budget = new_budget()
        budget.reserve(charge(dataset="all", columns=("x", column)))
        for name in ("site", "site_id"):
            part = budget.partition(name, parts=["A", "B"])["B"]
            with pytest.raises(SettingsError, match="has the column"):
                part.reserve(charge(dataset="B", columns=("x", column)))
        budget.partition("website", parts=["1"])["1"].reserve(charge(dataset="B", columns=("x", column)))

    @pytest.mark.parametrize("missing", [False, True])
    def test_a_partition_by_the_values_of_a_column(self, missing):
        """A column with another name than the partition, whose values are its parts, would be overlooked."""
        site = samplers.categorical(["A", "B"])
        law = samplers.table(x=UNIT, site=samplers.with_missing(site, 0.1) if missing else site, frame="dict")
        f = made(sampler=law["x"])
        for parts, fits in ((["A", "B"], False), (["A site", "B site"], True)):
            budget = new_budget()
            f.replace(budget=budget)(seal(DATA, name="all"))
            place = budget.partition("centre", parts=parts)[parts[1]]
            if fits:
                f.replace(budget=place)(seal(DATA, name="B"))
            else:
                with pytest.raises(SettingsError, match="values B, which are parts of 'centre'"):
                    f.replace(budget=place)(seal(DATA, name="B"))
