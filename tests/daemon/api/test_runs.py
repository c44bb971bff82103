"""Runs as a table, a chart and a lineage, over a real socket."""

from autoresearch.record.encoding import format_id, short_id


def ids(answer):
    return [row["id"] for row in answer["runs"]]


async def test_a_page_tells_each_run(client, story):
    answer = await client.get("/v1/runs")
    assert ids(answer) == [format_id(run) for run in (story.crashed, story.faster, story.deeper, story.baseline)]
    crashed, faster, deeper, baseline = answer["runs"]
    assert [row["mark"] for row in answer["runs"]] == ["failed", "leading", "leading", "leading"]
    assert (faster["number"], round(faster["gain_reported"], 6), faster["better"], faster["parent"]) == (
        3,
        0.05,
        True,
        deeper["id"],
    )
    assert (crashed["status"], crashed["reason"]) == ("crashed", "division by zero")
    assert crashed["reported"] is None
    assert [change["name"] for change in deeper["change"]] == ["DEPTH"]
    assert baseline["children"] == 1
    assert answer["counts"] == {"failed": 1, "leading": 3}
    assert (answer["total"], answer["page"], answer["pages"], answer["task"]["noise"]) == (4, 1, 1, 0.02)


async def test_each_filter_finds_its_runs_and_counts_are_without_marks(client, story):
    notebook = story.notebook
    fourth = notebook.run(
        story.task, 1.3, parent=story.faster, source="x", title="wider still", by=notebook.other, device="one card"
    )
    names = {run: format_id(run) for run in (story.baseline, story.deeper, story.faster, story.crashed, fourth)}

    async def matches(query):
        return set(ids(await client.get(f"/v1/runs?{query}")))

    assert await matches("state=failed") == {names[story.crashed]}
    assert await matches("state=failed,reported") == {names[story.crashed], names[fourth]}
    assert await matches(f"by={notebook.other.public.hex()[:8]}") == {names[story.faster], names[fourth]}
    assert await matches("by=me") == {names[story.baseline], names[story.deeper], names[story.crashed]}
    # The crashed run and the fourth state no genome.
    assert await matches("has=DEPTH") == {names[story.deeper]}
    assert await matches("q=wider") == {names[fourth]}
    assert await matches(f"q={short_id(story.deeper)}") == {names[story.deeper]}
    assert await matches("q=%22%27%28") == set()
    assert await matches("hardware=one%20card") == {names[fourth]}
    answer = await client.get("/v1/runs?state=failed&q=divide")
    assert (answer["counts"], answer["total"]) == ({"failed": 1}, 1)
    refused = await client.ask("GET", "/v1/runs?state=wonderful", 400)
    assert "wonderful" in refused["error"]
    assert "key" in (await client.ask("GET", "/v1/runs?by=nobody", 400))["error"]


async def test_each_order_and_its_reverse(client, story):
    by_time = [format_id(run) for run in (story.baseline, story.deeper, story.faster, story.crashed)]
    for sort, order in (("number", by_time), ("time", by_time), ("-number", by_time[::-1])):
        assert ids(await client.get(f"/v1/runs?sort={sort}")) == order
    values = [format_id(run) for run in (story.faster, story.deeper, story.baseline, story.crashed)]
    assert ids(await client.get("/v1/runs?sort=value")) == values
    assert ids(await client.get("/v1/runs?sort=-value")) == [*values[2::-1], values[3]]
    changes = [format_id(run) for run in (story.deeper, story.faster)]
    assert ids(await client.get("/v1/runs?sort=change"))[:2] == changes
    assert ids(await client.get("/v1/runs?sort=-change"))[:2] == changes[::-1]
    refused = await client.get("/v1/runs?sort=-beauty", 400)
    assert refused["error"] == "runs have no order “-beauty”"
    assert "number, time, value, change, cost" in refused["hint"]


async def test_pages_stay_while_runs_arrive(client, story):
    first = await client.get("/v1/runs?size=2")
    for number in range(3):
        story.notebook.run(story.task, 1.2, source=f"{number}")
    second = await client.get(f"/v1/runs?size=2&page=2&until={first['until']}")
    assert [*ids(first), *ids(second)] == [
        format_id(run) for run in (story.crashed, story.faster, story.deeper, story.baseline)
    ]
    assert (second["total"], second["pages"]) == (4, 2)
    assert (await client.get("/v1/runs?size=2"))["total"] == 7
    beyond = await client.get("/v1/runs?size=2&page=99")
    assert (beyond["page"], len(beyond["runs"])) == (4, 1)


