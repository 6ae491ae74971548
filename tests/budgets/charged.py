"""Charges, and everything that a ledger holds."""

import itertools

from privatize import Budget
from privatize.budgets.catalogues import Declaration
from privatize.budgets.charges import Charge


def charge(epsilon=0.1, delta=0.0, gamma=0.0, **facts):
    """Return a charge."""
    promise = {"epsilon": epsilon, "delta": delta, "gamma": gamma}
    kind = f"dp {float(epsilon)!r} {float(delta)!r}"
    return Charge(
        **{"function": "f", "key": "", "dataset": "", "n": 5, "mechanism": "Laplace", "kind": kind}
        | {"declared": ("P1:P",), "described": "P"}
        | promise
        | facts
    )


def everything(budget):
    """Return all that a ledger knows about a budget."""
    with budget.ledger.database.transaction(write=False) as run:
        tables = {"budgets": "name", "spent": "budget", "charges": "budget", "gammas": "budget"}
        tables |= {"people": "budget", "catalogues": "budget"}
        return {
            table: run(f"SELECT * FROM {table} WHERE {by} = ?", budget.name) for table, by in tables.items()
        }


NUMBERS = itertools.count()


def new_name():
    """Return a name that no other budget in this process has."""
    return f"budget {next(NUMBERS)}"


def new_budget(**caps):
    """Return a budget in memory."""
    return Budget(new_name(), **({"epsilon": 1, "gamma": 1, "ledger": "memory"} | caps))


PEOPLE = {"dataset": "'s'", "people": ("'s'",)}


def catalogue(gamma=0.05, **facts):
    """Return the charge for declaring a catalogue."""
    return charge(0.0, gamma=gamma, **(PEOPLE | {"purpose": "catalogue"} | facts))


def declaration(name="x", seed=1, **facts):
    """Return what is declared of a catalogue."""
    content = {"content": f'{{"seed": "{name} {seed}"}}', "key": f"{name}:{seed}"}
    about = {"name": name, "dataset": "'s'", "n": 5, "digest": f"questions of {name}"}
    return Declaration(**(about | content | facts))


def answer(epsilon=0.1, of="x:1", gamma=0.05, **facts):
    """Return the charge for an answer, of a catalogue or of another estimate."""
    return charge(epsilon, gamma=gamma, key=of, **(PEOPLE | facts))


def plain(epsilon=0.1, **facts):
    """Return the charge for an answer that is private for all pairs."""
    return charge(epsilon, **(PEOPLE | {"strength": "plain", "declared": (), "described": ""} | facts))
