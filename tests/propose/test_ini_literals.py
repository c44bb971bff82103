"""The search turns what a project's ``agent.ini`` says: parameters of components, and which component is used."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.program.edits import constants, set_constants
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.proposal import Problem
from autoresearch.propose.search.search import propose
from autoresearch.task.program import join_files, source_digest
from tests.propose.conftest import past

INI = """\
[Policy]
default = q_table
[Policy.q_table]
class_name = q_table:QTable
path = .
version = 3
[Policy.dqn]
class_name = dqn:DQN
path = .
hidden = 64  ; one of 32 64 128
[Trainer.sarsa]
class_name = sarsa:Sarsa
path = .
learning_rate = 0.2  # 0.01 .. 0.5
discount = 0.99  # fixed
note = ein Grünes = 4
"""
PROGRAM = join_files({"agent.ini": INI, "q_table.py": "class QTable:\n    pass\n"})


def test_numbers_and_the_choice_among_components_are_found() -> None:
    found = {name: (one.value, str(one.range)) for name, one in constants(PROGRAM).items()}

    assert found == {
        "policy": ("q_table", "one of q_table dqn"),
        "policy.dqn.hidden": (64, "one of 32 64 128"),
        "trainer.sarsa.learning_rate": (0.2, "0.01 .. 0.5 (log)"),
    }


def test_a_component_is_swapped_and_a_number_set_and_nothing_else_changes() -> None:
    changed = set_constants(PROGRAM, {"policy": "dqn", "trainer.sarsa.learning_rate": 0.05})

    assert "default = dqn\n" in changed
    assert "learning_rate = 0.05  # 0.01 .. 0.5\n" in changed
    assert changed.replace("default = dqn", "default = q_table").replace("0.05", "0.2") == PROGRAM


def test_the_search_has_them_as_genes() -> None:
    space = space_of(PROGRAM)

    assert space.default()["policy"] == "q_table"
    built = space.build({**space.default(), "policy": "dqn"})
    assert built is not None
    assert space.genome_of(built, space.default()) == {**space.default(), "policy": "dqn"}


def test_components_that_always_fail_together_are_not_tried_again() -> None:
    problem = Problem(b"task", PROGRAM, "maximize", 0.01, None, lambda _: None)
    runs = [past("baseline", source_digest(PROGRAM), space_of(PROGRAM).default(), 1.0)]
    for number in range(40):
        made = propose(problem, runs, [], worker="me", counter=0)
        value = None if made.genome["policy"] == "dqn" else 1.0 + 0.001 * number
        runs.append(past(str(number), made.source_digest, made.genome, value, replicate=made.replicate))

    assert sum(run.genome["policy"] == "dqn" for run in runs) == 3


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    for name, one in constants(join_files({"agent.ini": text.replace("\r", "\n"), "a.py": ""})).items():
        assert name
        assert one.range is not None
