"""Sizes that rules and the API share."""

from __future__ import annotations

ADDRESS_MAX = 254  # RFC 5321, 4.5.3.1.3, less the angle brackets
# Of the header of a mail that is a proof: some 30 times what it needs once all that is unsigned is gone.
PROOF_BYTES_MAX = 16 << 10
# Of a text in a record.
NOTE_CHARACTERS = 2048
# So many runs are the evidence of a note.
NOTE_EVIDENCE = 16
QUESTION_CHARACTERS = 500
