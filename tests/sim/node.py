"""One honest node of the simulator: a real log with real keys, and the driver of a session."""

import shutil

from autoresearch.errors import LogBehind, Refused
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.log.sync.index import KeyIndex, Violation
from autoresearch.log.sync.session import Fetch, Leader, Opener, Send, Store, SyncFinished
from autoresearch.record.kinds import Claim, Note, Withdrawal
from autoresearch.record.record import DAY_MS, Network
from tests.log.dumping import dump
from tests.record.making import digest_of, key, run_body, task_body

# Small quotas, so that they bite.
NETWORK = Network(name="simulated", per_day_seq=2, per_day=7, per_author=12)


class Node:
    """``chance`` is its only randomness and ``skew_ms`` how far its clock is off."""

    def __init__(self, number, folder, template, chance, skew_ms):
        self.number = number
        self.key = key(number + 1)
        self.chance = chance
        self.skew_ms = skew_ms
        self.refused_to_fork = 0
        self._folder = folder / f"{number}"
        self._backup = folder / f"{number}.backup"
        shutil.copytree(template, self._folder)
        self._open()

    def _open(self):
        self.log = Log.open(self._folder / "log.sqlite", NETWORK)

    def publish(self, now_ms):
        """Append a record of some kind; returns it, or None when the log refuses, for its quota or as it is behind."""
        now_ms += self.skew_ms
        kind, body, links = self._draft(now_ms)
        try:
            record = self.log.writer.append(self.key, kind, body, links=links, now_ms=now_ms)
        except LogBehind:
            self.refused_to_fork += 1
            return None
        except Refused:
            return None
        return record.raw, record.signature

    def _draft(self, now_ms):
        links = []
        match self.chance.randrange(10):
            case 0:
                kind, body = "task", task_body()
            case 1:
                kind, body = "note", Note(topic="insight", text=f"{now_ms}", task=digest_of())
            case 2:
                kind, body = "claim", Claim(task=digest_of(), source_digest=b"d" * 32, until=now_ms + DAY_MS)
            case 3:
                kind, body = "withdrawal", Withdrawal()
                links = [record.id for record in self.log.records.newest(author=self.key.public, limit=1)]
            case _:
                source = b"%d" % self.chance.randrange(6)
                kind, body = "run", run_body(self.chance.random(), source=source, seed=self.chance.randrange(2**40))
        return kind, body, links

    def hear(self, pairs, now_ms):
        """Ingest records; returns the keys of those that were stored."""
        verdicts = self.log.writer.ingest(pairs, now_ms=now_ms + self.skew_ms)
        assert all(verdict.state is not State.REFUSED for verdict in verdicts)
        return [(verdict.record.time, verdict.id) for verdict in verdicts if verdict.state is State.STORED]

    def crash(self):
        """Stop without warning and start again."""
        self.log.close()
        self._open()

    def back_up(self):
        self.log.close()
        shutil.rmtree(self._backup, ignore_errors=True)
        shutil.copytree(self._folder, self._backup)
        self._open()

    def restore(self, *, whole):
        """Go back to the last copy. ``whole``: with the file that names the own head, so that nothing shows it."""
        if not self._backup.exists():
            return
        self.log.close()
        for file in self._folder.glob("log.sqlite*"):
            file.unlink()
        shutil.copytree(
            self._backup, self._folder, dirs_exist_ok=True, ignore=None if whole else shutil.ignore_patterns("heads")
        )
        self._open()

    def close(self):
        self.log.close()

    def contents(self):
        return dump(self.log)


class Driver:
    """Drives one session of a node, as the daemon does."""

    def __init__(self, node, role, now_ms):
        self._node = node
        self._now_ms = now_ms
        self._index = KeyIndex(node.log.records.iter_keys())
        self.session = role(node.log.network, self._index, node.chance.randbytes(16))
        self.outcome = None

    def perform(self, effects):
        """Carry the effects out; returns the bytes for the other side."""
        out, waiting = bytearray(), [iter(effects)]
        while waiting:
            match next(waiting[-1], None):
                case None:
                    waiting.pop()
                case Send(data):
                    out += data
                case Fetch(ids):
                    waiting.append(iter(self.session.supply(self._node.log.records.raw(ids))))
                case Store(records):
                    self._index.update(self._node.hear(records, self._now_ms))
                case SyncFinished() | Violation() as outcome:
                    self.outcome = outcome
        return bytes(out)


def synchronise(opening, leading, chance, now_ms, *, breaks_after=None, damages=False):
    """One exchange over a stream that is cut into pieces anywhere, and may break or carry nonsense after some bytes."""
    going, coming = Driver(opening, Opener, now_ms), Driver(leading, Leader, now_ms)
    data, passed = going.perform(going.session.start()), 0
    while data:
        answer = b""
        for at in range(0, len(data), size := chance.choice([64, 1_000, 100_000])):
            passed += size
            piece = data[at : at + size]
            if breaks_after is not None and passed > breaks_after:
                if not damages:
                    return
                piece = piece[: chance.randrange(len(piece))] + chance.randbytes(chance.randrange(1, 60))
            answer += coming.perform(coming.session.receive(piece))
        data = answer
        going, coming = coming, going
    if not damages:
        assert isinstance(going.outcome, SyncFinished), going.outcome
        assert isinstance(coming.outcome, SyncFinished), coming.outcome
