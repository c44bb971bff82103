"""A notebook's code cells become a program: what only a notebook can run is left out, and named."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from autoresearch.errors import Refused, UsageError
from autoresearch.task.notebook import MAX_NOTEBOOK_BYTES, choose_notebook, convert_notebook, notebook_as_program
from tests.task.test_guessing import repository


def notebook(path: Path, *cells: str, language: str = "python") -> Path:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    document = {"nbformat": 4, "metadata": {"kernelspec": {"language": language}}, "cells": code}
    document["cells"] = [{"cell_type": "markdown", "source": "# a title"}, *code]
    path.write_text(json.dumps(document))
    return path


def printed(source: str) -> list[str]:
    """What a program prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})
    return output.getvalue().splitlines()


@pytest.mark.parametrize(
    ("cell", "lines", "left_out"),
    [
        ("%matplotlib inline\nprint('loss:', 1)", ["loss: 1"], ["%matplotlib inline"]),
        ("!pip install -q numpy \\\n  pandas\nprint(2)", ["2"], ["!pip install -q numpy \\"]),
        ("%%time\nprint(3)", ["3"], ["%%time"]),
        ("%%bash\necho 4", [], ["%%bash"]),
        ("%%writefile model.py\nx = 1", [], ["%%writefile model.py"]),
        ("if True:\n    %timeit -n1 x\nprint(5)", ["5"], ["%timeit -n1 x"]),
        ("files = !ls\nprint(6)", ["6"], ["files = !ls"]),
        ("print?\n?print\nprint(7)", ["7"], ["print?", "?print"]),
        ("print('%d'\n   % 8)", ["8"], []),
        ("text = '''\n%matplotlib inline\n!ls\n'''\nprint(9)", ["9"], []),
        ("class M:\n    def score(self, x):\n        return x\nM().score(\n  0.5)", ["score: 0.5"], []),
        ("accuracy = 0.93\naccuracy", ["accuracy: 0.93"], []),
        ("é = 'ü'; accuracy = 1; accuracy", ["accuracy: 1"], []),
        ("1 + 1;", [], []),
        ("None", [], []),
        ("display('x')", ["x"], []),
        ("get_ipython().run_line_magic('matplotlib', 'inline')", [], []),
        ("def display(x):\n    print('mine', x)\ndisplay(1)", ["mine 1"], []),
        ("print('a')\r\nprint('b')", ["a", "b"], []),
    ],
)
def test_a_cell_becomes_python(tmp_path: Path, cell: str, lines: list[str], left_out: list[str]) -> None:
    notebook(tmp_path / "x.ipynb", cell, "done = 1")
    converted = convert_notebook(tmp_path, "x.ipynb")

    assert (printed(converted.source), list(converted.left_out)) == (lines, left_out)


def test_cells_share_their_names_and_an_import_of_the_future_comes_first(tmp_path: Path) -> None:
    notebook(tmp_path / "x.ipynb", "x = 1", "from __future__ import annotations\ny: Z = x", "y")
    converted = convert_notebook(tmp_path, "x.ipynb")
    assert printed(converted.source) == ["y: 1"]


def test_notebooks_of_the_form_before_2015_are_read(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": ["print(1)\n", "print(2)"]}]
    (tmp_path / "x.ipynb").write_text(json.dumps({"metadata": {}, "worksheets": [{"cells": cells}]}))
    assert printed(convert_notebook(tmp_path, "x.ipynb").source) == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        ("{", "is no notebook"),
        ("[]", "is no notebook"),
        ('{"cells": 3}', "is no notebook"),
        ('{"cells": [{}]}', "is no notebook"),
        ('{"metadata": 1, "cells": []}', "is no notebook"),
        ('{"cells": [{"cell_type": "code", "source": 5}]}', "is no notebook"),
        ("[" * 100_000, "is no notebook"),
        ('{"cells": []}', "has no cell with Python"),
        ('{"cells": [{"cell_type": "code", "source": "def f(:"}]}', "cell 1 of .* is no Python"),
        ('{"cells": [{"cell_type": "code", "source": "' + "%x\\n" * 500 + '"}]}', "is no Python"),
        ('{"metadata": {"kernelspec": {"language": "R"}}, "cells": []}', "a notebook in R"),
        ('{"cells": [{"cell_type": "code", "source": "' + "x" * (2 << 20) + '"}]}', "of code"),
    ],
)
def test_what_is_no_notebook_is_a_sentence(tmp_path: Path, content: str, refusal: str) -> None:
    (tmp_path / "x.ipynb").write_text(content)
    with pytest.raises(UsageError, match=refusal):
        convert_notebook(tmp_path, "x.ipynb")


def test_a_huge_notebook_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x.ipynb").open("wb") as file:
        file.truncate(MAX_NOTEBOOK_BYTES + 1)
    with pytest.raises(UsageError, match="larger than 64 MiB"):
        convert_notebook(tmp_path, "x.ipynb")


@pytest.mark.parametrize(
    ("others", "is_chosen"),
    [
        ({}, True),
        ({"utils.py": "x = 1\n"}, True),
        ({"utils.py": "x = 1\n", "setup.py": "", "data.csv": ""}, True),
        ({"train.py": ""}, False),
        ({"other.py": ""}, False),
        ({"run.sh": ""}, False),
        ({"a.cpp": ""}, False),
    ],
)
def test_a_notebook_is_the_program_where_there_is_no_other(
    tmp_path: Path, others: dict[str, str], is_chosen: bool
) -> None:
    repository(tmp_path, others)
    notebook(tmp_path / "x.ipynb", "import utils")
    assert choose_notebook(tmp_path, ["x.ipynb", *others]) == ("x.ipynb" if is_chosen else None)


def test_the_program_is_written_beside_it_never_over_a_file_and_goes_where_no_task_came_of_it(tmp_path: Path) -> None:
    notebook(tmp_path / "Mein Modell (été).ipynb", "!ls\nx = 1")
    with contextlib.suppress(KeyError), notebook_as_program(tmp_path, "", ()) as (edit, sentences):
        assert (list(edit), (tmp_path / edit[0]).is_file()) == (["Mein_Modell_ete.py"], True)
        assert sentences[1] == "left out of it: !ls"
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["Mein Modell (été).ipynb"]

    notebook(tmp_path / "other.ipynb", "x = 1")
    with pytest.raises(UsageError, match="several notebooks"), notebook_as_program(tmp_path, "", ()):
        pass
    (tmp_path / "other.py").write_text("mine\n")
    with pytest.raises(Refused, match="exists already"), notebook_as_program(tmp_path, "", ["other.ipynb"]):
        pass
    assert (tmp_path / "other.py").read_text() == "mine\n"
    with notebook_as_program(tmp_path, "python other.py", ()) as (edit, sentences):
        assert (edit, sentences) == ((), ())
