"""Pages of a real daemon that runs a real task: what happens appears by itself, and a lost daemon is said."""

from __future__ import annotations

import pytest

from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.toy import TRAIN, write_toy_task

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon(tmp_path):
    made = Daemon(tmp_path / "home", {"AUTORESEARCH_API_PORT": "18671"}).start()
    yield made
    if made.process.poll() is None:
        made.stop()


async def test_a_new_best_appears_in_the_head_and_the_chart_and_a_lost_daemon_is_said(browser, daemon, tmp_path):
    task = write_toy_task(tmp_path / "task")
    better = TRAIN.replace("0.9", "0.31")
    daemon.post("/v1/work", task=str(task), runs=1)
    wait_for(lambda: daemon.status().state == "idle")

    def hero(page, value):
        page.locator("#sum .hero b", has_text=value).wait_for(timeout=120_000)

    def act(page):
        page.locator("#chart canvas").wait_for()
        hero(page, "0.6100")
        rows = page.locator("#results tbody").inner_text()
        answer = daemon.post("/v1/proposals", task=str(task), program=better, hypothesis="nearer")
        assert answer.status_code == 200, answer.text
        hero(page, "0.2501")
        page.locator("#fresh", has_text="1 new run, show").wait_for()
        came = {
            "before it": page.locator("#sum .was").inner_text(),
            "said": page.locator("#say").inner_text(),
            "counted": page.locator("#key .num").all_inner_texts(),
            "rows as they were": page.locator("#results tbody").inner_text() == rows,
        }
        page.locator("#fresh").click()
        page.locator("#results tbody tr", has_text="0.2501").wait_for()

        daemon.stop()
        page.locator("#gone").wait_for(timeout=60_000)
        page.locator("#q").fill("nearer")
        page.locator("#results [role=status]", has_text="not filtered").wait_for()
        daemon.start()
        page.wait_for_url("**/*q=nearer*", timeout=120_000)
        page.locator("#results [role=status]", has_text="1 run found").wait_for()
        return came

    seen = await browser.visit(daemon.status().pages, act)
    assert seen.answer == {
        "before it": "new; before it 0.6100",
        "said": "New best: 0.2501",
        "counted": ["2"],
        "rows as they were": True,
    }
