"""agent.ini: read with line numbers, edited without a change to any other line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.project.ini import Ini

TEXT = """\
# The agent.

[Agent]
class_name = agent:SimpleAgent   # its class

; policies
[Policy]
default = dqn

# A network.
[Policy.dqn]
class_name: dqn:DQN
layers = [64,
  64]
color = "#fff"  ; quoted
empty =
"""


def test_values_have_their_line_and_no_comment() -> None:
    ini = Ini(TEXT, "agent.ini")
    dqn = ini.section("policy.DQN")
    assert dqn
    assert {key: (item.text, item.line) for key, item in dqn.items.items()} == {
        "class_name": ("dqn:DQN", 12),
        "layers": ("[64, 64]", 13),
        "color": ('"#fff"', 15),
        "empty": ("", 16),
    }
    assert ini.section("Agent").items["class_name"].text == "agent:SimpleAgent"
    assert ini.text == TEXT


def test_edits_leave_other_lines_alone() -> None:
    ini = Ini(TEXT, "agent.ini")
    ini.set("agent", "class_name", "agent:Other")
    ini.set("Policy.dqn", "layers", "[32]")
    ini.set("Policy.dqn", "lr", "0.1")
    ini.remove("Policy", "default")
    expected = TEXT.replace("agent:SimpleAgent  ", "agent:Other  ").replace("[64,\n  64]", "[32]")
    assert ini.text == expected.replace("default = dqn\n", "") + "lr = 0.1\n"


def test_a_section_goes_and_comments_above_it_and_the_next_one_stay() -> None:
    ini = Ini(TEXT, "agent.ini")
    ini.remove("Policy")
    assert "default" not in ini.text
    assert "# A network.\n[Policy.dqn]" in ini.text
    ini.remove("Policy.dqn")
    assert ini.text.endswith("# its class\n\n; policies\n# A network.\n")


def test_a_section_is_put_above_another_ones_comments() -> None:
    ini = Ini(TEXT, "agent.ini")
    ini.insert_section("Trainer", before="Policy.dqn")
    assert "default = dqn\n\n[Trainer]\n\n# A network.\n[Policy.dqn]" in ini.text
    ini.insert_section("Dataset")
    assert ini.text.endswith("empty =\n\n[Dataset]\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Agent]\n\n[agent]\n", "agent.ini, line 3: the section [agent] is there twice; the first is in line 1"),
        ("[Agent]\na = 1\nA = 2\n", "agent.ini, line 3: A is there twice; the first is in line 2"),
        ("a = 1\n", "agent.ini, line 1: a key before the first section"),
        ("[Agent]\nnonsense\n", "agent.ini, line 2: “nonsense” is neither [a section] nor key = value"),
        ("[Agent\n", "agent.ini, line 1: “[Agent” is neither [a section] nor key = value"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        Ini(text, "agent.ini")
    assert str(raised.value) == message


NAMES = st.text("abcxyz_", min_size=1, max_size=6)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(), max_size=4), max_size=4), NAMES, NAMES)
def test_what_is_set_is_read_and_what_is_removed_is_gone(
    sections: dict[str, dict[str, int]], title: str, key: str
) -> None:
    ini = Ini("# a comment\n", "agent.ini")
    for name, items in sections.items():
        ini.insert_section(name)
        for each, value in items.items():
            ini.set(name, each, str(value))
    ini.set(title, key, "new")
    ini.remove(title, "missing key")

    def read(parsed: Ini) -> dict[str, dict[str, str]]:
        return {each.title: {k: i.text for k, i in each.items.items()} for each in parsed.sections}

    expected = {name: {k: str(v) for k, v in items.items()} for name, items in sections.items()}
    expected.setdefault(title, {})[key] = "new"
    assert read(ini) == expected == read(Ini(ini.text, ""))
    ini.remove(title)
    del expected[title]
    assert read(ini) == expected == read(Ini(ini.text, ""))
    assert ini.text.startswith("# a comment\n")
