"""Key records come from DNS."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import dns.rrset
import pytest

from autoresearch.errors import Refused, TimedOut
from autoresearch.trust.dkim import prove, resolve_key
from autoresearch.trust.keys import KeyPair
from tests.trust.dkim_mail import NOW_MS, SUBJECT, Signing, ed_key, ed_record, mail, rsa_key, rsa_record

ATTESTOR, OTHER = KeyPair.from_seed(bytes(32)), KeyPair.from_seed(b"\1" * 32)
MESSAGE = Signing().sign(mail())
RECORD = rsa_record(rsa_key())


@contextmanager
def name_server(records: dict[str, list[str]], *, rcode: int | None = None) -> Iterator[dns.resolver.Resolver]:
    """A resolver that asks a name server on this machine, which knows ``records`` or always says ``rcode``."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            while wire_from := server.recvfrom(4096):
                wire, peer = wire_from
                if not wire:
                    return
                query = dns.message.from_wire(wire)
                name = query.question[0].name.to_text()
                answer = dns.message.make_response(query)
                answer.flags |= dns.flags.RA
                if rcode is not None or name not in records:
                    answer.set_rcode(dns.rcode.NXDOMAIN if rcode is None else rcode)
                elif records[name]:
                    answer.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *records[name]))
                server.sendto(answer.to_wire(), peer)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = server.getsockname()[1]
        yield resolver
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", resolver.port))
        thread.join()


def quoted(record: bytes) -> str:
    """A record as DNS carries it: in strings of at most 255 bytes."""
    text = record.decode()
    return " ".join(f'"{text[start : start + 255]}"' for start in range(0, len(text), 255))


def test_a_key_is_read_from_dns_in_all_its_strings() -> None:
    records = {
        "mail._domainkey.example.org.": [quoted(RECORD)],
        "ed._domainkey.example.org.": [quoted(ed_record(ed_key()))],
    }
    with name_server(records | {"none._domainkey.example.org.": []}) as resolver:
        assert resolve_key("mail", "example.org", resolver=resolver) == RECORD
        assert resolve_key("ed", "example.org", resolver=resolver) == ed_record(ed_key())
        assert resolve_key("gone", "example.org", resolver=resolver) is None
        assert resolve_key("none", "example.org", resolver=resolver) is None
        lookup = lambda selector, domain: resolve_key(selector, domain, resolver=resolver)  # noqa: E731
        assert prove(MESSAGE, lookup, subject=SUBJECT, now_ms=NOW_MS).record == RECORD


def test_two_records_under_one_name_are_no_key() -> None:
    records = {"mail._domainkey.example.org.": [quoted(RECORD), quoted(ed_record(ed_key()))]}
    with name_server(records) as resolver, pytest.raises(Refused, match="several DKIM keys"):
        resolve_key("mail", "example.org", resolver=resolver)


def test_a_failing_name_server_is_no_answer_about_the_key() -> None:
    with name_server({}, rcode=dns.rcode.REFUSED) as resolver, pytest.raises(TimedOut, match="No name server"):
        resolve_key("mail", "example.org", resolver=resolver)
