"""Every face shows the numbers of a run by their words, and they are the same on all of them."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import aiohttp
import pytest
from autoresearch_cli.main import app
from autoresearch_cli.mcp.tools import Tools
from autoresearch_daemon.api.app import make_app
from autoresearch_daemon.api.listen import Tcp, serve
from autoresearch_exports.git_commits import message
from typer.testing import CliRunner

from autoresearch.ask.client import Client
from autoresearch.face.columns.column import Columns, Face, visible
from autoresearch.face.columns.runs import LINEAGE_COLUMNS, RUN_COLUMNS, program_columns
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run, Verification
from autoresearch.record.record import Network, Record
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from tests.face.pages.every_state import VillageNode, World, tell
from tests.face.pages.reading import whole_page
from tests.log.standing.village import AUTHOR, BEN, TRUST, Village
from tests.record.making import NETWORK

WORDS = ("reported", "verified", "gain", "gain reported")
TRAILERS = {"reported": "Reported", "gain reported": "Change-reported"}
NUMBER = re.compile(r"[-+−]?\d+\.\d{4}")
TITLES = ("baseline", "first", "confirmed", "not replicated", "provisional", "refuted", "crashed", "reported")

Numbers = dict[str, float]


@contextmanager
def opened_world(
    place: Path, trust: Trust, network: Network = NETWORK, definition: dict[str, object] | None = None
) -> Iterator[World]:
    """A home with a log, and the node that serves it."""
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(place)})
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=network, trust=trust))
    with ExitStack() as stack:
        log = stack.enter_context(Log.open(paths.log, network, trust=trust))
        blobs = BlobStore(paths.blobs)
        stack.callback(blobs.close)
        village = Village(log, definition)
        book = SimpleNamespace(log=log, blobs=blobs, mine=AUTHOR, now_ms=village.now_ms)
        node = VillageNode(book, place / "node.sqlite")
        stack.callback(node.local.close)
        made = World(village, blobs, {}, node)
        assert village.baseline is not None
        made.runs["baseline"] = village.baseline
        yield made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def world(home: Path) -> Iterator[World]:
    """A run in every state."""
    with opened_world(home, TRUST) as made:
        tell(made)
        made.node.notebook.now_ms = made.village.now_ms
        yield made


@pytest.fixture(scope="module")
def expected(world: World) -> dict[str, Numbers]:
    """The numbers of each run by its short id, from its record and from those of its verifiers."""
    return {short_id(record.id): numbers_of(world, record) for record in world.runs.values()}


def numbers_of(world: World, record: Record) -> Numbers:
    log, body = world.village.log, record.body
    assert isinstance(body, Run)
    parent = log.records.find(body.parent) if body.parent else None
    checks = [log.records.get(row.id).body for row in log.verifications.of(record.id)]
    pairs = [check for check in checks if isinstance(check, Verification) and check.values]
    values = {"reported": body.value}
    if body.value is not None and parent is not None and isinstance(parent.body, Run) and parent.body.value is not None:
        values["gain reported"] = parent.body.value - body.value
    if pairs:
        values["verified"] = median(value for check in pairs for value in check.values)
        values["gain"] = median(
            before - value for check in pairs for before, value in zip(check.parent_values, check.values, strict=True)
        )
    return {word: number for word, number in values.items() if number is not None}


class Served:
    """Pages and answers of a node over HTTP, and what the tools for agents say."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder

    def get(self, *addresses: str) -> list[str]:
        async def ask(site: str) -> list[str]:
            async with aiohttp.ClientSession() as session:
                return [await self._text(session, site + address) for address in addresses]

        return asyncio.run(self._with_site(ask))

    def tool(self, question: Callable[[Tools], object]) -> object:
        tools = Tools(lambda: Client(self.folder / "api.sock"), lambda: self.folder)

        async def ask(_: str) -> object:
            return await asyncio.to_thread(question, tools)

        return asyncio.run(self._with_site(ask))

    async def _with_site(self, ask):
        tcp = Tcp(port=8700, token="secret", fixed=False)
        async with serve(make_app(self.world.node), socket=self.folder / "api.sock", tcp=tcp) as site:
            return await ask(site.rstrip("/"))

    async def _text(self, session: aiohttp.ClientSession, address: str) -> str:
        async with session.get(address, headers={"Authorization": "Bearer secret"}) as response:
            text = await response.text()
            assert response.status == 200, text
            return text


