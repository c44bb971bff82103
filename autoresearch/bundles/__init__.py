"""A log carried by hand: records and blobs in one file, a CAR. Specified in ``docs/protocol.md``."""

from autoresearch.bundles.car import HEADER_PREFIX, BrokenBundle
from autoresearch.bundles.reading import Imported, import_bundle, is_bundle
from autoresearch.bundles.references import Carried
from autoresearch.bundles.writing import Written, write_bundle

__all__ = [
    "HEADER_PREFIX",
    "BrokenBundle",
    "Carried",
    "Imported",
    "Written",
    "import_bundle",
    "is_bundle",
    "write_bundle",
]
