"""What a catalogue is, as JSON and as a card."""

import json

from tests.function.catalogued import declared


def test_the_facts_are_json_and_complete():
    """Reports and the command line would have nothing to show."""
    made = declared(epsilon=2)
    made.mean(epsilon=0.5)
    facts = json.loads(json.dumps(made.facts()))
    assert (facts["declared"], facts["late"], facts["gamma"], facts["n"]) == (True, False, 0.2, 200)
    assert [each["question"] for each in facts["questions"]] == list(made.questions)
    assert [each["asked"] for each in facts["questions"]] == [1, 0, 0]
    assert facts["questions"][0]["sensitivity"] == made.mean.estimate().value
    assert [each["question"] for each in facts["asked"]] == ["mean"]
    own = next(each for each in facts["budgets"] if each["name"] == made.name)
    assert own["caps"]["epsilon"] == 2 and own["left"]["epsilon"] == 1.5


def test_a_card_is_not_too_long():
    """A notebook would show hundreds of rows."""
    made = declared()
    assert len(made.card().rows) < 12
