"""A process to be killed: imports once, then forks a child for each order from standard input and says how it went.

Each order is "WHAT FOLDER SEED". The child says "ready PID", then works until it is killed, and says what it announces,
one line each. When it is gone the parent says "end".
"""

import hashlib
import os
import random
import sys
from pathlib import Path

from autoresearch.log.blobs import BlobStore
from autoresearch.log.chunks import CHUNK_BYTES, decode_manifest, encode_manifest
from autoresearch.log.log import Log
from autoresearch.record.kinds import Note
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed

BATCH, BATCHES = 20, 6


def say(text):
    os.write(1, text.encode() + b"\n")


def batches(seed):
    """Batches of signed runs by an author of their own; the same for the same seed."""
    author = key(1000 + seed)
    made = [sealed(author, run_body(seq * 1.0, source=b"%d" % seq), seq=seq) for seq in range(1, BATCH * BATCHES + 1)]
    return [made[start : start + BATCH] for start in range(0, len(made), BATCH)]


def append(folder, seed):
    with Log.open(folder / "log.sqlite", NETWORK) as log:
        say(f"ready {os.getpid()}")
        for number in range(10**6):
            if number % 2:
                body = run_body(number * 1.0, source=b"%d %d" % (seed, number))
                record = log.writer.append(key(1), "run", body, now_ms=NOW_MS)
            else:
                record = log.writer.append(
                    key(1), "note", Note(topic="insight", text=f"{seed} {number}"), now_ms=NOW_MS
                )
            say(f"{record.seq} {record.id.hex()}")


def ingest(folder, seed):
    made = batches(seed)
    with Log.open(folder / "log.sqlite", NETWORK) as log:
        say(f"ready {os.getpid()}")
        for batch in made:
            log.writer.ingest(pairs(batch), now_ms=NOW_MS)
            say(batch[0].id.hex())


def blobs(folder, seed):
    chance = random.Random(seed)
    with BlobStore(folder / "blobs") as store:
        say(f"ready {os.getpid()}")
        for _ in range(1000):
            size = chance.choice([100, 5_000, 300_000, (1 << 20) + 1])
            say(store.put(chance.randbytes(16) * (size // 16 + 1)).sha256.hex())


def chunked(seed):
    """A large blob with its manifest, the same for the same seed: chunks, manifest, hash of the whole."""
    chance = random.Random(seed)
    chunks = [chance.randbytes(64) * (CHUNK_BYTES // 64) for _ in range(4)]
    raw = encode_manifest(4 * CHUNK_BYTES, [hashlib.sha256(chunk).digest() for chunk in chunks])
    return chunks, raw, hashlib.sha256(b"".join(chunks)).digest()


def collect(folder, seed):
    """Fetch large blobs chunk by chunk, and delete what others made, all the time; announces what is kept for good."""
    with BlobStore(folder / "blobs") as store:
        say(f"ready {os.getpid()}")
        for number in range(1000):
            chunks, raw, whole = chunked(1000 * seed + number % 3)
            manifest = store.put_stream([raw], fetched=True).sha256
            with store.begin(whole, decode_manifest(raw)) as partial:
                for index in partial.look():
                    partial.put(index, chunks[index])
                    say("chunk")
                store.finish(whole, manifest, partial)
            say(store.put(b"own %d %d" % (seed, number)).sha256.hex())
            store.delete(blob for blob in store.stored() if blob.fetched)


def main():
    for order in sys.stdin:
        what, folder, seed = order.split()
        child = os.fork()
        if child == 0:
            {"append": append, "ingest": ingest, "blobs": blobs, "collect": collect}[what](Path(folder), int(seed))
            os._exit(0)
        os.waitpid(child, 0)
        say("end")


if __name__ == "__main__":
    main()
