"""The reference pages list every setting and every key of task.toml, each with its default."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.node import Event
from autoresearch.settings import Settings
from autoresearch.task import model
from autoresearch.words import WHY_SENTENCES, Why

REFERENCE = Path(__file__).parents[2] / "docs/reference"


def rows(page: str) -> dict[str, str]:
    """The tables of a page: what stands in the first column, and the default beside it."""
    row = r"^\| `([a-z_]+\.[a-z_]+|name|summary|baseline)` \| ([^|]*) \|"
    return dict(re.findall(row, (REFERENCE / page).read_text(), re.M))


def written(field: msgspec.structs.FieldInfo) -> str:
    """A default as the pages write it."""
    if field.required:
        return "required"
    value = field.default
    if value is msgspec.NODEFAULT or value is None:
        return "none"
    if value == "":
        return "empty"
    if isinstance(value, tuple):
        return f"`{list(value)}`".replace("'", '"')
    return f"`{str(value).removesuffix('.0').lower() if isinstance(value, bool | float) else value}`"


def test_every_setting_is_listed_with_its_default() -> None:
    expected = {
        f"{section.name}.{field.name}": written(field)
        for section in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(section.type)
    }
    assert rows("settings.md") == expected


def test_every_key_of_a_task_is_listed_with_its_default() -> None:
    sections = {
        "metric": model.Metric,
        "budget": model.Budget,
        "limits": model.Limits,
        "program": model.Recipe,
        "evaluation": model.Evaluation,
        "python": model.Python,
    }
    header = {field.name: field for field in msgspec.structs.fields(model.Header)}
    expected = {
        f"{name}.{f.name}": written(f) for name, section in sections.items() for f in msgspec.structs.fields(section)
    }
    expected |= {f"evaluation.{f.name}": written(f) for f in msgspec.structs.fields(model.Evaluator)}
    expected |= {name: written(header[name]) for name in ("name", "summary", "baseline")}

    assert rows("task-toml.md") == expected
    assert set(header) == {*sections, "name", "summary", "baseline", "harness", "data", "inputs", "mounts"}


@pytest.mark.parametrize(
    "name", ["metric", "budget", "limits", "program", "harness", "data", "inputs", "mounts", "evaluation", "python"]
)
def test_every_table_of_a_task_has_a_heading(name: str) -> None:
    assert re.search(rf"^## \[{name}\]: ", (REFERENCE / "task-toml.md").read_text(), re.M)


# What a worker does, which needs nobody.
BUSY = {
    *(Why.RUNNING, Why.LOOKING, Why.PROPOSING, Why.VERIFYING, Why.PREPARING_DATA, Why.INSTALLING_PACKAGES),
    Why.COMPILING_LIBRARIES,
    *(Why.TESTING_CARD, Why.STARTING, Why.STOPPING, Why.ASKED_FOR_TIME, Why.ASKED_FOR_PROPOSALS),
}


@pytest.mark.parametrize("why", [why for why in WHY_SENTENCES if why not in BUSY])
def test_every_reason_not_to_work_has_a_remedy(why: Why) -> None:
    page = (REFERENCE.parent / "how-to" / "troubleshoot.md").read_text()
    words = WHY_SENTENCES[why].partition(":")[0].partition(";")[0].partition(",")[0].partition(" (")[0]
    assert words.removeprefix("this machine ") in page


def test_every_event_is_on_its_page() -> None:
    kinds = re.search(r"one of ([\w,\s]+)\.", Event.__doc__ or "")
    assert kinds
    page = (REFERENCE / "api.md").read_text()
    assert [kind for kind in re.findall(r"\w+", kinds[1]) if f"`{kind}`" not in page] == []
