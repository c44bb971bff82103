"""What a release of a component is: its metadata, version, files and their hash. Pure."""

from autoresearch.releases.files import (
    BUNDLE_BYTES,
    FILES_MOST,
    BadBundle,
    File,
    fault_of_path,
    pack,
    tree_hash,
    unpack,
)
from autoresearch.releases.metadata import (
    COMMIT,
    NAME,
    TYPE,
    TYPES,
    VERSION,
    Component,
    Metadata,
    Parameter,
    component_of,
    content_digest,
)
from autoresearch.releases.versions import is_prerelease, version_key

__all__ = [
    "BUNDLE_BYTES",
    "COMMIT",
    "FILES_MOST",
    "NAME",
    "TYPE",
    "TYPES",
    "VERSION",
    "BadBundle",
    "Component",
    "File",
    "Metadata",
    "Parameter",
    "component_of",
    "content_digest",
    "fault_of_path",
    "is_prerelease",
    "pack",
    "tree_hash",
    "unpack",
    "version_key",
]
