"""A Jupyter notebook as a Python program: its code cells in their order, without what only a notebook can run.

Left out are magics (``%matplotlib inline``), commands of a shell (``!pip install``) and cells in other languages. A
notebook shows the value of a cell's last line; the program prints it, with its name.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from autoresearch.beneath import open_beneath, remove_beneath
from autoresearch.errors import UsageError
from autoresearch.task.folder_state import create_file
from autoresearch.task.listing import list_folder
from autoresearch.task.loading import MAX_FILE_BYTES
from autoresearch.task.mentions import imports_in
from autoresearch.task.program import ENTRY, PLAIN_NAME, is_tool_file
from autoresearch.task.source import parse_python, python_tree
from autoresearch.text import latin, read_json

ENDING = ".ipynb"
# With all its pictures. A larger one is read by nobody.
MAX_NOTEBOOK_BYTES = 64 << 20
# What of a cell's beginning leaves Python behind it; behind any other such line nothing of the cell is Python.
_PYTHON_CELLS = re.compile(r"%%(?:time|timeit|capture|prun|python3?|memit|script python)\b")
_NO_PYTHON = re.compile(r"[%!?]|[\w., ]{1,200}=\s*[%!]|[\w.]+\?{1,2}\s*$")
_PRINTERS = frozenset({"print", "display", "show", "plot", "pprint"})
_MOST_CELLS = 2000
_MOST_MAGICS = 100
_NAMED = 6

_SHOW = '''\
def _show(name, value):
    """Print what the notebook shows below a cell: the value of its last line."""
    if value is not None:
        print(f"{name}: {value}")
'''
_DISPLAY = "display = print\n"
_SHELL = """\
class _Shell:
    def __getattr__(self, name):
        return lambda *words, **named: None


def get_ipython():
    return _Shell()
"""


@dataclass(frozen=True, slots=True)
class Converted:
    """The program of a notebook, and the lines and cells that are left out."""

    source: str
    left_out: Sequence[str]


def convert_notebook(folder: Path, name: str) -> Converted:
    """The program of a notebook. Raises UsageError where it is none, or a cell is no Python."""
    path, left_out = folder / name, list[str]()
    cells = [_converted(path, number, cell, left_out) for number, cell in enumerate(_cells(folder, name), 1)]
    parts = [f"# %% cell {number}\n{cell}\n" for number, cell in enumerate(cells, 1) if cell.strip()]
    if not parts:
        raise UsageError(f"{path} has no cell with Python code", hint="write the program into a train.py")
    code = "\n".join(parts)
    names = {node.id for node in ast.walk(parse_python(code)) if isinstance(node, ast.Name)}
    stored = {part for part in ("display", "get_ipython") if re.search(rf"(?:import|def|as) .*\b{part}\b", code)}
    header = [_SHOW] if "_show" in names else []
    header += [_DISPLAY] if "display" in names - stored else []
    header += [_SHELL] if "get_ipython" in names - stored else []
    future = [line for line in code.splitlines() if line.startswith("from __future__")]
    code = "".join(line for line in code.splitlines(keepends=True) if not line.startswith("from __future__"))
    head = "# The code of a notebook, cell by cell.\n" + "".join(f"{line}\n" for line in future)
    return Converted("\n\n".join([head, *header, code]), left_out)


def _cells(folder: Path, name: str) -> list[str]:
    path = folder / name
    try:
        with open_beneath(folder, name) as file:
            content = file.read(MAX_NOTEBOOK_BYTES + 1)
        if len(content) > MAX_NOTEBOOK_BYTES:
            hint = "clear its outputs, or write the program into a train.py"
            raise UsageError(f"{path} is larger than {MAX_NOTEBOOK_BYTES >> 20} MiB", hint=hint)
        document = read_json(content)
        metadata = document.get("metadata", {})
        language = metadata.get("kernelspec", {}).get("language") or metadata.get("language_info", {}).get("name")
        if str(language or "python").lower() not in {"python", "python3", "ipython"}:
            raise UsageError(f"{path} is a notebook in {language}", hint="a notebook becomes a task if it is in Python")
        sheets = document.get("worksheets", [document])  # its form before 2015
        cells = [cell for sheet in sheets for cell in sheet["cells"] if cell["cell_type"] == "code"]
        sources = [cell.get("source", cell.get("input", "")) for cell in cells[:_MOST_CELLS]]
        texts = [source if isinstance(source, str) else "".join(source) for source in sources]
        if sum(map(len, texts)) > MAX_FILE_BYTES:
            hint = "keep data in files of their own"
            raise UsageError(f"{path} has more than {MAX_FILE_BYTES >> 10} KiB of code", hint=hint)
        return texts
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no notebook", hint="save it in Jupyter, or write a train.py") from error


def _converted(path: Path, number: int, cell: str, left_out: list[str]) -> str:
    """A cell as Python; what of it is none is noted. Raises UsageError."""
    cell = cell.replace("\r\n", "\n")
    if match := re.match(r"\s*(%%.*)", cell):
        left_out.append(match[1].strip())
        if not _PYTHON_CELLS.match(match[1]):
            return ""
        cell = cell[match.end() :].lstrip("\n")
    lines = cell.split("\n")
    for _ in range(_MOST_MAGICS):
        if (tree := python_tree("\n".join(lines))) is not None:
            return _with_last_shown("\n".join(lines), tree)
        # The first line that is no Python, by Python's own word; where it names another one, the first that looks so.
        candidates = [at for at, line in enumerate(lines) if _NO_PYTHON.match(line.lstrip())]
        if not candidates:
            break
        fault = _fault("\n".join(lines))
        at = fault if fault in candidates else candidates[0]
        left_out.append(lines[at].strip())
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        while lines[at].endswith("\\") and at + 1 < len(lines):  # a command that goes on in the next line
            lines[at : at + 2] = [f"{lines[at][:-1]} {lines[at + 1].strip()}"]
        lines[at] = f"{indent}pass  # {lines[at].strip()}"
    raise UsageError(f"cell {number} of {path} is no Python", hint="mend it there, or write a train.py")


def _fault(source: str) -> int:
    try:
        parse_python(source)
    except SyntaxError as error:
        return (error.lineno or 1) - 1
    except (ValueError, RecursionError, MemoryError):
        pass
    return -1


def _with_last_shown(cell: str, tree: ast.Module) -> str:
    """The cell, with its last line printed where that is a value."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or isinstance(last.value, ast.Constant) or cell.rstrip().endswith(";"):
        return cell
    node = last.value.func if isinstance(last.value, ast.Call) else last.value
    name = getattr(node, "attr", getattr(node, "id", ""))
    text = ast.get_source_segment(cell, last)
    if isinstance(last.value, ast.Await | ast.Yield) or name in _PRINTERS or text is None:
        return cell
    lines = cell.encode().split(b"\n")
    before = b"\n".join([*lines[: last.lineno - 1], lines[last.lineno - 1][: last.col_offset]]).decode()
    return f"{before}_show({name or 'value'!r}, ({text}))"


