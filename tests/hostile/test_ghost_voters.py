"""Keys that are no participant's: a founder can neither count them nor dismiss a participant by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.people.voters import named_participant, voters_answer
from autoresearch.errors import AutoresearchError, Refused
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.participants import invited
from autoresearch.paths import Paths
from autoresearch.record.kinds import Admission, Identity
from autoresearch.record.record import Network
from autoresearch.trust.identity import create_identity
from autoresearch.trust.invite import Invitations, join_with
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from tests.record.making import NOW_MS, key

NETWORK = Network(name="lab", nonce=bytes(16))
ANN, ANNS_ROOT, NOBODY = key(1), key(101), key(9)


@pytest.fixture
def founder(tmp_path: Path) -> Iterator[Notebook]:
    """The founder's notebook, to which ann's records came."""
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path)})
    paths.create()
    root = create_identity(paths.keys).root.public
    save_manifest(paths.manifest, NetworkManifest(NETWORK, Trust(founders=frozenset({root}))))
    with Notebook(paths) as notebook:
        notebook.publish_identity(NOW_MS)
        delegates = Identity(action="delegate", root=ANNS_ROOT.public, device=ANN.public)
        notebook.log.writer.append(ANNS_ROOT, "identity", delegates, now_ms=NOW_MS)
        agrees = Identity(action="profile", root=ANNS_ROOT.public, name="ann")
        notebook.log.writer.append(ANN, "identity", agrees, now_ms=NOW_MS)
        yield notebook


def counting(notebook: Notebook) -> frozenset[bytes]:
    return roster_of(notebook.log).participants - notebook.manifest.trust.founders


def decide(notebook: Notebook, who: str, *, admits: bool) -> None:
    """What ``network admit`` and ``network dismiss`` do."""
    participant = named_participant(notebook.log, who, author=notebook.author)
    notebook.publish_admission(participant, NOW_MS + 1000, admits=admits)


@pytest.mark.parametrize("admits", [True, False])
@pytest.mark.parametrize("digits", [8, 64])
def test_a_device_key_is_refused_and_the_participant_is_named(founder: Notebook, admits: bool, digits: int) -> None:
    if not admits:
        decide(founder, "ann", admits=True)
    before = counting(founder)
    with pytest.raises(Refused, match="is a device key") as raised:
        decide(founder, ANN.public.hex()[:digits], admits=admits)
    assert ANNS_ROOT.public.hex()[:8] in raised.value.hint
    with pytest.raises(Refused, match="is a device key"):
        founder.publish_admission(ANN.public, NOW_MS + 1000, admits=admits)
    assert counting(founder) == before


@pytest.mark.parametrize("admits", [True, False])
def test_a_key_that_no_record_names_is_refused(founder: Notebook, admits: bool) -> None:
    with pytest.raises(AutoresearchError, match="has signed anything here"):
        decide(founder, NOBODY.public.hex(), admits=admits)
    with pytest.raises(Refused, match="no record here names a participant"):
        founder.publish_admission(NOBODY.public, NOW_MS + 1000, admits=admits)
    assert counting(founder) == frozenset()


def test_a_ghost_that_an_earlier_version_admitted_is_dismissed_and_nobody_else(founder: Notebook) -> None:
    decide(founder, "ann", admits=True)
    ghost = Admission(action="admit", participant=ANN.public)
    founder.log.writer.append(founder.identity.device, "admission", ghost, now_ms=NOW_MS + 2000)
    assert counting(founder) == {ANNS_ROOT.public, ANN.public}
    decide(founder, ANN.public.hex()[:8], admits=False)
    assert counting(founder) == {ANNS_ROOT.public}
    with pytest.raises(Refused, match="is a device key"):
        decide(founder, ANN.public.hex()[:8], admits=True)


def test_an_invite_admits_no_device_key(founder: Notebook) -> None:
    invitations = Invitations(founder.paths.manifest, NETWORK)
    invitation, seed = invitations.make(NOW_MS, uses=5, days=7)
    for participant in (ANN.public, ANNS_ROOT.public):
        founder.log.writer.append(ANN, "join", join_with(seed, NETWORK.id, participant), now_ms=NOW_MS)
    due = invited(founder.log, [invitation], founder.identity.root.public)
    assert [join.participant for join in due] == [ANNS_ROOT.public]


def test_a_participant_is_shown_its_root_key_before_any_record_has_it(founder: Notebook) -> None:
    assert voters_answer(founder.log, founder.identity.root.public, NOW_MS).way == ""
    way = voters_answer(founder.log, NOBODY.public, NOW_MS).way
    assert way == f"a founder admits you: autoresearch network admit {NOBODY.public.hex()}"
