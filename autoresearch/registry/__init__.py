"""The registry in the log: releases found, resolved, prepared and installed. Nothing of a component is executed here.

A project needs two calls: :func:`resolve` gives the release that ``TYPE NAME[==VERSION]`` means, and
:func:`install_release` puts it into a folder, whole or not at all.
"""

from autoresearch.registry.choosing import Choice, Release, Spec, choose, equivocal, newest_of
from autoresearch.registry.finding import FoundComponent, component, releases_like, releases_named, resolve, search
from autoresearch.registry.git_source import check_url, fetch_files
from autoresearch.registry.installing import (
    Checked,
    Source,
    checked_release,
    install_release,
    release_files,
    write_tree,
)
from autoresearch.registry.needs import needs_of
from autoresearch.registry.preparing import Prepared, Said, fetch_prepared, prepare, prepared
from autoresearch.registry.registry_file import Entry, read_registry

__all__ = [
    "Checked",
    "Choice",
    "Entry",
    "FoundComponent",
    "Prepared",
    "Release",
    "Said",
    "Source",
    "Spec",
    "check_url",
    "checked_release",
    "choose",
    "component",
    "equivocal",
    "fetch_files",
    "fetch_prepared",
    "install_release",
    "needs_of",
    "newest_of",
    "prepare",
    "prepared",
    "read_registry",
    "release_files",
    "releases_like",
    "releases_named",
    "resolve",
    "search",
    "write_tree",
]
