"""The messages stay what they are, byte for byte: other versions and other programs speak them."""

from pathlib import Path

import pytest

from autoresearch.log.sync.index import LOWEST, KeyIndex, session_salt, short_id
from autoresearch.log.sync.reconciliation import Responder
from tests.log.sync.driving import NETWORK
from tests.log.sync.transcripts import CASES, FOLDER, GIVEN, SALT, all_transcripts


@pytest.mark.parametrize("name", all_transcripts())
def test_the_messages_are_those_that_are_stored(name):
    assert all_transcripts()[name] == (FOLDER / f"{name}.txt").read_text().splitlines()


@pytest.mark.parametrize("name", CASES)
def test_a_responder_answers_the_stored_requests_with_the_stored_replies(name):
    lines = (FOLDER / f"{name}.txt").read_text().splitlines()
    answers = Responder(KeyIndex(sorted(CASES[name][1])), SALT, LOWEST)
    for request, reply in zip(lines[::2], lines[1::2], strict=True):
        assert answers.answer(bytes.fromhex(request[2:])).hex() == reply[2:]


def test_the_salt_and_the_short_ids_are_those_of_the_specification():
    salt = session_salt(b"o" * 16, b"l" * 16)
    assert salt == SALT
    assert GIVEN["session"]["network"] == NETWORK.id.hex()
    assert salt.hex() == "2d87f63427477f3e46a795aa26c33c67df4dd56e8fca1411610120607686adab"
    assert short_id(bytes(32), salt).hex() == "930e2e9a54c35ce9"
    assert KeyIndex().fingerprint(0, 0, salt).hex() == "d4423e7d1da87e569877ebd4ff151a78"
    index = KeyIndex([(1_800_000_000_000, bytes(32))])
    assert index.fingerprint(0, 1, salt).hex() == "8cd0c7bf1952e7d3ab7cc372e3e6727a"


def test_the_specification_shows_these_vectors():
    text = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    rows = [SALT.hex(), short_id(bytes(32), SALT).hex(), KeyIndex().fingerprint(0, 0, SALT).hex()]
    rows += [line[2:] for line in (FOLDER / "three-against-two.txt").read_text().splitlines()]
    assert all(vector in text for vector in rows)