def choose_notebook(folder: Path, names: Sequence[str]) -> str | None:
    """The notebook of a folder that has no other program; modules that it imports are none.

    Raises UsageError where there are several, or it can't be read.
    """
    top = [name for name in names if "/" not in name]
    notebooks = [name for name in top if name.endswith(ENDING)]
    if not notebooks or ENTRY in top or any(name.endswith((".sh", ".c", ".cc", ".cpp", ".cxx")) for name in top):
        return None
    python = {name.removesuffix(".py") for name in top if name.endswith(".py") and not is_tool_file(name)}
    if not python <= _modules_of(folder, notebooks):
        return None
    if len(notebooks) > 1:
        more = f" and {len(notebooks) - 6} more" if len(notebooks) > 6 else ""
        hint = f"say which one: --edit {json.dumps(notebooks[0], ensure_ascii=False)}"
        raise UsageError(f"{folder} has several notebooks: {', '.join(notebooks[:6])}{more}", hint=hint)
    return notebooks[0]


def _modules_of(folder: Path, notebooks: Collection[str]) -> set[str]:
    modules: set[str] = set()
    for name in list(notebooks)[:16]:
        try:
            source = convert_notebook(folder, name).source
        except UsageError:
            continue
        modules |= {module.partition(".")[0] for _, module in imports_in(source)}
    return modules


def name_of_program(notebook: PurePath) -> str:
    """The name of the Python file beside a notebook, with the letters that a program's name may have."""
    stem = re.sub(r"[^A-Za-z0-9_]+", "_", latin(notebook.stem)).strip("_")[:48]
    return f"{stem}.py" if PLAIN_NAME.fullmatch(f"{stem}.py") and not is_tool_file(f"{stem}.py") else "notebook.py"


@contextmanager
def notebook_as_program(
    folder: Path, command: str, edit: Sequence[str]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Write the program of a folder's notebook beside it; what may change then, and sentences that say it.

    A folder with another program stays as it is, and so does one with a ``command``. ``edit`` may name a notebook. The
    file goes again where what follows fails. Raises UsageError as :func:`choose_notebook` and :func:`convert_notebook`,
    Refused where there is a file with its name.
    """
    notebook = None
    if not command and len(edit) == 1 and edit[0].endswith(ENDING) and (folder / edit[0]).is_file():
        notebook = edit[0]
    elif not (command or edit):
        notebook = choose_notebook(folder, list_folder(folder).names)
    if notebook is None:
        yield edit, ()
        return
    converted, path = convert_notebook(folder, notebook), PurePath(notebook)
    program = str(path.with_name(name_of_program(path)))
    create_file(folder, program, converted.source)
    named, more = converted.left_out[:_NAMED], len(converted.left_out) - _NAMED
    sentences = [f"{folder / program} has the code of {path.name}: edit it there from now on"]
    sentences += [f"left out of it: {line[:100]}" for line in named]
    sentences += [f"left out of it: {more} more lines and cells"] if more > 0 else []
    try:
        yield (program,), sentences
    except BaseException:
        remove_beneath(folder, program)
        raise
