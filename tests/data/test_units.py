"""Units: what identifies a person must be said rightly, and names of identifiers are recognized."""

import pickle

import pytest

from privatize import Unit
from privatize.data.units import UNDECLARED, as_unit, identifiers
from privatize.errors import SettingsError
from tests.cases import for_each


@for_each(
    ("given", "message"),
    [
        ({"name": ""}, "unit='' is not the name of a column"),
        ({"name": 3}, "unit=3 is not the name of a column"),
        ({"name": "id", "most": 0}, "most=0 is not a number of rows"),
        ({"name": "id", "most": 1.5}, "most=1.5"),
        ({"name": "id", "order": "id"}, "order='id'"),
        ({"name": "id", "order": 5}, "order=5"),
        ({"name": "id", "once": ("id",)}, "once="),
        ({"name": "id", "once": (1,)}, "once="),
    ],
)
def test_wrong_units_are_refused(given, message):
    """A misspelt unit would protect rows and not persons."""
    with pytest.raises(SettingsError, match=message):
        Unit(**given)


def test_a_unit_is_read_from_what_a_user_writes():
    """unit="id" and unit=None would mean the same."""
    assert as_unit("id") == Unit("id")
    assert as_unit(Unit("id", most=3)).most == 3
    assert as_unit(None) is None
    assert as_unit(UNDECLARED) is UNDECLARED
    assert Unit("id", once="sex").once == ("sex",)


def test_the_default_is_one_object_in_all_processes():
    """A settings object in a worker would say something else than here."""
    assert pickle.loads(pickle.dumps(UNDECLARED)) is UNDECLARED
    assert pickle.loads(pickle.dumps(Unit("id", most=3))) == Unit("id", most=3)
    assert repr(UNDECLARED) == "<that of P>"


def test_names_like_identifiers_are_recognized():
    """Somebody with several rows per patient would not be asked about it."""
    like = ["id", "ID", "patient_id", "PatientID", "patientId", "user", "customer_number", "uuid", "person"]
    like += ["pid", "PATIENTID", "userid", "caseid", "mrn", "nhs_number", "id1", "email", "client"]
    assert identifiers(like) == like
    unlike = ["age", "paid", "valid", "width", "grid", "idle", "income", 5, None, "period", "sid_a"]
    assert identifiers(unlike) == []