@pytest.fixture
def served(world: World, tmp_path: Path) -> Served:
    return Served(world, tmp_path)


@pytest.fixture
def cli(home: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(home))

    def call(*words: str) -> str:
        result = CliRunner().invoke(app, list(words), prog_name="autoresearch")
        assert result.exit_code == 0, result.output
        return result.output

    return call


def rounded(number: float, word: str) -> str:
    return f"{number:+.4f}" if word.startswith("gain") else f"{number:.4f}"


def as_rounded(numbers: Numbers) -> dict[str, str]:
    return {word: rounded(number, word) for word, number in numbers.items()}


def numbers_in(answer: object, run: str = "") -> Iterator[tuple[str, Numbers]]:
    """All numbers of runs in a JSON document, each with the run that they are of."""
    if isinstance(answer, list):
        for item in answer:
            yield from numbers_in(item, run)
    if not isinstance(answer, dict):
        return
    run = answer["id"] if str(answer.get("id", "")).startswith("bafy") else run
    fields = {word: answer.get(word.replace(" ", "_")) for word in WORDS}
    if run and "gain_reported" in answer and "number" not in answer.get("schema", ""):
        yield run[7:15], {word: number for word, number in fields.items() if number is not None}
    for name, inner in answer.items():
        of = answer.get(name.removesuffix("_numbers"), "") if name.endswith("_numbers") else run
        yield from numbers_in(inner, of)


def check_all(rows: Iterable[tuple[str, Numbers]], expected: dict[str, Numbers]) -> set[str]:
    """The runs whose numbers were found, each of which is what it should be."""
    runs = set()
    for run, numbers in rows:
        assert numbers == pytest.approx(expected[run], abs=1e-9), run
        runs.add(run)
    return runs


