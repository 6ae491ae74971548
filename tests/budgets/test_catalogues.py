"""What a ledger records of catalogues, and the refusal of those that are declared after answers."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from privatize import Budget
from privatize.budgets.catalogues import Declaration
from privatize.budgets.ledger import open_ledger
from privatize.errors import BudgetExceeded, LedgerError, SettingsError
from tests.budgets.charged import answer, catalogue, charge, declaration, everything, new_name, plain
from tests.cases import for_each


@pytest.fixture
def two(path):
    """Return two budgets of one ledger that nobody else uses."""
    return [Budget(name, epsilon=2, gamma=0.5, ledger=path) for name in ("one", "two")]


class TestDeclared:
    def test_gamma_is_charged_once(self, two):
        """Users would pay gamma for every answer of a catalogue, or never."""
        one, _ = two
        assert one.declare(catalogue(average_gamma=0.02), declaration()) == declaration()
        for _ in range(3):
            one.reserve(answer(0.25, average_gamma=0.02))
        assert one.verify() == (0.75, 0, 0.05) and one.average_gamma == 0.02
        assert one.catalogues() == [declaration()] and one.declared("x") == declaration()
        assert one.declared("y") is None

    def test_the_first_one_decides(self, two):
        """Two runs would use different seeds, each with a gamma that the other has paid for."""
        one, _ = two
        one.declare(catalogue(), declaration(seed=1))
        before = everything(one)
        assert one.declare(catalogue(), declaration(seed=2)) == declaration(seed=1)
        assert everything(one) == before

    @for_each(
        "facts, words",
        [
            ({"digest": "other questions"}, "a question, its code or a setting differs now"),
            ({"n": 6}, "it is about 's', n=5"),
            ({"dataset": "'s' version '2'"}, "it is about 's', n=5"),
        ],
    )
    def test_what_was_declared_stays(self, tmp_path, facts, words):
        """Questions could be changed after an answer, under the gamma of those that were declared."""
        budget = Budget("one", epsilon=2, gamma=0.5, ledger=tmp_path / new_name())
        budget.declare(catalogue(), declaration())
        before = everything(budget)
        changed = declaration(**facts)
        with pytest.raises(SettingsError, match=f"declared in the budget.*{words}.*another name"):
            budget.declare(catalogue(n=changed.n, dataset=changed.dataset), changed)
        assert everything(budget) == before

    def test_what_it_cannot_pay_for(self, two):
        """A declaration that was refused would be found, and its answers would have no gamma."""
        one, _ = two
        before = everything(one)
        with pytest.raises(BudgetExceeded, match=r"asks for gamma=0.6 of 0.5 left"):
            one.declare(catalogue(0.6), declaration())
        assert everything(one) == before and one.catalogues() == []

    def test_nothing_is_written_on_request(self, two):
        """A check beforehand would already declare."""
        one, _ = two
        before = everything(one)
        assert one.declare(catalogue(), declaration(), write=False) == declaration()
        assert everything(one) == before

    def test_a_charge_about_something_else(self, two):
        """A catalogue could be charged to other people than those it is about."""
        one, _ = two
        for wrong in (catalogue(n=6), catalogue(dataset="'t'"), answer()):
            with pytest.raises(SettingsError, match="The catalogue 'x' is about 's', n=5, and its charge"):
                one.declare(wrong, declaration())
        for wrong in ({"epsilon": 0.1}, {"delta": 0.1}, {"dataset": ""}):
            with pytest.raises(SettingsError, match="costs gamma alone, and is about sealed data"):
                charge(**({"epsilon": 0.0, "dataset": "'s'", "purpose": "catalogue"} | wrong))
        for wrong in ({"key": ""}, {"content": "\0"}, {"name": ""}):
            with pytest.raises(SettingsError, match=r"cannot be declared|is not a name"):
                declaration(**wrong)

    def test_a_key_of_its_own(self, two):
        """A second catalogue under the key of the first would cost no gamma."""
        one, _ = two
        one.declare(catalogue(), declaration())
        with pytest.raises(SettingsError, match="has a key that the budget 'one' knows from something else"):
            one.declare(catalogue(), declaration("y", key="x:1"))

    def test_a_seed_of_its_own(self, two):
        """Questions could be dropped after their gaps were seen, and the same gaps be used again."""
        one, second = two
        one.declare(catalogue(), declaration())
        again = declaration("y", content=declaration().content)
        for each in two:
            with pytest.raises(SettingsError, match="has the seed of another one about the same people"):
                each.declare(catalogue(), again)
        others = {"dataset": "'t'", "people": ("'t'",)}
        assert second.declare(catalogue(**others), replace(again, dataset="'t'"))


# --- after answers ----------------------------------------------------------------------------------

OTHER = {"dataset": "'t'", "people": ("'t'",)}
UNSEALED = {"dataset": "", "people": ()}
PART = {"partition": "site", "part": "Paris"}


@for_each(
    "budget, before, about",
    [
        (0, answer(of="other"), "'s'"),
        (0, plain(), "'s'"),  # of every strength
        (1, plain(), "'s'"),  # in every budget of the ledger
        (1, plain(dataset="'s' version '1'"), "'s'"),  # of every version
        (1, plain(dataset="'s' and 't'", people=("'s'", "'t'")), "'s'"),  # together with others
        (1, plain(dataset="'s'", people=()), "'s'"),
        (0, plain(**UNSEALED), "unsealed data, which may be the same people"),
    ],
)
def test_after_answers(tmp_path, budget, before, about):
    """Questions could be made from answers, and the total would count them as if they were not."""
    ledger = tmp_path / new_name()
    two = [Budget(name, epsilon=2, gamma=0.5, ledger=ledger) for name in ("one", "two")]
    two[budget].reserve(before)
    known = everything(two[0])
    with pytest.raises(SettingsError, match=f"declared after answers.*has answers about {about}.*late=True"):
        two[0].declare(catalogue(), declaration())
    assert everything(two[0]) == known
    late = two[0].declare(catalogue(), declaration(late=True))
    assert late.late and two[0].catalogues() == [late]
    assert two[0].declare(catalogue(), declaration()) == late  # it stays late
    assert two[0].verify().gamma >= 0.05


@for_each(
    "budget, before",
    [
        (0, plain(purpose="learning")),
        (0, plain(purpose="check")),
        (0, plain(purpose="check", **UNSEALED)),
        (0, answer(of="other", **OTHER)),
        (1, answer(of="other", **UNSEALED)),  # another budget is about other people, unless they have a name
    ],
)
def test_what_may_come_before(tmp_path, budget, before):
    """Whoever learns P, or asks about other people, could declare no catalogue any more."""
    ledger = tmp_path / new_name()
    two = [Budget(name, epsilon=2, gamma=0.5, ledger=ledger) for name in ("one", "two")]
    two[budget].reserve(before)
    assert not two[0].declare(catalogue(), declaration(late=True)).late  # allowed, and not needed
    two[0].verify()


class TestAfterOthers:
    def test_a_catalogue_without_answers(self, two):
        """An abandoned catalogue would be the last one about its people, though nobody has asked it."""
        one, second = two
        one.declare(catalogue(), declaration("first"))
        second.declare(catalogue(), declaration("second"))
        one.declare(catalogue(), declaration("third"))
        assert one.verify().gamma == 0.1  # each one costs its own
        one.reserve(answer(of="first:1"))
        for each in two:
            with pytest.raises(SettingsError, match="declared after answers"):
                each.declare(catalogue(), declaration("fourth"))

    def test_the_same_one_in_another_budget(self, two):
        """A budget could not pay for a catalogue that another one has, since it was asked once."""
        one, second = two
        one.declare(catalogue(), declaration(seed=1))
        one.reserve(answer())
        second.reserve(plain())
        assert second.declare(catalogue(), declaration(seed=2)) == declaration(seed=1)
        assert second.verify() == (0.1, 0, 0.05) and one.verify() == (0.1, 0, 0.05)

    def test_its_answers_before_it(self, two):
        """A budget that was entered for one answer could never have the catalogue itself."""
        one, second = two
        one.declare(catalogue(), declaration())
        second.reserve(answer())
        assert "if these questions were fixed beforehand" in second.statement
        assert second.declare(catalogue(), declaration()) == declaration()
        assert second.verify() == (0.1, 0, 0.05) and "whatever is asked of" in second.statement

    def test_the_same_late_one_in_another_budget(self, two):
        """What is late in one budget would be in the total of another."""
        one, second = two
        second.reserve(plain())
        one.declare(catalogue(), declaration(seed=1, late=True))
        with pytest.raises(SettingsError, match="declared after answers"):
            second.declare(catalogue(), declaration(seed=2))
        assert second.declare(catalogue(), declaration(seed=2, late=True)) == declaration(seed=1, late=True)

    def test_parts_of_a_partition(self, two):
        """A site could declare nothing once another was asked, or all of them could after one of them."""
        one, second = two
        sites = one.partition("site", ["Paris", "Berlin"])
        law = {"strength": "plain", "declared": (), "described": "", "gamma": 0.0}
        sites["Berlin"].declare(catalogue(**OTHER, **law), declaration("berlin", dataset="'t'"))
        sites["Berlin"].reserve(plain(**OTHER))
        assert not sites["Paris"].declare(catalogue(**law), declaration("paris")).late
        assert [each.name for each in one.catalogues()] == ["berlin", "paris"]
        everybody = {"dataset": "'u'", "people": ("'u'",)}
        with pytest.raises(SettingsError, match="parts of 'site', who may be the same people"):
            one.declare(catalogue(**everybody, **law), declaration("all", dataset="'u'"))
        second.reserve(plain(**everybody))
        with pytest.raises(SettingsError, match="data outside of the partition, who may be the same people"):
            second.partition("site", ["Rome"])["Rome"].declare(catalogue(**law), declaration("rome"))


# --- damage -----------------------------------------------------------------------------------------


@for_each(
    "change",
    [
        "UPDATE catalogues SET content = replace(content, '1', '2')",
        "UPDATE catalogues SET digest = 'other'",
        "UPDATE catalogues SET late = 1",
        "UPDATE catalogues SET name = 'y'",
        "UPDATE catalogues SET n = 6",
        "UPDATE catalogues SET number = 2",
        "UPDATE catalogues SET dataset = 't'",
        "DELETE FROM catalogues",
        "DELETE FROM charges WHERE number = 1",
        "UPDATE charges SET purpose = 'answer' WHERE number = 1",
        "UPDATE charges SET key = 'z' WHERE number = 1",
        "UPDATE charges SET people = '?' WHERE number = 2",
        "INSERT INTO catalogues SELECT budget, 'z', dataset, n, digest, 2, late, content FROM catalogues",
    ],
)
def test_damage_is_found(tmp_path, change):
    """Somebody could change what was declared after the answers are known."""
    path = tmp_path / new_name()
    budget = Budget("one", epsilon=2, gamma=0.5, ledger=path)
    budget.declare(catalogue(), declaration())
    budget.reserve(answer())
    budget.verify()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    with pytest.raises(LedgerError, match="damaged"):
        budget.verify()


def test_a_hidden_late_one_is_found(two):
    """A catalogue that was declared after answers could be passed off as one that was not."""
    one, _ = two
    one.reserve(plain())
    late = one.declare(catalogue(), declaration(late=True))
    with one.ledger.database.transaction() as run:
        kind = Declaration(**{**vars(late), "late": False}).kind
        run("UPDATE catalogues SET late = 0")
        run("UPDATE charges SET kind = ? WHERE number = 2", kind)
        run("UPDATE spent SET counts = replace(counts, ?, ?)", late.kind, kind)
    with pytest.raises(LedgerError, match="its catalogues are not those that were charged"):
        one.verify()


def test_older_ledgers(path):
    """Ledgers from before there were catalogues could not be opened, or not be declared in."""
    budget = Budget("one", epsilon=2, gamma=0.5, ledger=path)
    budget.reserve(plain(**OTHER))
    open_ledger.cache_clear()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE catalogues")
    budget = Budget("one", epsilon=2, gamma=0.5, ledger=path)
    assert budget.catalogues() == [] and budget.verify() == (0.1, 0, 0)
    budget.declare(catalogue(), declaration())
    assert budget.verify() == (0.1, 0, 0.05)


# --- words ------------------------------------------------------------------------------------------


def test_what_the_history_says(two):
    """Nobody could tell from the history which answers are of a catalogue, and whether it was late."""
    one, _ = two
    one.declare(catalogue(), declaration())
    for each in (plain(), answer(), plain(), answer(of="other"), plain(key="x:1")):
        one.reserve(each)
    one.declare(catalogue(), declaration("y", late=True))
    one.reserve(answer(of="y:1"))
    rows = one.ledger.history("one")
    given = "differentially private given the sampled answers before it"
    late = "declared after answers: not in the total"
    assert [(row["catalogue"], row["promise"]) for row in rows] == [
        ("x", "declares the catalogue 'x'"),
        ("", "differentially private"),  # to declare is no answer
        ("x", "random differentially private, of the catalogue 'x'"),
        ("", given),
        ("", "random differentially private"),
        ("x", f"{given}, of the catalogue 'x'"),
        ("y", f"declares the catalogue 'y', {late}"),
        ("y", f"random differentially private, of the catalogue 'y', {late}"),
    ]
