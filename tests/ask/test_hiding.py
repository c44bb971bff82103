"""What a person hides is out of lists, search and prompts, whenever it comes, and nothing that is counted changes."""

from __future__ import annotations

import random
from dataclasses import dataclass

import msgspec
import pytest

from autoresearch.ask import publishing, questions
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.asking import ask_answer
from autoresearch.ask.desk import Desk
from autoresearch.ask.requests import (
    ColumnsOf,
    HiddenListOf,
    HiddenOf,
    HideRequest,
    NotesOf,
    OfTask,
    OfTaskAndParticipant,
    OneRecord,
    PathOf,
    ProgressOf,
    RecordsOf,
    RunsOf,
    RunsOfParticipant,
    SearchOf,
    ShareHiddenRequest,
    SinceOf,
    TakeHiddenRequest,
    TasksOf,
    TopOf,
)
from autoresearch.errors import AmbiguousId, AutoresearchError, NotFound, Refused, UsageError
from autoresearch.log.standing.hiding import THINGS_MOST, WORDS_MOST, hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Claim, Identity, Note
from autoresearch.text import folded
from autoresearch.trust.keys import KeyPair
from tests.ask.notebook import BASELINE
from tests.ask.notebook import Notebook as Others
from tests.log.dumping import dump

COUNTED = ("standing", "fact", "credit", "frontier", "listing", "tally", "slot", "program", "entry", "copy", "bucket")


@dataclass
class Home:
    """This machine, and the log of others whose records come here."""

    notebook: Notebook
    others: Others

    @property
    def desk(self) -> Desk:
        notebook = self.notebook
        return Desk(
            notebook.log, notebook.blobs, notebook.author, None, notebook.paths.home_local, lambda: self.others.now_ms
        )

    def receive(self) -> None:
        """Store what others published and is not here."""
        self.notebook.log.writer.ingest(list(self.others.log.records.iter_raw()), now_ms=self.others.now_ms + 1000)

    def hide(self, what, **options):
        return publishing.hide(self.notebook, HideRequest(what=what, **options))

    def take(self, who, **options):
        return publishing.take_hidden(self.notebook, TakeHiddenRequest(participant=who, **options))

    def runs(self, **options):
        return questions.runs(self.desk, RunsOf(**options))

    def titles(self, **options):
        return {row.headline for row in self.runs(**options).runs}

    def hidden(self):
        return questions.hidden(self.desk, HiddenOf())

    def counted(self):
        """All rows of the tables that are counted, and what is judged of each record."""
        read = self.notebook.log.reader.connection.execute
        return {table: sorted(read(f"SELECT * FROM {table}"), key=repr) for table in COUNTED} | dump(self.notebook.log)


@pytest.fixture
def home(tmp_path):
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    with Others.at(tmp_path / "others") as others, Notebook(paths, lambda: others.now_ms + 500) as notebook:
        notebook.publish_identity(others.now_ms)
        yield Home(notebook, others)


@pytest.fixture
def filled(home):
    """A task by one participant; runs, notes, claims and a component by two: one of them is spam."""
    others, spam = home.others, home.others.other
    task = others.task("grammar")
    first = others.run(task, 1.25, title="the baseline")
    deeper = others.run(task, 1.10, source=BASELINE + "# deeper\n", parent=first, title="deeper")
    bad = others.run(
        task, 1.00, source=BASELINE + "# buy\n", parent=deeper, by=spam, title="BUY now", hypothesis="cheap"
    )
    home.onward = others.run(task, 1.05, source=BASELINE + "# onward\n", parent=bad, title="onward")
    others.note("depth helps", task=task)
    others.note("visit my casino", task=task, by=spam)
    others.append("identity", Identity(action="profile", root=spam.public, name="Casino"), by=spam)
    claim = Claim(task=task, source_digest=b"c" * 32, title="casino claim", until=others.now_ms + 3_600_000)
    others.append("claim", claim, by=spam)
    home.receive()
    home.task, home.bad, home.spam = task, bad, spam.public.hex()
    return home


