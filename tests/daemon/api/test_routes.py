"""Every address, over a real socket."""

import asyncio

import msgspec
import pytest
from autoresearch_daemon.api.app import MAXIMUM_BODY_BYTES

from autoresearch.ask.lookup import find_task
from autoresearch.ask.requests import OneEvidence, PauseRequest, ProposeRequest, WorkRequest
from autoresearch.log.local import Choice, choose
from autoresearch.record.encoding import format_id, parse_id, short_id
from tests.ask.notebook import BASELINE
from tests.nasty import FORGED, NASTY, harms


async def test_the_node_says_what_it_does(client):
    status = await client.get("/v1/status")
    assert (status["schema"], status["state"], status["task"]["name"]) == ("autoresearch.status/2", "idle", "grammar")


async def test_best_and_top_are_those_of_the_log(client, story):
    best = await client.get("/v1/best")
    assert best["confirmed"] is None
    assert best["reported"]["id"] == format_id(story.faster)
    top = await client.get("/v1/top?limit=2&task=grammar")
    assert [row["reported"] for row in top["programs"]] == [1.0, 1.05]


async def test_notes_are_published_and_found(client, story):
    text = "depth helps more than width"
    made = (await client.post("/v1/notes", {"evidence": ["@"], "text": text}))["note"]
    assert (made["topic"], made["evidence"], made["task"]) == ("insight", [format_id(story.faster)], "grammar")
    answer = await client.get("/v1/notes?query=WIDTH%20depth")
    assert [note["text"] for note in answer["notes"]] == [text]
    assert (await client.get("/v1/notes?query=nothing"))["notes"] == []
    assert [note["id"] for note in (await client.get("/v1/records/@"))["notes"]] == [made["id"]]


async def test_a_note_is_published_in_place_of_an_own_one_unless_a_run_cites_it(client, story):
    before = (await client.post("/v1/notes", {"evidence": ["@"], "text": "depth helps"}))["note"]
    edit = {"text": "depth helps up to 9", "instead_of": before["id"]}
    task = find_task(story.notebook.log).digest
    own_run = format_id(story.notebook.run(task, 1.5, by=story.notebook.mine))
    for wrong in ({"text": " "}, {"instead_of": own_run}, {"evidence": ["@"]}, {"task": "grammar"}):
        assert (await client.post("/v1/notes", edit | wrong, 400))["error"]
    others = format_id(story.notebook.run(task, 1.5, by=story.notebook.other))
    refused = await client.post("/v1/notes", edit | {"instead_of": others}, 409)
    assert "by another participant" in refused["error"]
    after = (await client.post("/v1/notes", edit))["note"]
    assert (after["text"], after["evidence"]) == (edit["text"], before["evidence"])
    listed = [note["id"] for note in (await client.get("/v1/notes"))["notes"]]
    assert after["id"] in listed
    assert before["id"] not in listed
    assert (await client.get(f"/v1/records/{before['id']}"))["withdrawn_reason"].startswith("in its place: ")
    again = await client.post("/v1/notes", edit, 409)
    assert "withdrawn already" in again["error"]
    story.notebook.run(task, 0.9, cites=[parse_id(after["id"])])
    cited = await client.post("/v1/notes", {"text": "no", "instead_of": after["id"]}, 409)
    assert "runs cite" in cited["error"]


async def test_what_is_chosen_here_is_seen_at_once(client, story, node):
    assert (await client.get("/v1/records?starred=true"))["records"] == []
    choose(node.choices, Choice.STARRED, story.deeper)
    [starred] = (await client.get("/v1/records?starred=true"))["records"]
    assert (starred["id"], starred["starred"]) == (format_id(story.deeper), True)
    other = story.notebook.task("other")
    story.notebook.run(other, 1.0)
    assert [(await client.get("/v1/best"))["task"]["name"], (await client.get("/v1/top"))["other_tasks"]] == [
        "other",
        ["grammar"],
    ]
    choose(node.choices, Choice.ARCHIVED, other)
    best = await client.get("/v1/best")
    assert (best["task"]["name"], best["other_tasks"]) == ("grammar", [])
    assert (await client.get("/v1/best?task=other"))["task"]["name"] == "other"


