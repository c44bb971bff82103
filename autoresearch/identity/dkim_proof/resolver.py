"""Key records from DNS. The one part here that reaches out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autoresearch.errors import Refused, TimedOut
from autoresearch.installing import install_command

if TYPE_CHECKING:
    from dns.resolver import Resolver

TIMEOUT_S = 5.0


def resolve_key(selector: str, domain: str, *, resolver: Resolver | None = None) -> bytes | None:
    """The key record that ``domain`` publishes for ``selector``, or None when it has none. Blocks up to five seconds.

    Args:
        selector: of the signature.
        domain: of the signature.
        resolver: which name servers to ask; by default the machine's.

    Raises:
        Refused: the domain has several records there, which leaves open what they mean (RFC 6376, 3.6.2.2), or
            dnspython is missing.
        TimedOut: no name server answered.
    """
    try:
        import dns.exception
        import dns.resolver
    except ImportError as error:
        raise Refused(
            "DKIM keys can't be looked up here: a package is missing.", hint=install_command("attest")
        ) from error
    try:
        asked = resolver or dns.resolver.get_default_resolver()
        answer = asked.resolve(f"{selector}._domainkey.{domain}.", "TXT", lifetime=TIMEOUT_S, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return None
    except dns.exception.DNSException as error:
        raise TimedOut(f"No name server tells the DKIM key of {domain}.", hint="try again later") from error
    texts = [b"".join(record.strings) for record in answer]
    if len(texts) != 1:
        raise Refused(f"{domain} has several DKIM keys under one name.")
    return texts[0]
