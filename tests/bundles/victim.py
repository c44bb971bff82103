"""A process to be killed while it imports: ``python -m tests.bundles.victim BUNDLE FOLDER``; says when it begins."""

import sys
from pathlib import Path

from autoresearch.bundles import Imported, import_bundle
from tests.bundles.nodes import node
from tests.records.making import NOW_MS

if __name__ == "__main__":
    with node(Path(sys.argv[2])) as there, Path(sys.argv[1]).open("rb") as file:
        print("ready", flush=True)
        import_bundle(file, there.log, there.blobs, Imported(), now_ms=NOW_MS)
