"""size.py: what differs between the sizes of gpt-small. Nobody edits it."""
WORK = 2e12            # FLOPs of a run, when the environment names no other number
BATCH_DOCS = 1         # documents in a step: the program can't choose it
FILES = {              # name: seed, documents, SHA-256
    "train.bin": (1, 2048, "86c2201d20027af07c19ffc13ba2ae785cc774b18f8d24bfd97007ed8f603ea4"),
    "val.bin": (2, 16, "f34d750c8170e34d6ab463e76f824088480a79cf60eabd4b80b67b4faccc02d3"),
}
FRESH = 16             # documents that nobody has seen before
FLOOR = 0.696746       # bits per byte: the exact code length of val.bin
