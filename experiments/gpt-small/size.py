"""size.py: what differs between the sizes of gpt-small. Nobody edits it."""
WORK = 2e15            # FLOPs of a run, when the environment names no other number
BATCH_DOCS = 32        # documents in a step: the program can't choose it
FILES = {              # name: seed, documents, SHA-256
    "train.bin": (1, 61440, "d3d80032bbd469b60dfe723bd6b1ded8b6681c38dfd2736fb65928c3c7e7c8ef"),
    "val.bin": (2, 128, "7d6bafae773bfb8c92e46eac3a6001825575a7235834eda8ba46a842246b51df"),
}
FRESH = 128            # documents that nobody has seen before
FLOOR = 0.707041       # bits per byte: the exact code length of val.bin
