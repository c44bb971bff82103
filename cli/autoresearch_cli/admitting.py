"""What the ``network`` commands do about voters: ask, admit, dismiss, and invite with a token."""

from __future__ import annotations

from contextlib import suppress

from autoresearch.answers import named_participant, voters_answer
from autoresearch.api import AdmitRequest, VotersAnswer, VoterView, operations
from autoresearch.errors import DaemonNotRunning, NotFound, Refused
from autoresearch.identity import load_identity
from autoresearch.networks import Invitation, Invitations, Manifest
from autoresearch.notebook import Notebook
from autoresearch.records import Network
from autoresearch.views import spent_uses
from autoresearch_cli import here
from autoresearch_cli.models import InvitationRow
from autoresearch_cli.reading import open_notebook


def voters() -> VotersAnswer:
    """Who counts in this network, from the daemon where one of this network runs, else from the log."""
    network = here.manifest().network.id.hex()
    with suppress(DaemonNotRunning, NotFound):  # NotFound: a daemon of an earlier version
        answer = here.client().ask(operations.VOTERS)
        if answer.network == network:
            return answer
    with open_notebook() as notebook:
        return voters_answer(notebook.log, notebook.me, here.now_ms())


def decide(who: str, *, admits: bool, reason: str) -> VotersAnswer:
    """As a founder, count a participant from now on, or no longer; through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        request = AdmitRequest(participant=who, admits=admits, reason=reason)
        return here.client().ask(operations.ADMIT, request)
    with Notebook(here.paths()) as notebook:
        participant = named_participant(notebook.log, who, author=notebook.author)
        notebook.publish_admission(participant, here.now_ms(), admits=admits, reason=reason)
        return voters_answer(notebook.log, notebook.author, here.now_ms())


def voter_named(who: str) -> VoterView | None:
    """The participant that is meant, if it counts."""
    with open_notebook() as notebook:
        key = named_participant(notebook.log, who, author=notebook.me).hex()
    return next((voter for voter in voters().voters if voter.participant.key == key), None)


def is_founder(manifest: Manifest) -> bool:
    """Whether this participant is a founder of the network."""
    with suppress(NotFound):
        return load_identity(here.paths().keys).root.public in manifest.trust.founders
    return False


def admits_by_default(manifest: Manifest) -> bool:
    """Whether a plain invite admits: a founder's, where no attestors decide about voters."""
    return is_founder(manifest) and not manifest.trust.attestors


def make_token(manifest: Manifest, *, uses: int, days: int) -> tuple[InvitationRow, bytes]:
    """Note an invite that admits; returns it with the seed of its token. Raises UsageError, Refused."""
    if not is_founder(manifest):
        raise Refused(
            "only a founder's invite admits, and you are none of this network's",
            hint="autoresearch network invite --no-admit; a founder can admit others: autoresearch network admit WHO",
        )
    made, seed = invitations(manifest.network).make(here.now_ms(), uses=uses, days=days)
    return row(made, []), seed


def invitations(network: Network) -> Invitations:
    """The invites of this machine to the network."""
    return Invitations(here.paths().manifest, network)


def rows(given: list[Invitation]) -> list[InvitationRow]:
    """Invites with whom they admitted, by the log here."""
    with open_notebook() as notebook:
        root = notebook.me and load_identity(here.paths().keys).root.public
        spent = spent_uses(notebook.log, root) if root else {}
    return [row(one, sorted(spent.get(one.token, ()))) for one in given]


def row(one: Invitation, admitted: list[bytes]) -> InvitationRow:
    """One invite, and how it stands by the clock here."""
    is_used = len(admitted) >= one.uses
    state = "ended" if one.revoked else "used up" if is_used else "open" if one.is_open(here.now_ms()) else "expired"
    return InvitationRow(
        token=one.token.hex(),
        made_ms=one.made_ms,
        expires_ms=one.expires_ms,
        uses=one.uses,
        state=state,
        admitted=[root.hex() for root in admitted],
    )


def end_invite_of(voter: VoterView | None) -> bool:
    """End the invite that brought a participant, if it was made here and still admits; whether it did."""
    if voter is None or not voter.token:
        return False
    given = invitations(here.manifest().network)
    found = [one for one in given.given() if one.token.hex() == voter.token and row(one, []).state == "open"]
    for one in found:
        given.revoke(one)
    return any(one.uses > 1 for one in found)
