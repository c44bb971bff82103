"""Which runs hold no text of others: their own, and whose bases are among their ancestors' programs."""

import hashlib

from autoresearch.log.standing.context import is_own_run
from tests.log.standing.village import AUTHOR, DOT, Village

OWN = frozenset({AUTHOR.public})


def test_a_change_of_ones_own_program_is_ones_own_and_of_another_base_it_is_not(village: Village):
    edit = village.run(1.9, "edit")
    digest = edit.body.source_digest
    own_base = village.run(1.8, "again", parent=edit, base=digest)
    child = village.run(1.7, "child", parent=own_base, base=digest)
    itself = village.run(1.6, "itself", parent=child, base=hashlib.sha256(b"itself").digest())
    others = village.run(1.5, "others", parent=child, base=b"b" * 32)
    further = village.run(1.4, "further", parent=others, base=digest)
    runs = (edit, own_base, child, itself, others, further)
    assert [is_own_run(village.log, run.id, OWN) for run in runs] == [True] * 4 + [False] * 2


def test_a_change_of_another_participant_s_program_is_not_ones_own(village: Village):
    theirs = village.run(1.9, "theirs", by=DOT)
    mine = village.run(1.8, "mine", parent=theirs, base=theirs.body.source_digest)
    assert not is_own_run(village.log, mine.id, OWN)