def answers(home):
    """What every list, chart and page is made of, as JSON by the question's name."""
    desk, onward = home.desk, format_id(home.onward)
    requests = {
        "runs": (questions.runs, RunsOf()),
        "found": (questions.runs, RunsOf(q="now")),
        "best": (questions.best, OfTask()),
        "top": (questions.top, TopOf()),
        "progress": (questions.progress, ProgressOf()),
        "columns": (questions.columns, ColumnsOf(setting=["LR"])),
        "notes": (questions.notes, NotesOf()),
        "since": (questions.since, SinceOf(since_ms=1)),
        "claims": (questions.claims, OfTask()),
        "search": (questions.search, SearchOf()),
        "records": (questions.records, RecordsOf()),
        "tasks": (questions.tasks, TasksOf()),
        "credit": (questions.credit, OfTaskAndParticipant()),
        "runners": (questions.runners, OfTask()),
        "effects": (questions.effects, OfTask()),
        "verifications": (questions.verifications, OfTask()),
        "lineage": (questions.lineage, OneRecord(id=onward)),
        "path": (questions.path, PathOf(id=onward)),
        "context": (questions.run_context, OneRecord(id=onward)),
        "of spam": (questions.participant_runs, RunsOfParticipant(participant=home.spam)),
    }
    texts = {name: msgspec.json.encode(question(desk, request)) for name, (question, request) in requests.items()}
    asking = ask_answer(desk.log, desk.blobs, desk.task(), "what about casino and buy?", now_ms=desk.now_ms())
    return texts | {"ask": msgspec.json.encode(msgspec.structs.replace(asking, question=""))}


def speaking(texts):
    """The answers in which words of the participant stand that is spam."""
    return {name for name, text in texts.items() if b"casino" in text.lower() or b"buy" in text.lower()}


@pytest.mark.slow
def test_a_hidden_participant_is_out_of_all_lists_and_comes_back(filled):
    before = answers(filled)
    assert speaking(before) >= {
        "runs",
        "found",
        "best",
        "top",
        "notes",
        "claims",
        "search",
        "records",
        "lineage",
        "path",
    }
    answer = filled.hide(filled.spam[:12], reason="spam")
    assert (answer.changed, answer.things[0].what, answer.things[0].thing) == (1, "participant", filled.spam)
    assert answer.records == 4
    after = answers(filled)
    assert speaking(after) == set()
    assert filled.runs().hidden == 1
    assert questions.notes(filled.desk, NotesOf()).hidden == 1
    assert questions.credit(filled.desk, OfTaskAndParticipant()).hidden == 1
    assert filled.hide(filled.spam[:12], undo=True).changed == 1
    assert answers(filled) == before


def test_the_way_to_a_run_names_a_hidden_step_by_its_id_alone(filled):
    filled.hide(filled.spam)
    steps = questions.lineage(filled.desk, OneRecord(id=format_id(filled.onward))).steps
    assert [(step.run.id, step.run.run.title, step.hidden) for step in steps][2:] == [
        (format_id(filled.bad), "hidden", True),
        (format_id(filled.onward), "onward", False),
    ]
    path = questions.path(filled.desk, PathOf(id=format_id(filled.onward))).steps
    assert [(step.row.headline, step.row.hidden) for step in path][2] == ("hidden", True)


def test_what_is_counted_is_the_same_with_and_without_hiding(filled):
    before = filled.counted()
    filled.hide(filled.spam)
    filled.hide("deeper", words=True)
    filled.hide(format_id(filled.onward))
    assert filled.counted() == before
    filled.notebook.log.writer.rebuild()
    assert filled.counted()["frontier"] == before["frontier"]
    assert filled.titles() == {"The baseline"}


def test_the_same_records_stand_the_same_where_they_came_before_and_after_the_hiding(filled, tmp_path):
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "second")})
    with Notebook(paths, lambda: filled.others.now_ms + 500) as notebook:
        late = Home(notebook, filled.others)
        for what, words in (filled.spam, False), (format_id(filled.onward), False), ("DEEPER", True):
            answer = late.hide(what, words=words)
            assert (answer.changed, answer.records) == (1, 0)
            filled.hide(what, words=words)
        late.receive()
        assert late.titles() == filled.titles() == {"The baseline"}
        for table, ids in (
            ("frontier", "task, sure, time, id, value"),
            ("tally", "*"),
            ("slot", "*"),
            ("pair", "setting"),
        ):
            rows = [sorted(each.notebook.log.reader.rows(f"SELECT {ids} FROM {table}")) for each in (late, filled)]
            assert rows[0] == rows[1], table
        assert sorted(entry.records for entry in late.hidden().hidden) == sorted(
            entry.records for entry in filled.hidden().hidden
        )


