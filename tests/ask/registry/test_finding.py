"""Components are found by their words, whoever flooded the log; and what is found depends on the records alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.ask.registry.choosing import read_component, releases_like, resolve, search
from autoresearch.ask.registry.releases import component_view, release_answer
from autoresearch.errors import AmbiguousName, NotFound, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Identity, Release, Withdrawal, Yank
from autoresearch.task.release import File
from autoresearch.trust.roster import Trust
from tests.ask.registry.making import MAIN, publish
from tests.log.test_set_functions import fill, fresh
from tests.log.universe import AMPLE
from tests.nasty import NASTY
from tests.record.making import BLOB, NETWORK, NOW_MS, key, sealed

TREE = f"h1:{'ab' * 32}"


def names(result: list) -> list[str]:
    return [each.newest.row.name for each in result]


@st.composite
def records(draw: st.DrawFn) -> list:
    made = []
    for number in range(draw(st.integers(1, 14))):
        author, ids = draw(st.sampled_from([key(1), key(2), key(3)])), [record.id for record in made] or [b"?" * 32]
        kind = draw(st.sampled_from(["release"] * 5 + ["yank", "withdrawal", "identity"]))
        links = []
        if kind == "release":
            metadata = {
                "type": draw(st.sampled_from(["policy", "trainer", "No"])),
                "tree": f"h1:{draw(st.sampled_from(['ab', 'cd'])) * 32}",
                "description": draw(st.sampled_from(["a small table", "a net"])),
            }
            body = Release(
                name=draw(st.sampled_from(["q", "dqn"])),
                version=draw(st.sampled_from(["1.0", "2.0"])),
                bundle=BLOB,
                metadata=metadata,
            )
        elif kind == "yank":
            body = Yank(release=draw(st.sampled_from(ids)))
        elif kind == "withdrawal":
            body, links = Withdrawal(), draw(st.lists(st.sampled_from(ids), max_size=2))
        else:
            author = key(100)
            device = draw(st.sampled_from([key(1), key(2)])).public
            body = Identity(action="delegate", root=author.public, device=device)
        made.append(
            sealed(author, body, kind=kind, seq=number + 1, time_ms=NOW_MS + number, links=links, network=AMPLE)
        )
    return made


def everything(log: Log) -> list:
    requests = [("", ""), ("policy", ""), ("", "table"), ("trainer", "net q")]
    results = [search(log, query, kind=kind, yanked=yanked) for kind, query in requests for yanked in (False, True)]
    messages = []
    for name in ("q", "dqn"):
        try:
            messages.append(resolve(log, "policy", name))
        except (AmbiguousName, NotFound) as error:
            messages.append((str(error), error.hint))
    return [results, messages]


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_what_is_found_is_a_function_of_the_records(data: st.DataObject) -> None:
    made = data.draw(records())
    with fresh(AMPLE) as first, fresh(AMPLE) as other:
        fill(first, made)
        fill(other, made, data.draw(st.randoms(use_true_random=False)), data.draw(st.integers(1, 8)))
        expected = everything(first)
        assert everything(other) == expected
        other.writer.rebuild()
        assert everything(other) == expected


@given(st.text(max_size=80), st.sampled_from(["", "policy", NASTY]))
@settings(max_examples=40, deadline=None)
def test_no_text_is_a_wrong_question(query: str, kind: str) -> None:
    with fresh(NETWORK) as log:
        log.writer.append(
            key(1),
            "release",
            Release(name="q", version="1", bundle=BLOB, metadata={"type": "policy", "tree": TREE}),
            now_ms=NOW_MS,
        )
        assert isinstance(search(log, query, kind=kind), list)


def test_words_of_name_description_and_publisher_find_it(log: Log, blobs: BlobStore) -> None:
    root, device = key(100), key(1)
    publish(log, blobs, "q_table", kind="policy", description="values for small worlds")
    publish(log, blobs, "corridor", description="a small world", time_ms=NOW_MS + 1)
    publish(log, blobs, "dqn", kind="policy", by=key(2), description="a deep network", time_ms=NOW_MS + 2)
    log.writer.append(
        root, "identity", Identity(action="delegate", root=root.public, device=device.public), now_ms=NOW_MS
    )
    profile = Identity(action="profile", root=root.public, name="Ann Blue")
    log.writer.append(root, "identity", profile, now_ms=NOW_MS + 5)
    assert names(search(log)) == ["dqn", "corridor", "q_table"]
    assert names(search(log, kind="environment")) == ["corridor"]
    assert set(names(search(log, "small world"))) == {"corridor", "q_table"}
    assert names(search(log, "q_table")) == names(search(log, "Q table")) == ["q_table"]
    assert names(search(log, "deep")) == names(search(log, key(2).public.hex()[:12])) == ["dqn"]
    assert names(search(log, "nothing")) == names(search(log, "small deep")) == []


def test_the_components_of_publishers_in_the_network_come_first(tmp_path: Path, blobs: BlobStore) -> None:
    trust = Trust(participants=frozenset({key(1).public}))
    with Log.open(tmp_path / "trusting.sqlite", NETWORK, trust=trust) as log:
        ours = publish(log, blobs, "table", kind="policy", description="words and more words about it")
        for number in range(2, 8):
            publish(log, blobs, "table", kind="policy", by=key(number), description="table", time_ms=NOW_MS + number)
        results = search(log, "table")
        assert (results[0].newest.row.id, results[0].newest.attested) == (ours.id, True)
        assert len(results) == 7
        assert not any(each.newest.attested for each in results[1:])
        assert resolve(log, "policy", "table").release.row.id == ours.id


def test_versions_are_one_row_and_yanked_ones_are_hidden(log: Log, blobs: BlobStore) -> None:
    old = publish(log, blobs, version="1.0.0")
    new = publish(log, blobs, version="1.10.0", time_ms=NOW_MS + 1)
    publish(log, blobs, version="2.0.0-rc1", time_ms=NOW_MS + 2)
    [row] = search(log, "corridor")
    assert (row.newest.row.id, len(row.releases)) == (new.id, 3)
    log.writer.append(key(2), "yank", Yank(release=new.id), now_ms=NOW_MS + 3)
    assert search(log, "corridor")[0].newest.row.id == new.id, "only its publisher yanks it"
    log.writer.append(key(1), "yank", Yank(release=new.id), now_ms=NOW_MS + 4)
    assert search(log, "corridor")[0].newest.row.id == old.id
    assert resolve(log, "environment", "corridor").release.row.id == old.id
    taken = resolve(log, "environment", "corridor", pinned=new.id)
    assert (taken.release.row.id, len(taken.warnings)) == (new.id, 1)
    assert [each.row.version for each in releases_like(log, old.id)] == ["2.0.0-rc1", "1.10.0", "1.0.0"]


def test_an_id_names_a_release_and_what_is_yanked_blocks_no_name(log: Log, blobs: BlobStore) -> None:
    ours = publish(log, blobs, "table", kind="policy")
    theirs = publish(log, blobs, "table", kind="policy", by=key(2), description="table", time_ms=NOW_MS + 1)
    with pytest.raises(AmbiguousName, match="2 participants publish it"):
        resolve(log, "policy", "table")
    for text in (format_id(theirs.id), short_id(theirs.id)):
        assert resolve(log, "policy", text).release.row.id == theirs.id
    with pytest.raises(NotFound):
        resolve(log, "trainer", short_id(theirs.id))
    log.writer.append(key(1), "yank", Yank(release=ours.id), now_ms=NOW_MS + 2)
    assert resolve(log, "policy", "table").release.row.id == theirs.id


def test_two_contents_of_one_version_are_both_shown(log: Log, blobs: BlobStore) -> None:
    old = publish(log, blobs, version="1.0.0")
    two = [
        publish(log, blobs, version="2.0.0", files=(File("main.py", MAIN + extra),), time_ms=NOW_MS + 1)
        for extra in (b"", b"# more\n")
    ]
    row = component_view(log, *search(log))
    assert (row.version, row.equivocal) == ("1.0.0", True)
    release = release_answer(log, two[0].id).release
    assert [(version.version, version.equivocal) for version in release.versions] == [
        ("2.0.0", True),
        ("2.0.0", True),
        ("1.0.0", False),
    ]
    assert not release_answer(log, old.id).release.equivocal
    with pytest.raises(AmbiguousName) as error:
        resolve(log, "environment", "corridor==2.0.0")
    assert set(error.value.candidates) == {format_id(each.id) for each in two}
    assert resolve(log, "environment", "corridor").warnings


def test_a_hostile_release_is_stored_and_is_no_component(log: Log) -> None:
    hostile = [
        Release(name=NASTY[:64], version="1.0", bundle=BLOB, metadata={"type": "policy", "tree": TREE}),
        Release(name="..", version="1.0", bundle=BLOB, metadata={"type": "policy", "tree": TREE}),
        Release(name="q", version="1.0", bundle=BLOB, metadata={"type": NASTY, "tree": NASTY, NASTY[:64]: [NASTY]}),
        Release(name="q", version="1.0", bundle=BLOB, metadata={"type": "policy", "tree": TREE, "params": 10**15}),
        Release(name="q", version="1.0", bundle=BLOB, metadata={"a": [{"b": [{"c": [{"d": {}}]}]}]}),
    ]
    stored = [log.writer.append(key(1), "release", body, now_ms=NOW_MS) for body in hostile]
    assert log.records.count("release") == len(hostile)
    assert search(log, yanked=True) == []
    for record in stored:
        assert releases_like(log, record.id) == []
        with pytest.raises(UsageError, match="no release of a component"):
            read_component(log, record.id)


def test_a_hidden_component_is_found_by_nobody_s_words_and_meant_by_its_id_alone(log: Log, blobs: BlobStore) -> None:
    bad, good = (
        publish(log, blobs, "maze"),
        publish(log, blobs, "maze", by=key(2), files=(File("main.py", b"x = 1\n"),)),
    )
    hide(log, [HiddenRow(bad.id, b"", "", 0)])
    assert [each.newest.row.id for each in search(log, "maze")] == [good.id]
    assert resolve(log, "environment", "maze").release.row.id == good.id
    hide(log, [HiddenRow("walk to its end", b"", "", 0), HiddenRow(good.id, b"", "", 0)])
    assert search(log) == []
    with pytest.raises(NotFound):
        resolve(log, "environment", "maze")
    for pinned in (
        {"text": short_id(bad.id)},
        {"text": "maze", "pinned": bad.id},
        {"text": f"{key(1).public.hex()}/maze"},
    ):
        assert resolve(log, "environment", **pinned).release.row.id == bad.id