async def test_credit_is_of_all_tasks_or_of_one(client, story):
    other = story.notebook.task("other")
    story.notebook.run(other, 1.0)
    runs = [
        sum(row["runs"] for row in (await client.get(f"/v1/credit{task}"))["participants"])
        for task in ("", "?task=other")
    ]
    assert runs == [5, 1]


async def test_a_text_that_is_too_long_is_refused_in_words(client):
    refused = await client.post("/v1/name", {"name": "x" * 25}, 400)
    assert (refused["error"], refused["hint"]) == ("name is too long", "24 characters at most")


async def test_what_is_written_after_the_start_is_read(client, story):
    run = story.notebook.run(story.task, 0.9, source="x = 1\n")
    assert (await client.get("/v1/best"))["run"]["id"] == format_id(run)


async def test_records_are_listed_and_paged(client, story):
    first = await client.get("/v1/records?limit=2")
    assert [row["id"] for row in first["records"]] == [format_id(story.note), format_id(story.crashed)]
    rest = await client.get(f"/v1/records?before={first['records'][-1]['id']}")
    assert [row["kind"] for row in rest["records"]] == ["run", "run", "run", "task"]
    await client.get("/v1/records?kind=poem", 400)
    mine = await client.get("/v1/records?author=me&kind=run")
    assert len(mine["records"]) == 3
    theirs = await client.get(f"/v1/records?author={story.notebook.other.public.hex()}")
    assert [row["id"] for row in theirs["records"]] == [format_id(story.faster)]


@pytest.mark.parametrize("reference", ["@", "@~0", "whole", "short"])
async def test_a_run_is_named_by_reference_or_id(client, story, reference):
    name = {"whole": format_id(story.faster), "short": short_id(story.faster)}.get(reference, reference)
    for path in ("/v1/runs/", "/v1/records/"):
        assert (await client.get(path + name))["run"]["run"]["title"] == "LR 0.1 → 0.2"


async def test_source_log_lineage_and_difference_of_a_run(client, story):
    assert await client.get("/v1/runs/@~2/source") == BASELINE
    assert await client.get("/v1/runs/@~1/log") == "step 1\n"
    lineage = await client.get("/v1/runs/@/lineage")
    assert [step["run"]["id"] for step in lineage["steps"]] == [
        format_id(run) for run in (story.baseline, story.deeper, story.faster)
    ]
    difference = await client.get("/v1/diff?old=@~1&new=@")
    assert difference["change"] == {"LR": [0.1, 0.2]}
    assert "+LR = 0.2" in difference["diff"]


async def test_what_others_wrote_is_text_that_no_browser_runs(client):
    async with client.session.get("http://localhost/v1/runs/@/source") as response:
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Security-Policy"] == "default-src 'none'"


async def test_answers_hold_nothing_that_steers_a_terminal_and_say_it_all_the_same(client, story):
    run = format_id(story.notebook.run(story.task, 0.5, source="x = 3\n", title=NASTY))
    for address in ("/v1/records", "/v1/top", "/v1/best", "/v1/status", f"/v1/runs/{run}", f"/v1/runs/{run}/lineage"):
        async with client.session.get(f"http://localhost{address}") as response:
            assert response.status == 200
            assert not harms(await response.text()), address
    assert (await client.get(f"/v1/runs/{run}"))["run"]["run"]["title"] == NASTY


