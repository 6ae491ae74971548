"""Every command explains itself, with an example."""

import pytest

from privatize.cli.parser import main

COMMANDS = [
    *(["demo"], ["plan"], ["estimate"], ["audit"], ["check"], ["doctor"], ["store"], ["ledger"]),
    *(["store", action] for action in ("list", "show", "forget", "export", "import")),
    *(["ledger", action] for action in ("show", "verify", "export")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command, capsys):
    """Whoever forgets how a command is used has to leave the terminal."""
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    shown = capsys.readouterr().out
    assert caught.value.code == 0
    assert f"example:\n  privatize {' '.join(command)}" in shown
    assert "--json" in shown and "--debug" in shown
    assert max(map(len, shown.splitlines())) <= 110


@pytest.mark.parametrize("group", ["store", "ledger"])
def test_a_group_without_an_action_shows_its_help(group, run):
    """A half-typed command would look as if it had done something."""
    assert f"usage: privatize {group}" in run(group, code=2)[0]
