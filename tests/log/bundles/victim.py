"""A process to be killed in an import: ``python -m tests.log.bundles.victim BUNDLE FOLDER``; says when it begins."""

import sys
from pathlib import Path

from autoresearch.log.bundle import Imported, import_bundle
from tests.log.bundles.nodes import node
from tests.record.making import NOW_MS

if __name__ == "__main__":
    with node(Path(sys.argv[2])) as receiver, Path(sys.argv[1]).open("rb") as file:
        print("ready", flush=True)
        import_bundle(file, receiver.log, receiver.blobs, Imported(), now_ms=NOW_MS)
