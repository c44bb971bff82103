"""The search turns what a file of settings says: a project's ``agent.ini``, and YAML, TOML and JSON of strangers."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.program.edits import constants, set_constants
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.proposal import SearchProblem
from autoresearch.propose.search.search import propose
from autoresearch.task.program import join_files, source_digest, split_program
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
    values = {name: (constant.value, str(constant.range)) for name, constant in constants(PROGRAM).items()}

    assert values == {
        "policy": ("q_table", "one of q_table dqn"),
        "policy.dqn.hidden": (64, "one of 32 64 128"),
        "trainer.sarsa.learning_rate": (0.2, "0.01 .. 0.5 (log)"),
        "trainer.sarsa.discount": (0.99, "None"),
    }
    assert "trainer.sarsa.discount" not in space_of(PROGRAM).parameters


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


@pytest.mark.slow
def test_components_that_always_fail_together_are_not_tried_again() -> None:
    problem = SearchProblem(b"task", PROGRAM, "maximize", 0.01, None, lambda _: None)
    runs = [past("baseline", source_digest(PROGRAM), space_of(PROGRAM).default(), 1.0)]
    for number in range(40):
        made = propose(problem, runs, [], worker="me", counter=0)
        value = None if made.genome["policy"] == "dqn" else 1.0 + 0.001 * number
        runs.append(past(str(number), made.source_digest, made.genome, value, replicate=made.replicate))

    assert sum(run.genome["policy"] == "dqn" for run in runs) == 3


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    for name, constant in constants(join_files({"agent.ini": text.replace("\r", "\n"), "a.py": ""})).items():
        assert name
        assert constant.range is not None


YAML_FILE = """\
# how it is trained
seed: 1
model:
  width: 64        # int [16, 128]
  dropout: 0.1
  layers:
    - size: 10
      lr: 0.5
train:
  lr: 1.0e-3
  "weight_decay": 0
  optimizer: adam  # one of adam sgd
  schedule: 'cosine'  # one of cosine flat
  flow: {lr: 0.3}
  epochs: 3
  notes: |
    lr: 0.7
eval:
  batch_size: 8
"""
TOML_FILE = """\
momentum = 0.9
note = \"\"\"
dropout = 0.3
\"\"\"
[train.adam]
lr = 0.001  # 0.0001 .. 0.01
optimizer = "adam"  # one of adam sgd
"""
JSON_FILE = json.dumps(
    {"seed": 1, "train": {"lr": 0.1, "batch_size": 32, "parts": [{"lr": 1}]}, "dropout": 0.5}, indent=2
)


@pytest.mark.parametrize(
    ("name", "content", "settings"),
    [
        (
            "config.yaml",
            YAML_FILE,
            {
                "model.width": (64, "16 .. 128"),
                "model.dropout": (0.1, "0 .. 0.5"),
                "train.lr": (0.001, "3.333e-05 .. 0.03 (log)"),
                "train.weight_decay": (0, "one of 0.0 0.0001 0.001 0.01 0.1"),
                "train.optimizer": ("adam", "one of adam sgd"),
                "train.schedule": ("cosine", "one of cosine flat"),
            },
        ),
        (
            "config.toml",
            TOML_FILE,
            {
                "momentum": (0.9, "one of 0.0 0.5 0.8 0.9 0.95 0.98 0.99"),
                "train.adam.lr": (0.001, "0.0001 .. 0.01 (log)"),
                "train.adam.optimizer": ("adam", "one of adam sgd"),
            },
        ),
        (
            "config.json",
            JSON_FILE,
            {
                "train.lr": (0.1, "0.003333 .. 1 (log)"),
                "train.batch_size": (32, "one of 8 16 32 64 128"),
                "dropout": (0.5, "0 .. 0.5"),
            },
        ),
    ],
)
def test_settings_are_found_where_they_are_surely_settings(
    name: str, content: str, settings: dict[str, tuple[object, str]]
) -> None:
    program = join_files({"train.py": "", name: content})

    assert {
        key: (constant.value, str(constant.range)) for key, constant in constants(program).items() if constant.range
    } == settings


def test_what_is_set_is_what_the_formats_own_readers_read() -> None:
    files = {"config_a.yaml": YAML_FILE, "config_b.toml": TOML_FILE, "config_c.json": JSON_FILE}
    values = {
        "config_a.yaml": {
            "train.lr": 1e-05,
            "train.weight_decay": 0.01,
            "train.optimizer": "sgd",
            "train.schedule": "flat",
        },
        "config_b.toml": {"momentum": 0.5, "train.adam.lr": 1e-05, "train.adam.optimizer": "sgd"},
        "config_c.json": {"train.lr": 2e-05, "train.batch_size": 64},
    }
    changed = {}
    for name, content in files.items():
        program = set_constants(join_files({"train.py": "", name: content}), values[name])
        changed[name] = split_program(program)[name]

    read = yaml.safe_load(changed["config_a.yaml"])
    assert read["train"] == {
        **yaml.safe_load(YAML_FILE)["train"],
        **{key.partition(".")[2]: value for key, value in values["config_a.yaml"].items()},
    }
    table = tomllib.loads(changed["config_b.toml"])
    assert (table["momentum"], table["train"]["adam"]) == (0.5, {"lr": 1e-05, "optimizer": "sgd"})
    assert json.loads(changed["config_c.json"])["train"] == {"lr": 2e-05, "batch_size": 64, "parts": [{"lr": 1}]}


@given(
    st.sampled_from(("config_c.yaml", "config_c.toml", "config_c.json", "config_c.ini")),
    st.text(alphabet="ab:=#-[]{}\"'|> \n0.1,;", max_size=200),
)
def test_no_file_of_settings_raises_and_each_place_is_that_of_its_value(name: str, content: str) -> None:
    program = join_files({"train.py": "", name: content})
    lines = split_program(program)[name].encode().splitlines()

    for constant in constants(program).values():
        text = lines[constant.line - 1][constant.start : constant.end].decode()
        assert text.strip("'\"") == constant.value if isinstance(constant.value, str) else float(text) == constant.value


def test_a_long_line_takes_no_time() -> None:
    for content in ("a:" + " " * 200_000 + "x", "a = " + " " * 200_000 + "x #", "- " * 100_000):
        assert constants(join_files({"train.py": "", "config_c.yaml": content, "config_c.toml": content})) == {}
