"""The participant's side: finds attestors among the peers, asks them, and brings them the answers.

The root key is not needed here: the device signs the request, and whoever types the code signs the answer.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.people.attestation import attest_answer
from autoresearch.ask.people.participants import AttestAnswer, AttestRefusal, CodeView
from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.log.standing.cache import roster_of
from autoresearch.record.kinds import Attestation
from autoresearch.record.record import Record, admit
from autoresearch.trust.attestation import (
    NONCE_BYTES,
    AttestationMessage,
    Attested,
    Challenge,
    CodeAnswer,
    Here,
    No,
    Parties,
    Reply,
    Request,
    Who,
    attestor_statement,
    decode_reply,
    encode_message,
    holds,
    request_statement,
)
from autoresearch.trust.attestor import CODE_MS, DUE_MS, attestors_in_order
from autoresearch.trust.identity import standing
from autoresearch.trust.mailbox import mail_tag, mailbox
from autoresearch.words import ATTEST_SENTENCES, CODE_VOID, AttestReason
from autoresearch_daemon.local_state import LocalState

# How long to look for attestors, and for one to hear of this device.
FIND_SECONDS = 15.0


class AttestorNetwork(Protocol):
    """What is needed of the network."""

    def me(self) -> str:
        """This host's peer id."""

    def connected(self) -> list[str]:
        """The peers that are connected now."""

    async def ask_attestor(self, peer: str, data: bytes) -> bytes:
        """A peer's reply. Raises AutoresearchError, also when it is no attestor."""

    async def synchronise(self, peer: str) -> None:
        """Have both logs equal. Raises AutoresearchError."""

    async def take_in(self, pairs: Sequence[tuple[bytes, bytes]], peer: str) -> None:
        """Store what a peer gave. Raises AutoresearchError."""


class Found(NamedTuple):
    """An attestor that answers now: its root key and the peer it is reached at."""

    root: bytes
    peer: str