def plain(text: str) -> str:
    """The words of a part of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("−", "-").replace("\u202f", " ").split())


def ids(world: World, *titles: str) -> set[str]:
    return {short_id(world.runs[title].id) for title in titles}


@pytest.mark.slow
def test_the_log_has_numbers_of_each_kind(expected: dict[str, Numbers], world: World) -> None:
    kinds = {frozenset(expected[run]) for run in expected}
    assert {frozenset(WORDS), frozenset({"reported"}), frozenset({"reported", "gain reported"}), frozenset()} <= kinds
    (confirmed,) = ids(world, "confirmed")
    numbers = expected[confirmed]
    assert len({round(number, 4) for number in numbers.values()}) == 4, "no two words have one number by chance"
    assert abs(numbers["gain"] - numbers["gain reported"]) > 1e-4


ADDRESSES = ("best", "top?limit=100", "runs?size=200", "tasks", "status")


@pytest.mark.parametrize("address", ADDRESSES)
def test_answers_of_the_api(address: str, served: Served, world: World, expected: dict[str, Numbers]) -> None:
    (text,) = served.get(f"/v1/{address}")
    assert check_all(numbers_in(json.loads(text)), expected) >= ids(world, "confirmed")


@pytest.mark.slow
def test_answers_of_the_api_about_one_run(served: Served, world: World, expected: dict[str, Numbers]) -> None:
    for title in TITLES:
        run = format_id(world.runs[title].id)
        names = ("", "/context", "/path", "/lineage")
        texts = served.get(*(f"/v1/runs/{run}{name}" for name in names))
        for name, text in zip(names, texts, strict=True):
            assert run[7:15] in check_all(numbers_in(json.loads(text)), expected), (title, name)
    old, new = (format_id(world.runs[title].id) for title in ("first", "confirmed"))
    (text,) = served.get(f"/v1/diff?old={old}&new={new}")
    assert check_all(numbers_in(json.loads(text)), expected) == ids(world, "first", "confirmed")
    assert json.loads(text)["is_parent"]


def test_the_chart(served: Served, world: World, expected: dict[str, Numbers]) -> None:
    marks = json.loads(served.get("/v1/progress")[0])["marks"]
    for mark in marks:
        numbers = expected[mark["id"][7:15]]
        assert mark["reported"] == pytest.approx(numbers["reported"])
        assert mark.get("verified") == pytest.approx(numbers.get("verified"))
    assert {mark["id"][7:15] for mark in marks} >= ids(world, "confirmed", "not replicated", "refuted")


def test_the_tools_for_agents(served: Served, world: World, expected: dict[str, Numbers]) -> None:
    old, new = (format_id(world.runs[title].id) for title in ("first", "confirmed"))
    questions: dict[str, Callable[[Tools], object]] = {
        "status": lambda tools: tools.status(),
        "best": lambda tools: tools.best(),
        "search_runs": lambda tools: tools.search_runs(order="best"),
        "show_run": lambda tools: tools.show_run(new),
        "lineage": lambda tools: tools.show_run(new, part="lineage"),
        "diff": lambda tools: tools.diff(old, new),
    }
    for name, question in questions.items():
        answers = dict(numbers_in(served.tool(question)))
        assert answers.keys() >= ids(world, "confirmed"), name
        check_all(answers.items(), expected)


def cells(columns: Columns, row: object, face: Face) -> dict[str, str]:
    """The first number below each word in a row of a table for people."""
    matches = {
        column.name: NUMBER.search(column.text(row, 0))
        for column in visible(columns, [row], face, 0)
        if column.name in WORDS
    }
    return {name: number.group() for name, number in matches.items() if number}


@pytest.mark.parametrize("face", [Face.TERMINAL, Face.PAGE])
def test_tables_for_people(face: Face, served: Served, world: World, expected: dict[str, Numbers]) -> None:
    desk = served.world
    from autoresearch.ask.lookup import find_task
    from autoresearch.ask.requests import RunsOf
    from autoresearch.ask.runs.boards import top_answer
    from autoresearch.ask.runs.diffs import lineage_answer
    from autoresearch.ask.runs.rows import runs_answer

    log, task = desk.village.log, find_task(desk.village.log)
    lists = [
        (RUN_COLUMNS, runs_answer(log, desk.blobs, task, RunsOf(size=200)).runs, lambda row: row.id),
        (program_columns(0, sections=True), top_answer(log, task, limit=100).programs, lambda row: row.id),
        (LINEAGE_COLUMNS, lineage_answer(log, world.runs["confirmed"].id).steps, lambda row: row.run.id),
    ]
    for columns, rows, id_of in lists:
        assert rows
        for row in rows:
            assert cells(columns, row, face) == as_rounded(expected[id_of(row)[7:15]])


def test_lines_for_programs(cli: Callable[..., str], world: World, expected: dict[str, Numbers]) -> None:
    confirmed = format_id(world.runs["confirmed"].id)
    lists = {
        ("run", "list", "-n", "200"): RUN_COLUMNS,
        ("top", "-n", "100"): program_columns(0, sections=True),
        ("run", "lineage", confirmed): LINEAGE_COLUMNS,
    }
    for words, columns in lists.items():
        names = [column.name for column in columns if Face.PIPE in column.faces]
        rows = [dict(zip(names, line.split("\t"), strict=True)) for line in cli(*words).splitlines() if "\t" in line]
        assert len(rows) >= 3
        for row in rows:
            numbers = {word: float(row[word]) for word in WORDS if row[word]}
            assert numbers == pytest.approx(expected[row["run"][7:15]], abs=1e-5), words


def test_sentences_of_the_command_line(cli: Callable[..., str], world: World, expected: dict[str, Numbers]) -> None:
    (confirmed,) = ids(world, "confirmed")
    numbers, before = as_rounded(expected[confirmed]), as_rounded(expected[next(iter(ids(world, "first")))])
    for words in (("best",), ("status",)):
        rows = dict(line.split("\t", 1) for line in cli(*words).splitlines() if "\t" in line)
        assert re.match(rf"{numbers['verified']} ± \d\.\d+ verified · confirmed", rows["best"]), words
    line = next(row for row in cli("best").splitlines() if row.startswith("confirmed\t"))
    for word in WORDS:
        assert re.search(rf"(?:^|· |\t){word} {re.escape(numbers[word])}", line), word
    lines = [row.split("\t", 1) for row in cli("show", confirmed).splitlines() if "\t" in row]
    rows = dict(reversed(lines))
    assert {word: NUMBER.match(rows[word]).group() for word in WORDS} == numbers  # type: ignore[union-attr]
    text = cli("diff", confirmed)
    # Two runs need not be parent and child: between their values stands the change.
    change = f"{float(numbers['reported']) - float(before['reported']):+.4f}"
    assert f"reported {before['reported']} → {numbers['reported']}  {change}" in text
    assert re.search(rf"verified {before['verified']} ± \S+ → {numbers['verified']} ± ", text)
    assert re.search(rf"gain {re.escape(numbers['gain'])} ± \S+ verified, in pairs", text)
    assert f"{numbers['verified']}" in cli("task", "list") or f"{expected[confirmed]['verified']:.6g}" in cli(
        "task", "list"
    )


def page_cells(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The numbers in the rows of the tables of a page, by the runs that the rows are of."""
    for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL):
        run = re.search(r'href="/run/(\w+)', row)
        cell_names = re.findall(
            r'<t[dh][^>]*class="c-(reported|verified|gain-reported|gain)[ "].*?</t[dh]>', row, re.DOTALL
        )
        texts = {
            name.replace("-", " "): re.sub(r"<[^>]+>", "", cell).replace("−", "-")
            for name, cell in re.findall(
                r'<t[dh][^>]*class="c-(reported|verified|gain-reported|gain)[ "][^>]*>(.*?)</t[dh]>', row, re.DOTALL
            )
        }
        numbers = {name: match.group() for name, cell in texts.items() if (match := NUMBER.search(cell))}
        if run and cell_names:
            yield run[1], numbers


