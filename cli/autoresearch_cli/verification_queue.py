"""Which runs wait for verifiers: from the log on this machine, whether a daemon runs or not."""

from __future__ import annotations

from autoresearch.answers import verifications_answer
from autoresearch_cli import here
from autoresearch_cli.reading import open_notebook, own_device
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged
from autoresearch_cli.rendering.verifications import print_awaited


def list_awaited(task: str, *, json: bool) -> None:
    """The runs that wait for verifiers, and what this node has to do with each."""
    own = own_device()
    device, seed = (own.public, bytes(own.key)) if own else (None, None)
    with open_notebook(task) as notebook:
        found, now_ms = notebook.task(), here.now_ms()
        answer = verifications_answer(notebook.log, found, device=device, seed=seed, now_ms=now_ms)
    if json:
        print_json(answer)
        return
    with paged():
        print_awaited(answer, now_ms=now_ms)
    if not answer.waiting:
        say(f"no run of {answer.task} waits for a verifier")
    if answer.note:
        say(answer.note)
    say("→ autoresearch verify ID, autoresearch work --only verify")