def test_a_device_that_speaks_for_a_hidden_participant_later_is_hidden(home):
    others, root, device = home.others, KeyPair.generate(), KeyPair.generate()
    task = others.task("grammar")
    others.run(task, 1.0, source="LR = 1\n", title="by a device", by=device)
    home.hide(root.public.hex())
    home.receive()
    assert home.titles() == {"by a device"}
    others.append("identity", Identity(action="delegate", root=root.public, device=device.public), by=root)
    others.append("identity", Identity(action="profile", root=root.public), by=device)
    home.receive()
    assert home.titles() == set()
    home.hide(root.public.hex(), undo=True)
    assert home.titles() == {"by a device"}


def test_by_its_id_a_hidden_record_is_shown_whole_and_says_what_hides_it(filled):
    filled.hide(filled.spam, reason="spam")
    filled.hide("BUY   now", words=True)
    answer = questions.record(filled.desk, OneRecord(id=format_id(filled.bad)))
    assert answer.run.run.title == "BUY now"
    assert {(entry.what, entry.thing, entry.reason) for entry in answer.hidden_by} == {
        ("participant", filled.spam, "spam"),
        ("words", "buy now", ""),
    }
    assert questions.run_context(filled.desk, OneRecord(id=format_id(filled.bad))).row.headline == "BUY now"
    assert questions.record(filled.desk, OneRecord(id=format_id(filled.onward))).hidden_by == []


def test_a_list_shows_what_is_hidden_when_it_is_asked_to(filled):
    everything = filled.titles()
    filled.hide(filled.spam)
    assert filled.titles() == everything - {"BUY now"}
    assert filled.titles(hidden=True) == everything
    assert filled.runs(hidden=True).hidden == 0
    assert {note.text for note in questions.notes(filled.desk, NotesOf(hidden=True)).notes} >= {"visit my casino"}
    assert len(questions.records(filled.desk, RecordsOf(hidden=True)).records) == 11
    assert filled.titles() == everything - {"BUY now"}, "the next question leaves it out again"


def test_nothing_is_built_on_what_is_hidden(filled):
    best = questions.best(filled.desk, OfTask()).task.best
    assert best.id == format_id(filled.bad)
    filled.hide(filled.spam)
    best = questions.best(filled.desk, OfTask()).task.best
    assert (best.id, filled.desk.record("@")) == (format_id(filled.onward), filled.onward)


@pytest.mark.parametrize(
    ("phrase", "text", "is_there"),
    [
        ("buy now", "please BUY  NOW!", True),
        ("buy now", "buy\u200b now", True),
        ("ass", "a class of asses", False),
        ("ass", "what an ass.", True),
        (".*", "all of it", False),
        (".*", "a .* b", True),
        ("100%", "I give 100% of it", True),
        ("%", "no percent sign", False),
        ("_", "some_name", True),
        ("a", "an apple", False),
        ("a", "plan a", True),
        ("垃圾", "这是垃圾笔记", True),
        ("ＢＵＹ", "buy", True),
        ("straße", "STRASSE", True),
        ("\u202ebuy", "buy", True),
        ("\U0001f4b0", "earn \U0001f4b0\U0001f4b0", True),
        ("שלום", "אמר שלום", True),
        ('"; DROP TABLE hide; --', 'a "; drop table hide; -- b', True),
        ("i", "İ", False),
        ("naïve", "NAI\u0308VE", True),
    ],
)
def test_words_are_whole_words_whatever_characters_they_have(home, phrase, text, is_there):
    task = home.others.task("grammar")
    home.others.run(task, 1.0, title=text[:120])
    home.receive()
    home.hide(phrase, words=True)
    assert (home.runs().total == 0) is is_there
    home.others.run(task, 1.1, source=BASELINE + "#\n", title=text[:120])
    home.receive()
    assert (home.runs().total == 0) is is_there, "it is the same for what comes later"
    assert home.hide(phrase, words=True, undo=True).changed == 1
    assert home.runs().total == 2


@pytest.mark.parametrize("what", ["", " ", "\u200b", "\0\x07", "x" * 121, "\u202e\u202d"])
def test_words_that_are_none_or_too_many_are_refused(home, what):
    with pytest.raises((UsageError, msgspec.ValidationError)):
        home.hide(what, words=True)
    assert home.hidden().total == 0