@pytest.mark.parametrize("address", ["/?size=200", "/board", "/node", "/participants/{author}"])
def test_tables_of_the_pages(address: str, served: Served, world: World, expected: dict[str, Numbers]) -> None:
    (text,) = served.get(address.format(author=AUTHOR.public.hex()[:8]))
    page_rows = list(page_cells(text))
    assert {run for run, _ in page_rows} >= ids(world, "confirmed")
    for run, numbers in page_rows:
        assert numbers == as_rounded(expected[run]), run


@pytest.mark.slow
def test_the_page_and_the_card_of_each_run(served: Served, world: World, expected: dict[str, Numbers]) -> None:
    runs = [short_id(world.runs[title].id) for title in TITLES]
    texts = served.get(*(f"/run/{run}" for run in runs))
    cards = served.get(*(f"/card/{run}" for run in runs))
    for run, text, card in zip(runs, texts, cards, strict=True):
        numbers = as_rounded(expected[run])
        words = whole_page(text).text.replace("−", "-").partition("Who measured what")[0]
        if "verified" in numbers:
            assert re.search(rf"Verified {numbers['verified']} ± \S+ median of ", words), run
            assert re.search(rf"Gain on its parent (≈ )?{re.escape(numbers['gain'])} ± \S+ verified in pairs", words)
            assert f"gain reported {numbers['gain reported']}" in words
        elif "gain reported" in numbers:
            assert re.search(rf"Gain on its parent (≈ )?{re.escape(numbers['gain reported'])} reported", words), run
        if "reported" in numbers:
            assert f"Reported {numbers['reported']}" in words
        lead = "verified" if "verified" in numbers else "reported"
        assert lead not in numbers or re.search(rf"{numbers[lead]}( ± \S+)? {lead}", plain(card)), run


