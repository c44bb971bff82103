"""Gossipsub 1.1 with its guards: read loops that survive any bytes, records admitted before they are relayed."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from enum import Enum

import trio
from libp2p.abc import IHost, INetStream
from libp2p.custom_types import TProtocol
from libp2p.peer.id import ID
from libp2p.pubsub.gossipsub import GossipSub
from libp2p.pubsub.pb import rpc_pb2
from libp2p.pubsub.pubsub import Pubsub
from libp2p.pubsub.pubsub_notifee import PubsubNotifee
from libp2p.pubsub.utils import maybe_consume_signed_record
from libp2p.pubsub.validators import signature_validator
from libp2p.utils.varint import read_varint_prefixed_bytes_limited

from autoresearch_daemon.net.host.guards import quietly

logger = logging.getLogger(__name__)

RPC_BYTES_IN = 256 * 1024
MESSAGES_PER_RPC = 256
MESSAGE_IDS_PER_RPC = 256
HEARTBEAT_SECONDS = 1
BACK_OFF_SECONDS = 5
NOTICES = 1024
MEND_SECONDS = 3.0


class GossipVerdict(Enum):
    """What becomes of a message. Its sender is to blame for a rejected one only."""

    RELAY = "relay"
    IGNORE = "ignore"
    REJECT = "reject"


class Router(GossipSub):
    """Gossipsub 1.1 with the settings that deliver; the rest of what a stranger may ask for is cut off."""

    def __init__(self) -> None:
        super().__init__(
            # 1.2 announces every message to every mesh peer even when it is small: twice the processor time
            protocols=[TProtocol("/meshsub/1.1.0")],
            degree=5,
            degree_low=4,
            degree_high=8,
            heartbeat_interval=HEARTBEAT_SECONDS,
            prune_back_off=BACK_OFF_SECONDS,
            adaptive_gossip_enabled=False,  # it slows the heartbeat down when things go badly
            spam_protection_enabled=False,  # it drops; the read loop below delays
        )
        # Stock twice as long as the back-off above: who comes back on time would be taken for a flood, for ever.
        self.graft_flood_threshold = BACK_OFF_SECONDS / 2

    def gossip_heartbeat(self) -> defaultdict[ID, dict[str, list[bytes]]]:
        """Announce to pruned peers too: stock they get neither messages nor announcements during the back-off."""
        saved, self.back_off = self.back_off, {}
        try:
            return super().gossip_heartbeat()
        finally:
            self.back_off = saved

    async def handle_iwant(self, iwant_msg: rpc_pb2.ControlIWant, sender_peer_id: ID) -> None:
        """Answer each id once: stock a list of one id six thousand times costs six thousand messages."""
        message_ids = list(dict.fromkeys(iwant_msg.messageIDs))[:MESSAGE_IDS_PER_RPC]
        await super().handle_iwant(rpc_pb2.ControlIWant(messageIDs=message_ids), sender_peer_id)

    async def handle_ihave(self, ihave_msg: rpc_pb2.ControlIHave, sender_peer_id: ID) -> None:
        """Ask for a bounded number of announced messages."""
        offered = list(dict.fromkeys(ihave_msg.messageIDs))[:MESSAGE_IDS_PER_RPC]
        await super().handle_ihave(rpc_pb2.ControlIHave(topicID=ihave_msg.topicID, messageIDs=offered), sender_peer_id)

    async def _do_px(self, px_peers: list[rpc_pb2.PeerInfo]) -> None:
        """Dial nobody whom a prune names; peer exchange has a protocol of its own."""

    def forget_deliveries(self) -> None:
        """Empty the list of delivery times, which only grows."""
        self.recent_message_deliveries.clear()


class RecordPubsub(Pubsub):
    """Pubsub for one topic. ``judge`` says what becomes of data; ``deliver`` gets what it let pass.

    ``offend`` is told of peers that send what no honest peer sends; ``delay`` gives the seconds to wait before more
    messages of a peer are read, which the sender feels as a full window.
    """

    def __init__(
        self,
        host: IHost,
        router: Router,
        topic: str,
        *,
        judge: Callable[[bytes], GossipVerdict],
        deliver: Callable[[bytes, str], None],
        offend: Callable[[str], None],
        delay: Callable[[str, int], float],
    ) -> None:
        super().__init__(host, router, max_inbound_rpc_size=RPC_BYTES_IN, allowed_topics={topic})
        self._unblock_notices()
        self._topic = topic
        self._judge = judge
        self._deliver = deliver
        self._offend = offend
        self._delay = delay
        # Stock counts from the second of the start, so that a busy node repeats numbers after a restart.
        self.counter = time.time_ns()

    def _unblock_notices(self) -> None:
        """Buffer what libp2p tells pubsub of connections.

        Stock, a connection is served after pubsub took the notice, and pubsub takes none while it waits for a peer:
        hosts that connect to each other all at once stand still until a ten second timeout.
        """
        for notifee in self.host.get_network().notifees:  # type: ignore[attr-defined]
            if isinstance(notifee, PubsubNotifee):
                notifee.initiator_peers_queue, self.peer_receive_channel = trio.open_memory_channel[ID](NOTICES)
                notifee.dead_peers_queue, self.dead_peer_receive_channel = trio.open_memory_channel[ID](NOTICES)

    async def keep_streams(self) -> None:
        """Give every connected peer its gossip stream. Runs until cancelled.

        Stock, a peer whose first negotiation timed out gets none as long as it stays connected, and nothing says so.
        """
        while True:
            await trio.sleep(MEND_SECONDS)
            missing = [peer for peer in self.host.get_connected_peers() if peer not in self.peers]
            async with trio.open_nursery() as nursery:
                for peer in missing:
                    nursery.start_soon(self._mend, peer)

    async def _mend(self, peer: ID) -> None:
        with trio.move_on_after(MEND_SECONDS):
            await self.ensure_peer_stream(peer, MEND_SECONDS)

    async def continuously_read_stream(self, stream: INetStream) -> None:
        """Read one peer's stream until it ends. Whatever arrives, only the stream is lost."""
        peer = stream.muxed_conn.peer_id
        try:
            while self.manager.is_running:
                rpc = rpc_pb2.RPC()
                rpc.ParseFromString(await read_varint_prefixed_bytes_limited(stream, RPC_BYTES_IN))
                if maybe_consume_signed_record(rpc, self.host, peer):
                    await self._handle(peer, rpc)
                else:
                    self._offend(str(peer))
        except Exception as error:  # noqa: BLE001 - a stranger decides what is raised here; stock it ends the host
            if not is_end(error):
                logger.debug("pubsub stream of %s: %r", peer, error)
                self._offend(str(peer))
            await quietly(stream.reset)
            self._handle_dead_peer(peer)

    async def _handle(self, peer: ID, rpc: rpc_pb2.RPC) -> None:
        messages = [message for message in rpc.publish if list(message.topicIDs) == [self._topic]]
        if len(rpc.publish) > MESSAGES_PER_RPC:
            self._offend(str(peer))
            messages = messages[:MESSAGES_PER_RPC]
        await trio.sleep(self._delay(str(peer), len(rpc.publish)))
        for message in messages:
            await self.push_msg(peer, message)
        for subscription in rpc.subscriptions[: self.max_subscriptions_per_peer]:
            self.handle_subscription(peer, subscription)
        if rpc.HasField("control"):
            await self.router.handle_rpc(rpc, peer)

    async def push_msg(self, msg_forwarder: ID, msg: rpc_pb2.Message) -> None:
        """Relay a message if it is new, signed by its sender and a record; in this order, the dear checks last."""
        own = msg_forwarder == self.my_id
        if self._is_msg_seen(msg) or (not own and msg.from_id == self.my_id.to_bytes()):
            return
        if not own:
            verdict = self._judge(msg.data) if signed(msg) else GossipVerdict.REJECT
            if verdict is GossipVerdict.REJECT:
                self._offend(str(msg_forwarder))
            if verdict is not GossipVerdict.RELAY:
                return
            self._deliver(msg.data, str(msg_forwarder))
        self._mark_msg_seen(msg)
        await self.router.publish(msg_forwarder, msg)


def signed(message: rpc_pb2.Message) -> bool:
    """Whether the signature is its sender's. Stock, a junk key raises here and ends the host."""
    try:
        return bool(signature_validator(message))
    except Exception as error:  # noqa: BLE001 - a stranger decides what is raised here
        logger.debug("message with a junk key: %r", error)
        return False


def is_end(error: BaseException | None) -> bool:
    """Whether a read failed because the stream or its connection is over, which is nobody's fault."""
    from libp2p.exceptions import ParseError
    from libp2p.io.exceptions import IOException, MessageTooLarge
    from libp2p.network.connection.exceptions import RawConnError
    from libp2p.network.stream.exceptions import StreamError

    broke_rules = isinstance(error, MessageTooLarge | ParseError)
    return isinstance(error, StreamError | IOException | RawConnError) and not broke_rules