async def test_the_node_is_asked_to_act(client, node):
    assert (await client.post("/v1/work", {"runs": 3}))["state"] == "working"
    assert (await client.post("/v1/pause"))["state"] == "paused"
    assert (await client.post("/v1/pause", {"until_ms": 5}))["state"] == "paused"
    await client.post("/v1/resume")
    await client.post("/v1/finish")
    assert (await client.post("/v1/proposals", {"program": "x = 1\n", "seeds": 2}))["proposed"] == ["proposal-1"]
    assert (await client.get("/v1/proposals"))["queue"][0]["name"] == "proposal-1"
    assert (await client.post("/v1/proposals/drop", {"name": "proposal-1"}))["queue"] == []
    assert (await client.post("/v1/stop"))["status"] == "stopping"
    assert node.requests == [
        ("working", WorkRequest(runs=3)),
        ("paused", PauseRequest()),
        ("paused", PauseRequest(until_ms=5)),
        ("idle", None),
        ("finishing", None),
        ("proposed", ProposeRequest(program="x = 1\n", seeds=2)),
        ("dropped", "proposal-1"),
        ("stopping", None),
    ]


async def test_probes_tell_alive_from_ready(client, node):
    assert await client.get("/healthz") == {"status": "alive", "reason": "", "conditions": []}
    assert (await client.get("/readyz"))["status"] == "ready"
    node.readiness = msgspec.structs.replace(node.readiness, status="not ready", reason="no disk")
    assert await client.get("/readyz", 503) == {"status": "not ready", "reason": "no disk", "conditions": []}
    assert (await client.get("/healthz"))["status"] == "alive"


async def test_metrics_are_in_the_format_that_prometheus_reads(client):
    from prometheus_client.parser import text_string_to_metric_families

    text = await client.get("/metrics")
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["autoresearch_records",] == 6
    assert samples["autoresearch_runs", "grammar", "ok"] == 3
    assert samples["autoresearch_runs", "crashed", "grammar"] == 1
    assert samples["autoresearch_best_reported", "grammar", "minimize", "val_bpb"] == 1.0
    assert samples["autoresearch_work_state", "idle"] == 1
    assert samples["autoresearch_work_state", "working"] == 0
    assert samples["process_resident_memory_bytes",] > 0


@pytest.mark.parametrize(
    ("path", "status", "exit_status"),
    [
        ("/v1/nothing", 404, 4),
        ("/v1/runs/", 404, 4),
        ("/v1/runs/abcdefg", 404, 4),
        ("/v1/runs/@~9", 404, 4),
        ("/v1/runs/@~2/log", 404, 4),
        ("/v1/best?task=unknown", 404, 4),
        ("/v1/best?task=%ff%00%0a%1b[2J", 404, 4),
        ("/v1/records/bafyrei", 409, 5),
        ("/v1/records/@@", 400, 2),
        ("/v1/runs/%00", 400, 2),
        ("/v1/runs/..%2f..%2fetc%2fpasswd/source", 400, 2),
        ("/v1/runs/" + "a" * 200, 400, 2),
        ("/v1/top?limit=0", 400, 2),
        ("/v1/top?limit=201", 400, 2),
        ("/v1/top?limit=x", 400, 2),
        ("/v1/top?limit=1&limit=2", 400, 2),
        ("/v1/top?unknown=1", 400, 2),
        ("/v1/runs/@?id=x", 400, 2),
        ("/v1/diff?old=@", 400, 2),
        ("/v1/records?author=xyz", 400, 2),
        ("/v1/records?author=abcd", 400, 2),
        ("/v1/events?since=-1", 400, 2),
        ("/v1/work", 405, 2),
    ],
)
async def test_a_wrong_question_is_answered_with_a_sentence(client, path, status, exit_status):
    failure = await client.get(path, status)
    assert failure["error"]
    assert failure["exit_status"] == exit_status


async def test_a_record_that_is_no_run_is_no_run(client, story):
    failure = await client.get(f"/v1/runs/{short_id(story.note)}", 400)
    assert "is a note" in failure["error"]
    assert (await client.get(f"/v1/records/{short_id(story.note)}"))["run"] is None


async def test_an_ambiguous_beginning_lists_what_it_can_mean(client, story):
    failure = await client.get("/v1/records/bafyrei", 409)
    assert short_id(story.note) in failure["hint"]


async def test_a_refusal_keeps_its_sentence_and_its_hint(client):
    failure = await client.post("/v1/work", {"task": "refused"}, 409)
    assert failure == {"error": "the disk is full", "hint": "free some", "exit_status": 6}