def test_the_lineage_page(served: Served, world: World, expected: dict[str, Numbers]) -> None:
    (text,) = served.get(f"/lineage?of={short_id(world.runs['reported'].id)}")
    steps = re.findall(r'<li id="s-(\w+)">(.*?)(?=<li id="s-|</ol>)', text, re.DOTALL)
    assert {run for run, _ in steps} >= ids(world, "baseline", "first", "confirmed", "provisional", "reported")
    for run, step in steps:
        numbers = as_rounded(expected[run])
        text = plain(step)
        lead = "verified" if "verified" in numbers else "reported"
        assert re.search(rf"{numbers[lead]}( ± \S+)? {lead}", text), (run, text)
        if "gain reported" in numbers:
            gain = numbers.get("gain", numbers["gain reported"])
            assert re.search(rf"{re.escape(gain)}( ± \S+)? {lead}", text), (run, text)


def test_all_name_one_best_run_and_one_number(
    served: Served, cli: Callable[..., str], world: World, expected: dict[str, Numbers]
) -> None:
    (best,) = ids(world, "confirmed")
    number = as_rounded(expected[best])["verified"]
    progress, tasks, metrics, *answers = served.get(
        "/", "/tasks", "/metrics", "/v1/best", "/v1/tasks", "/v1/status", "/v1/top"
    )
    hero = progress.partition('aria-label="Where it stands"')[2].partition("</section>")[0]
    assert re.search(rf"Best confirmed {number} ± \S+ verified", plain(hero))
    assert f"/run/{best}" in hero
    assert re.search(rf"{number} ± \S+ verified confirmed", whole_page(tasks).text)
    gauge = re.search(r"^autoresearch_best_verified{.*} (\S+)$", metrics, re.MULTILINE)
    assert gauge
    assert float(gauge[1]) == pytest.approx(expected[best]["verified"])
    told_best = [json.loads(text) for text in answers]
    best_runs = [told_best[0]["task"]["best"]["id"], told_best[0]["run"]["id"], told_best[1]["tasks"][0]["best"]["id"]]
    best_runs += [told_best[2]["task"]["best"]["id"], told_best[3]["task"]["best"]["id"]]
    best_runs += [cli("show", "@", "--field", "id").strip()]
    assert {run[7:15] for run in best_runs} == {best}


def test_a_table_of_results_and_commits(cli: Callable[..., str], world: World, expected: dict[str, Numbers]) -> None:
    rows = [line.split("\t") for line in cli("run", "export").splitlines()]
    reported = {row[0]: row[1] for row in rows[1:]}
    for run in ids(world, *TITLES):
        assert float(reported[run]) == pytest.approx(expected[run].get("reported", 0.0), abs=1e-6)
    for title in TITLES[1:]:
        record = world.runs[title]
        assert isinstance(record.body, Run)
        numbers = expected[short_id(record.id)]
        trailers = dict(
            line.split(": ", 1)
            for line in message(record, world.village.log.records.get(record.body.parent)).splitlines()
            if re.match(r"[A-Z][-a-z]+: ", line)
        )
        numbers_of_commit = {word: float(trailers[name]) for word, name in TRAILERS.items() if name in trailers}
        # A commit knows its run and the parent alone, and not which direction the task has.
        numbers_of_commit |= {word: -number for word, number in numbers_of_commit.items() if word == "gain reported"}
        assert numbers_of_commit == pytest.approx(
            {word: numbers[word] for word in TRAILERS if word in numbers}, abs=1e-5
        )


def test_alone_ones_own_run_is_the_best_and_a_better_claim_stands_beside_it(tmp_path: Path) -> None:
    with opened_world(tmp_path / "home", TRUST) as made:
        own = made.publish(1.5, "own")
        claim = made.publish(1.2, "claim", by=BEN)
        served = Served(made, tmp_path)
        progress, tasks, best = served.get("/", "/v1/tasks", "/v1/best")
    text = plain(progress.partition('aria-label="Where it stands"')[2])
    assert "Best reported by this node 1.5000 reported" in text
    assert "Best reported, not verified 1.2000 reported" in text
    assert f"/run/{short_id(own.id)}" in progress
    assert f"/run/{short_id(claim.id)}" in progress
    ids = {json.loads(best)["task"]["best"]["id"], json.loads(best)["run"]["id"]}
    assert ids | {json.loads(tasks)["tasks"][0]["best"]["id"]} == {format_id(own.id)}