@pytest.mark.parametrize("what", ["zz", "nobody here", "..", "%", "bafyreiaaaa", "@", "@mine", "~1", "0" * 63, "\0"])
def test_what_names_nothing_is_refused(home, what):
    with pytest.raises(AutoresearchError):
        home.hide(what)
    with pytest.raises(NotFound):
        home.hide(what, undo=True)
    assert home.hidden().total == 0


def test_nobody_hides_himself(home):
    home.notebook.publish_identity(home.notebook.now_ms())
    root, device = home.notebook.identity.root.public, home.notebook.author
    for what in ("me", root.hex(), device.hex()):
        with pytest.raises(Refused):
            home.hide(what)
    task = home.others.task("grammar")
    home.receive()
    note = home.notebook.publish_note(Note(topic="insight", text="my own spam", task=task), home.notebook.now_ms())
    home.hide("spam", words=True)
    assert [each.text for each in questions.notes(home.desk, NotesOf()).notes] == ["my own spam"], (
        "words leave mine alone"
    )
    home.hide(short_id(note.id))
    assert questions.notes(home.desk, NotesOf()).notes == [], "by its id a record of mine is hidden"


def test_a_task_and_a_component_are_hidden_by_name_and_id(home):
    digest = home.others.task("grammar")
    home.others.task("corridor")
    home.receive()
    answer = home.hide("grammar")
    assert (answer.things[0].what, answer.things[0].name, answer.records) == ("task", "grammar", 1)
    tasks = questions.tasks(home.desk, TasksOf())
    assert ([task.name for task in tasks.tasks], tasks.hidden) == (["corridor"], 1)
    assert home.desk.task("grammar").digest == digest, "by its name it is there"
    assert home.hide("grammar", undo=True).changed == 1


def test_a_list_is_shared_and_taken_over_and_given_back(filled, tmp_path):
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "second")})
    filled.hide(filled.spam, reason="private reason")
    filled.hide("Onward", words=True)
    filled.hide("c" * 64)
    shared = publishing.share_hidden(filled.notebook, ShareHiddenRequest(text="spam of this week"))
    assert (shared.things, shared.left_out) == (3, 0)
    me = filled.notebook.identity.root.public.hex()
    with Notebook(paths, lambda: filled.others.now_ms + 900) as notebook:
        notebook.publish_identity(filled.others.now_ms)
        second = Home(notebook, filled.others)
        second.receive()
        notebook.log.writer.ingest(list(filled.notebook.log.records.iter_raw()), now_ms=second.others.now_ms + 1000)
        before, listed = answers_of(second), questions.hidden_list(second.desk, HiddenListOf(participant=me))
        assert (listed.text, listed.total, listed.note) == ("spam of this week", 3, shared.note)
        assert {entry.what for entry in listed.hidden} == {"participant", "words", "unknown"}
        assert b"private" not in msgspec.json.encode(listed)
        assert second.hidden().total == 0, "to look at it hides nothing"
        second.hide("the baseline", words=True)
        assert second.take(me).changed == 3
        assert second.titles() == {"deeper"}
        assert {entry.origin.key for entry in second.hidden().hidden if entry.origin} == {me}
        assert second.take(me).changed == 0, "twice is once"
        filled.hide("onward", words=True, undo=True)
        publishing.share_hidden(filled.notebook, ShareHiddenRequest())
        notebook.log.writer.ingest(list(filled.notebook.log.records.iter_raw()), now_ms=second.others.now_ms + 1000)
        second.take(me)
        assert second.titles() == {"deeper", "onward"}, "the newest list is in place of the one before"
        assert second.take(me, undo=True).changed == 2
        assert second.titles() == {"deeper", "onward", "BUY now"}
        second.hide("the baseline", words=True, undo=True)
        assert answers_of(second) == before
        with pytest.raises(NotFound):
            second.take(me, undo=True)
        with pytest.raises(NotFound):
            second.take(filled.spam)
        second.hide(me)
        with pytest.raises(Refused):
            second.take(me)


def answers_of(home):
    """The runs and the notes of a home."""
    return {"runs": sorted(home.titles()), "notes": questions.notes(home.desk, NotesOf()).notes}


