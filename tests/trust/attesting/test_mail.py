"""The mail: plain text first, the same in HTML, no answer wanted, and nothing typed by a stranger in it."""

from __future__ import annotations

from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from autoresearch_attestor.rules import code_mail

from autoresearch.trust.attestation import find_codes, write_code
from tests.trust.attesting.making import ATTESTOR, PARTIES, ROOT, TOKEN1, TOKEN2

CODE = write_code(TOKEN1, TOKEN2, ATTESTOR.public)


def mail() -> EmailMessage:
    made = code_mail(
        CODE,
        PARTIES,
        to="you@example.org",
        sender="attestor@example.net",
        network="tea",
        date=datetime(2027, 1, 15, 8, tzinfo=UTC),
        message_id="<1@example.net>",
    )
    return message_from_bytes(made.as_bytes(), policy=default)  # type: ignore[return-value]


def test_the_plain_text_comes_first_and_says_all_that_the_html_says() -> None:
    parts = list(mail().iter_parts())
    assert [part.get_content_type() for part in parts] == ["text/plain", "text/html"]
    plain, html = (part.get_content() for part in parts)
    for part in (plain, html):
        assert find_codes(part) == [CODE]
        assert ROOT.public.hex() in part
        assert "tea" in part
        assert "30 minutes" in part
    assert mail().get_content_type() == "multipart/alternative"


def test_no_program_is_asked_to_answer_and_it_is_no_list() -> None:
    message = mail()
    assert message["Auto-Submitted"] == "auto-generated"
    assert [name for name in message if name.lower().startswith(("list-", "reply-to", "precedence"))] == []
    assert (message["From"], message["To"]) == ("attestor@example.net", "you@example.org")
    assert message["Date"] == "Fri, 15 Jan 2027 08:00:00 +0000"


def test_pasted_with_all_its_headers_it_still_has_one_code() -> None:
    assert find_codes(mail().as_string()) == [CODE]


def test_every_line_is_short_enough_for_any_server() -> None:
    assert max(map(len, mail().as_bytes().splitlines())) <= 78
