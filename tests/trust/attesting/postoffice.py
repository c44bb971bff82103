"""A real mail server on loopback: STARTTLS with a certificate of its own, login, and mailboxes that it refuses."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from autoresearch.settings import Mail

USER, PASSWORD = "postmaster", "a long secret of the mail account"


@dataclass
class PostOffice:
    """What came in, and the way in. ``ca_file`` is what a client must trust."""

    port: int
    ca_file: str
    mails: list[tuple[str, EmailMessage]] = field(default_factory=list)
    senders: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    hangs_up: bool = False

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return f"{self.refused[address]} <{address}> is not here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        mail = message_from_bytes(envelope.content, policy=default)  # type: ignore[arg-type]
        self.senders.append(envelope.mail_from or "")
        self.mails += [(address, mail) for address in envelope.rcpt_tos]  # type: ignore[misc]
        if self.hangs_up:
            server.transport.abort()  # type: ignore[union-attr]
        return "250 OK"

    def text_to(self, address: str) -> list[str]:
        """The plain texts of the mails to an address."""
        return [mail.get_body(("plain",)).get_content() for to, mail in self.mails if to == address]  # type: ignore[union-attr]

    def settings(self, password_file: Path) -> dict[str, str]:
        """What an attestor's environment says of it."""
        password_file.write_text(PASSWORD + "\n")
        password_file.chmod(0o600)
        chosen = {"host": "127.0.0.1", "port": str(self.port), "user": USER, "password_file": str(password_file)}
        chosen |= {"ca_file": self.ca_file, "from_address": "attestor@example.net"}
        return {"AUTORESEARCH_ATTESTOR_ENABLED": "true"} | variables(chosen)


def variables(settings: dict[str, str]) -> dict[str, str]:
    """The environment that has these settings of a mail account and of an attestor."""
    sections = {name: "MAIL" if name in Mail.__struct_fields__ else "ATTESTOR" for name in settings}
    return {f"AUTORESEARCH_{sections[name]}_{name.upper()}": value for name, value in settings.items()}


@contextmanager
def post_office(folder: Path, *, tls: bool = True) -> Iterator[PostOffice]:
    """A server for as long as the context lasts."""
    certificate = make_certificate(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    office = PostOffice(free_port(), str(certificate))
    controller = Controller(
        office,
        hostname="127.0.0.1",
        port=office.port,
        tls_context=context if tls else None,
        require_starttls=tls,
        authenticator=authenticate,
        auth_required=tls,
        auth_require_tls=tls,
    )
    controller.start()
    try:
        yield office
    finally:
        controller.stop()


def authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=good, handled=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_certificate(folder: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