async def test_the_chart_has_steps_dots_and_failures(client, story):
    story.notebook.run(story.task, 1.9, source="worse")
    chart = await client.get("/v1/progress")
    assert [mark["reported"] for mark in chart["marks"]] == [1.25, 1.05, 1.0]
    assert [round(mark.get("step", 0.0), 6) for mark in chart["marks"]] == [0.0, 0.2, 0.05]
    assert (chart["dots"]["reported"], chart["failures"]["number"]) == ([1.9], [4])
    assert (chart["matching"], chart["total"], chart["binned"]) == (5, 5, False)
    zoomed = await client.get("/v1/progress?since=2&to=3")
    assert [mark["number"] for mark in zoomed["marks"]] == [2, 3]
    filtered = await client.get("/v1/progress?state=failed")
    assert (filtered["marks"], filtered["matching"], filtered["total"]) == ([], 1, 5)


async def test_a_run_with_what_stands_around_it(client, story):
    again = story.notebook.run(story.task, 1.06, source="again", parent=story.baseline)
    context = await client.get(f"/v1/runs/{short_id(story.deeper)}/context")
    assert context["parent"]["id"] == format_id(story.baseline)
    assert [row["id"] for row in context["children"]] == [format_id(story.faster)]
    path = await client.get(f"/v1/runs/{short_id(story.faster)}/path")
    assert [step["row"]["id"] for step in path["steps"]] == [
        format_id(run) for run in (story.baseline, story.deeper, story.faster)
    ]
    assert [row["id"] for row in path["steps"][0]["branch_runs"]] == [format_id(again)]
    assert path["steps"][2]["branches"]["counts"] == {"failed": 1}
    assert round(path["steps"][1]["row"]["gain_reported"], 6) == 0.2
    await client.ask("GET", "/v1/runs/nothing/context", 400)


async def test_who_has_runs(client, story):
    runners = (await client.get("/v1/runners"))["runners"]
    assert [runner["runs"] for runner in runners] == [3, 1]


async def test_the_runs_of_a_participant_on_all_tasks(client, story):
    notebook = story.notebook
    other = notebook.task("other")
    elsewhere = notebook.run(other, 7.0, source="elsewhere")
    answer = await client.get("/v1/participants/me/runs?limit=2")
    assert (answer["newest"][0]["id"], len(answer["newest"])) == (format_id(elsewhere), 2)
    assert answer["total"] == 4
    assert {(row["task"], row["reported"]) for row in answer["best"]} >= {("other", 7.0)}
    assert len({row["task"] for row in answer["best"]}) == len(answer["best"]) == 2
    assert len({row["task"] for row in answer["newest"]}) == 2
    key = notebook.mine.public.hex()
    assert (await client.get(f"/v1/participants/{key[:8]}/runs?limit=2"))["newest"] == answer["newest"]
    nobody = await client.get("/v1/participants/ffffffffff/runs")
    assert (nobody["newest"], nobody["best"], nobody["total"]) == ([], [], 0)
    await client.get("/v1/participants/nonsense/runs", 400)


async def test_a_star_is_set_and_taken(client, story):
    name = short_id(story.deeper)
    assert (await client.post("/v1/stars", {"id": name}))["changed"]
    assert not (await client.post("/v1/stars", {"id": name}))["changed"]
    assert [row["starred"] for row in (await client.get("/v1/runs?q=" + name))["runs"]] == [True]
    assert (await client.post("/v1/stars", {"id": name, "starred": False}))["changed"]


async def test_tasks_without_runs_and_with_failures_alone(client, story):
    notebook = story.notebook
    empty, failing = notebook.task("empty"), notebook.task("failing")
    notebook.run(failing, status="crashed", reason="no")
    for address in ("/v1/runs", "/v1/progress", "/v1/runners"):
        await client.get(f"{address}?task=empty")
    answer = await client.get("/v1/runs?task=empty&sort=value&has=a&q=b&by=me")
    assert (answer["runs"], answer["total"], answer["pages"], answer["counts"]) == ([], 0, 1, {})
    chart = await client.get("/v1/progress?task=failing")
    assert (chart["marks"], chart["dots"]["number"], chart["failures"]["number"]) == ([], [], [1])
    assert (await client.get("/v1/runs?task=failing"))["counts"] == {"failed": 1}
    assert empty != failing