async def test_a_defect_shows_nothing_of_its_insides(client, node, capsys):
    failure = await client.post("/v1/work", {"task": "broken"}, 500)
    assert failure["exit_status"] == 1
    assert "secret" not in str(failure)
    assert (await client.post("/v1/work"))["state"] == "working"
    assert "secret" in capsys.readouterr().out


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"runs": "3"}',
        b'{"runs": 1.5}',
        b'{"run": 3}',
        b'{"runs": 99999999999999999999999}',
        b'{"task": "\\ud800"}',
        b'{"task": "a", "task": ',
        b"[" * 60_000,
        b'{"task":' * 8_000,
    ],
)
async def test_garbage_is_refused_and_changes_nothing(client, node, body):
    failure = await client.ask("POST", "/v1/work", 400, data=body)
    assert failure["exit_status"] == 2
    assert node.requests == []


async def test_a_huge_body_is_refused_before_it_is_read(client, node):
    failure = await client.ask("POST", "/v1/work", 413, data=b"x" * (MAXIMUM_BODY_BYTES + 1))
    assert failure["exit_status"] == 2
    assert node.requests == []


async def test_a_compressed_bomb_is_not_unpacked(client, node):
    import gzip

    bomb = gzip.compress(b" " * 30_000_000)
    assert len(bomb) < MAXIMUM_BODY_BYTES
    await client.ask("POST", "/v1/work", 400, data=bomb, headers={"Content-Encoding": "gzip"})
    assert node.requests == []


async def test_a_slow_question_does_not_keep_the_others_waiting(client, monkeypatch):
    import threading

    arrived, may_go_on = threading.Event(), threading.Event()

    def slow(*_, **__):
        arrived.set()
        assert may_go_on.wait(30)
        return ""

    monkeypatch.setattr("autoresearch.ask.runs.diffs.unified_diff", slow)
    waiting = asyncio.create_task(client.get("/v1/diff?old=@~1&new=@"))
    await asyncio.to_thread(arrived.wait, 30)
    assert (await client.get("/v1/status"))["state"] == "idle"
    assert (await client.get("/v1/best"))["reported"]
    assert not waiting.done()
    may_go_on.set()
    assert (await waiting)["diff"] == ""


async def test_evidence_is_listed_checked_and_measured_once_more(client, node, story):
    lucky = story.notebook.run(story.task, 0.5, source="lucky = 1\n")
    assert (await client.get("/v1/evidence"))["evidence"] == []
    signer, notebook = story.notebook.other, story.notebook
    body = msgspec.structs.replace(notebook.log.records.get(lucky).body, seed=7)
    chosen = notebook.append("run", body, by=signer)
    listed = (await client.get(f"/v1/evidence?kind=seed&participant={signer.public.hex()[:8]}"))["evidence"]
    assert [(row["id"], row["follows"]) for row in listed] == [(format_id(chosen), "banned")]
    assert (await client.get(f"/v1/evidence/{short_id(chosen)}"))["holds"] is True
    assert (await client.get(f"/v1/evidence/{short_id(lucky)}?kind=seed"))["holds"] is False
    await client.get(f"/v1/evidence/{short_id(lucky)}?kind=poem", 400)
    await client.get(f"/v1/evidence/{short_id(lucky)}?kind=value", 404)
    assert await client.post(f"/v1/evidence/{short_id(chosen)}/check") == {
        "schema": "autoresearch.run-accepted/1",
        "assignment": "evidence-1",
        "note": "",
    }
    assert node.requests == [("check evidence", OneEvidence(id=short_id(chosen)))]


async def test_a_tasks_name_makes_no_line_of_its_own_among_the_metrics(client, node, monkeypatch):
    status = node.status()
    task = msgspec.structs.replace(status.task, name=NASTY, metric=NASTY)
    monkeypatch.setattr(node, "status", lambda: msgspec.structs.replace(status, task=task))
    text = await client.get("/metrics")
    assert not harms(text)
    assert "\ufffd[5;41m" in text
    assert not any(line.startswith(FORGED) for line in text.splitlines())