class Participant:
    """Asks for attestations of this node's root key. ``local`` keeps which codes are awaited, through a restart."""

    def __init__(
        self, notebook: Notebook, local: LocalState, line: AttestorNetwork, *, now_ms: Callable[[], int]
    ) -> None:
        self._notebook = notebook
        self._local = local
        self._line = line
        self._now_ms = now_ms
        self._asking = asyncio.Lock()

    def answer(self, *, refused: Sequence[AttestRefusal] = (), reachable: int | None = None) -> AttestAnswer:
        """How this participant stands now."""
        now_ms = self._now_ms()
        awaited = [code for code in self._local.codes() if code.until_ms > now_ms]
        return attest_answer(
            self._notebook.log, self._root, now_ms=now_ms, awaited=awaited, refused=refused, reachable=reachable
        )

    async def ask(self, address: str) -> AttestAnswer:
        """Have as many attestors write to the address as are missing. Raises UsageError, Refused, NotFound."""
        box = mailbox(address)
        now_ms, trust = self._now_ms(), self._notebook.log.trust
        if sentence := self._obstacle():
            raise Refused(sentence, hint="then ask again")
        async with self._asking:
            tag = await asyncio.to_thread(mail_tag, box, self._notebook.log.network)
            words = roster_of(self._notebook.log).words(self._root, now_ms)
            have = {word.attestor for word in words if word.tag == tag and word.end_ms - now_ms > DUE_MS}
            missing = trust.needed - len(have)
            if missing <= 0:
                return self.answer()
            attestors = await self._find()
            if not attestors:
                raise NotFound(
                    f"none of the {len(trust.attestors)} attestors that this network trusts answers",
                    hint="autoresearch network peers; autoresearch network show names them",
                )
            order = attestors_in_order(self._root, attestors.keys() - have - {self._root}, now_ms=now_ms)
            refused = await self._ask_in_order(order, attestors, address, missing)
        return self.answer(refused=refused, reachable=len(attestors))

    async def confirm(self, answer: CodeAnswer) -> AttestAnswer:
        """Bring one attestor the signed answer. Raises NotFound, Refused, AutoresearchError."""
        code = next((code for code in self._local.codes() if code.token == answer.token.hex()), None)
        if code is None:
            raise NotFound("no such code is awaited here", hint="autoresearch node id attest --status")
        reply = await self._say(code.attestor_peer, answer)
        match reply:
            case Attested(raw=raw, signature=sealed):
                self._forget(code)  # whatever it sent, it has seen the answer
                await self._take_in(raw, sealed, code)
            case No(why=why):
                if why in CODE_VOID:
                    self._forget(code)
                raise Refused(f"the attestor refused: {sentence_of(why)}", hint="autoresearch node id attest --status")
            case _:
                raise AutoresearchError("the attestor gave no answer that can be understood")
        return self.answer()

    # --- asking ---

    async def _ask_in_order(
        self, order: list[bytes], attestors: dict[bytes, Found], address: str, missing: int
    ) -> list[AttestRefusal]:
        """Ask the first ones, and the next in place of each that says no."""
        refused: list[AttestRefusal] = []
        while missing and order:
            now, order = order[:missing], order[missing:]
            outcomes = await asyncio.gather(*(self._ask_one(attestors[root], address) for root in now))
            refused += [outcome for outcome in outcomes if outcome]
            missing = sum(outcome is not None for outcome in outcomes)
        return refused

    async def _ask_one(self, attestor: Found, address: str) -> AttestRefusal | None:
        """Have one attestor write a mail; why not, if not."""
        try:
            reply = await self._request(attestor, address)
            if isinstance(reply, No) and reply.why == AttestReason.UNKNOWN_DEVICE:
                with suppress(AutoresearchError, TimeoutError):
                    async with asyncio.timeout(FIND_SECONDS):
                        await self._line.synchronise(attestor.peer)
                reply = await self._request(attestor, address)
        except AutoresearchError as error:
            return AttestRefusal(attestor=attestor.root.hex(), why="unreachable", reason=str(error))
        match reply:
            case Challenge(token=token, expires=until_ms):
                self._remember(attestor, token, until_ms)
                return None
            case No(why=why):
                return AttestRefusal(attestor=attestor.root.hex(), why=why, reason=sentence_of(why))
            case _:
                return AttestRefusal(attestor=attestor.root.hex(), why="garbled", reason=sentence_of("garbled"))

    async def _request(self, attestor: Found, address: str) -> Reply:
        device = self._notebook.identity.device
        parties = Parties(
            self._notebook.log.network.id,
            self._root,
            device.public,
            self._line.me(),
            attestor.root,
            attestor.peer,
        )
        time_ms = self._now_ms()
        signature = device.sign(request_statement(parties, address, time_ms))
        request = Request(
            root=self._root,
            device=device.public,
            attestor=attestor.root,
            address=address,
            time=time_ms,
            signature=signature,
        )
        return await self._say(attestor.peer, request)

    async def _find(self) -> dict[bytes, Found]:
        """The trusted attestors among the connected peers, each with a proof that it is the one."""
        attestors: dict[bytes, Found] = {}
        trusted = self._notebook.log.trust.attestors - {self._root}
        with suppress(TimeoutError):
            async with asyncio.timeout(FIND_SECONDS):
                for answered in asyncio.as_completed([self._who(peer) for peer in self._line.connected()]):
                    if attestor := await answered:
                        attestors.setdefault(attestor.root, attestor)
                    if attestors.keys() >= trusted:  # a peer that is silent keeps nobody waiting
                        break
        return attestors

    async def _who(self, peer: str) -> Found | None:
        nonce = secrets.token_bytes(NONCE_BYTES)
        try:
            reply = await self._say(peer, Who(nonce=nonce))
        except AutoresearchError:
            return None  # most peers are no attestors
        statement = attestor_statement(self._notebook.log.network.id, nonce, peer, self._line.me())
        if not isinstance(reply, Here) or not holds(reply.device, statement, reply.signature):
            return None
        root = roster_of(self._notebook.log).voter(reply.device, self._now_ms()).root
        return Found(root, peer) if root in self._notebook.log.trust.attestors else None

    async def _say(self, peer: str, message: AttestationMessage) -> Reply:
        reply = decode_reply(await self._line.ask_attestor(peer, encode_message(message)))
        if reply is None:
            raise AutoresearchError("the peer gave no answer that can be understood")
        return reply

    # --- parts ---

    @property
    def _root(self) -> bytes:
        return self._notebook.identity.root.public

    def _obstacle(self) -> str:
        """Why asking is in vain."""
        now_ms, trust = self._now_ms(), self._notebook.log.trust
        if self._root in roster_of(self._notebook.log).participants:
            return "this network counts you already: no mail is needed"
        if len(trust.attestors - {self._root}) < trust.needed:
            return (
                f"this network trusts {len(trust.attestors)} attestors and needs {trust.needed}: found or join another"
            )
        device = self._notebook.device(now_ms)
        if roster_of(self._notebook.log).voter(self._notebook.author, now_ms).root != self._root:
            return standing(device, now_ms)
        return ""

    async def _take_in(self, raw: bytes, sealed: bytes, code: CodeView) -> None:
        """Keep the attestation. Raises AutoresearchError when it is another record, or none."""
        record = admit(raw, sealed, self._notebook.log.network, now_ms=self._now_ms())
        if isinstance(record, Record):
            signer = roster_of(self._notebook.log).voter(record.author, record.time).root.hex()
            body = record.body
            if not isinstance(body, Attestation) or (body.subject, signer) != (self._root, code.attestor):
                raise AutoresearchError("the attestor gave something else than its word for this participant")
        elif record.code != "early":  # which waits in the log for its time
            raise AutoresearchError(f"the attestor's word can't be used: {record.sentence}")
        await self._line.take_in([(raw, sealed)], code.attestor_peer)

    def _remember(self, attestor: Found, token: bytes, until_ms: int) -> None:
        now_ms = self._now_ms()
        code = CodeView(
            attestor=attestor.root.hex(),
            attestor_peer=attestor.peer,
            peer=self._line.me(),
            token=token.hex(),
            # Clocks differ; an attestor that names a year to come is not waited for until then.
            until_ms=min(until_ms, now_ms + 2 * CODE_MS),
        )
        others = [old for old in self._local.codes() if old.attestor != code.attestor and old.until_ms > now_ms]
        self._local.save_codes([*others, code])

    def _forget(self, code: CodeView) -> None:
        self._local.save_codes([other for other in self._local.codes() if other.token != code.token])


def sentence_of(why: str) -> str:
    """The words for an attestor's reason; a stranger's own words are never shown."""
    try:
        return ATTEST_SENTENCES[AttestReason(why)]
    except ValueError:
        return "for a reason that this version does not know"
