"""Pages of a real daemon that runs a real task: what happens appears by itself, and a lost daemon is said."""

from __future__ import annotations

import socket

import pytest

from autoresearch.record.record import Network
from autoresearch.trust.invite import write_invite
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.roster import Trust
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.toy import TRAIN, write_toy_task
from tests.face.pages.browser import NARROW, shoot
from tests.face.pages.test_in_a_browser import faults

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:  # tests beside this one have daemons too
        port = free.getsockname()[1]
    made = Daemon(tmp_path / "home", {"AUTORESEARCH_API_PORT": str(port)}).start()
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


PRINTING = """
import time

import prepare

X = 0.9  # float [0.0, 1.0]
for step in range(1, 3000):
    print(f"step {step} loss {5 / step:.4f}", flush=True)
    time.sleep(0.2)
prepare.report(X)
"""


async def test_the_page_of_a_node_at_work_shows_its_runs_and_its_controls_act_by_keyboard(browser, daemon, tmp_path):
    daemon.post("/v1/work", task=str(write_toy_task(tmp_path / "task", train=PRINTING)))

    def settings(name):
        return {limit.setting: limit.value for limit in daemon.status().limits}[name]

    def act(page):
        page.locator("#now .trace polyline").wait_for(timeout=120_000)
        lines = page.locator("#now .printed").inner_text().strip().splitlines()
        page.locator("#machine .meter").first.wait_for()
        wide = faults(page), page.evaluate("document.documentElement.scrollWidth > innerWidth")
        shoot(page, "node-at-work-wide")

        page.locator("#set-workers").focus()
        page.keyboard.press("ArrowRight")
        command = page.locator("#shares .cmd code").first.inner_text()
        page.locator("#now .worker").nth(1).wait_for(timeout=120_000)
        page.locator("#set-share").focus()
        page.keyboard.press("ArrowRight")
        page.locator("#facts dd", has_text="25%").first.wait_for()
        slid = page.evaluate("document.activeElement.id")

        page.set_viewport_size({"width": NARROW, "height": 900})
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        narrow = faults(page), page.evaluate("document.documentElement.scrollWidth > innerWidth")
        shoot(page, "node-at-work-narrow")

        page.locator("#act").focus()
        page.keyboard.press("Enter")
        page.locator("h1", has_text="Paused").wait_for()
        page.locator("#act", has_text="Resume").wait_for()
        pressed = page.evaluate("document.activeElement.textContent")
        return lines[-1][:5], command, slid, pressed, page.locator(".acts .done").inner_text(), wide, narrow

    token = daemon.paths.api_token.read_text().strip()
    seen = await browser.visit(f"{daemon.status().pages}node#token={token}", act, width=1280)
    assert seen.complaints == []
    assert seen.answer == (
        "step ",
        "autoresearch node config set work.workers 2",
        "set-share",
        "Resume",
        "It is paused; its runs are stopped.",
        ([], False),
        ([], False),
    )
    assert (settings("work.workers"), settings("work.verify_share")) == ("2", "25%")


GUESSING = """
import time

RATE = 0.5  # float [0.0, 1.0]
print("loss:", (RATE - 0.3) ** 2)
"""


async def test_an_empty_page_joins_a_network_and_makes_a_folder_a_task(browser, daemon, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.py").write_text(GUESSING)
    invite = write_invite(NetworkManifest(Network(name="tea", nonce=bytes(16)), Trust()))

    def act(page):
        wide = faults(page), page.evaluate("document.documentElement.scrollWidth > innerWidth")
        shoot(page, "begin-wide")
        page.set_viewport_size({"width": NARROW, "height": 900})
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        narrow = faults(page), page.evaluate("document.documentElement.scrollWidth > innerWidth")
        shoot(page, "begin-narrow")

        page.get_by_label("Invite").fill("nonsense")
        page.get_by_role("button", name="Join").press("Enter")
        refused = page.locator(".failure:visible").inner_text()
        page.get_by_label("Invite").fill(invite)
        page.get_by_role("button", name="Join").press("Enter")
        page.locator("#did", has_text="tea").wait_for(timeout=120_000)

        page.get_by_label("Folder").fill(str(tmp_path / "nowhere"))
        page.get_by_role("button", name="Make it a task").press("Enter")
        page.locator(".failure:visible", has_text="there is no folder").wait_for()
        page.get_by_label("Folder").fill(str(tmp_path / "mine"))
        page.get_by_role("button", name="Make it a task").press("Enter")
        page.locator(".done", has_text="is a task now: loss, minimize").wait_for(timeout=120_000)
        page.locator("#chart canvas").wait_for(timeout=120_000)
        return refused, wide, narrow

    token = daemon.paths.api_token.read_text().strip()
    seen = await browser.visit(f"{daemon.status().pages}#token={token}", act, width=1280)
    refused, *looks = seen.answer
    assert "is not a file, an invite or an address" in refused
    assert looks == [([], False), ([], False)]
    assert daemon.status().network == "tea"
    assert daemon.status().task.metric == "loss"