def test_lists_of_two_who_take_each_other_s_end(filled, tmp_path):
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "second")})
    with Notebook(paths, lambda: filled.others.now_ms + 900) as notebook:
        notebook.publish_identity(filled.others.now_ms)
        second = Home(notebook, filled.others)
        filled.hide("a" * 64)
        second.hide("b" * 64)
        keys = [home.notebook.identity.root.public.hex() for home in (filled, second)]
        for _ in range(3):
            for home, other, key in (filled, second, keys[1]), (second, filled, keys[0]):
                publishing.share_hidden(other.notebook, ShareHiddenRequest())
                home.notebook.log.writer.ingest(
                    list(other.notebook.log.records.iter_raw()), now_ms=filled.others.now_ms + 1000
                )
                home.take(key)
        assert filled.hidden().total == second.hidden().total == 2
        assert questions.hidden_list(second.desk, HiddenListOf(participant=keys[0])).total == 1


def test_a_list_with_nonsense_hides_what_can_be_hidden(filled):
    me, note = filled.notebook.identity.root.public, filled.others.other
    own = filled.notebook.publish_note(Note(topic="insight", text="mine", task=filled.task), filled.notebook.now_ms())
    words = ["", " ", "\u200b", "deeper", "x" * 120, "%", "deeper"]
    hides = [me, own.id, b"\0" * 32, filled.others.mine.public, filled.others.mine.public]
    filled.others.append("note", Note(topic="insight", text="a\x1b[31m list", hides=hides, hides_words=words), by=note)
    part = Note(topic="insight", text="", hides=[b"p" * 32])
    filled.others.append("note", part, by=note)
    filled.receive()
    listed = questions.hidden_list(filled.desk, HiddenListOf(participant=filled.spam))
    assert (listed.total, listed.left_out) == (5, 2), "what is twice in it counts once, myself and my note are left out"
    assert filled.take(filled.spam).changed == 5
    with pytest.raises(NotFound, match="All tasks here are hidden"):
        filled.titles()
    assert filled.titles(task="grammar") == {"BUY now"}
    assert filled.take(filled.spam, undo=True).changed == 5
    assert filled.hidden().total == 0


def test_a_long_list_has_several_parts(home):
    things = [bytes([number % 256, number // 256]) * 16 for number in range(1000)]
    hide(home.notebook.log, [HiddenRow(thing, b"", "", number) for number, thing in enumerate(things)])
    shared = publishing.share_hidden(home.notebook, ShareHiddenRequest())
    assert (shared.things, shared.left_out) == (1000, 0)
    listed = questions.hidden_list(home.desk, HiddenListOf(participant="me"))
    assert listed.total == 1000


@pytest.mark.slow
def test_there_is_a_bound_and_what_is_past_it_changes_nothing(home):
    log = home.notebook.log
    with pytest.raises(Refused):
        hide(log, [HiddenRow(f"word{number}", b"", "", 0) for number in range(WORDS_MOST + 1)])
    assert home.hidden().total == 0
    hide(log, [HiddenRow(number.to_bytes(32, "big"), b"", "", 0) for number in range(THINGS_MOST)])
    with pytest.raises(Refused):
        home.hide("d" * 64)
    assert home.hidden().total == THINGS_MOST
    home.others.run(home.others.task("grammar"), 1.0, source="LR = 1\n", title="a run")
    home.receive()
    assert home.titles() == {"a run"}


def test_what_can_mean_several_things_is_asked_back(filled):
    filled.hide("ab" * 32)
    filled.hide("ab" + "cd" * 31)
    with pytest.raises(NotFound):
        filled.hide("ab", undo=True)
    filled.hide("abab", undo=True)
    filled.hide("abab" + "ef" * 30)
    filled.hide("abab" + "01" * 30)
    with pytest.raises(AmbiguousId):
        filled.hide("abab", undo=True)


@pytest.mark.slow
def test_any_order_of_hiding_and_taking_back_ends_as_it_began(filled):
    dice, before = random.Random(7), answers(filled)
    named = [
        (filled.spam, False),
        (format_id(filled.onward), False),
        ("deeper", True),
        ("casino", True),
        ("e" * 64, False),
    ]
    for _ in range(40):
        what, words = dice.choice(named)
        filled.hide(what, words=words, undo=any(_same(entry, what) for entry in filled.hidden().hidden))
    for entry in filled.hidden().hidden:
        filled.hide(entry.thing, words=entry.what == "words", undo=True)
    assert answers(filled) == before


def _same(entry, what):
    return entry.thing in (what, folded(what))
