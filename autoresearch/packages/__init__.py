"""A task's own Python packages: locking the list, installing it once on a machine, and who has to agree to that.

Nothing of a package is executed here: wheels alone are installed, by their hashes. Programs that use them run in the
sandbox.
"""

from autoresearch.packages.consent import (
    ALL,
    PackagesNotAllowed,
    allow,
    is_allowed,
    may_install,
    task_not_allowed,
)
from autoresearch.packages.environments import PackageSet, environment_folder, is_installed, task_python
from autoresearch.packages.locking import Locked, lock_folder, resolve_packages
from autoresearch.packages.present import every_node_has, has_packages, lock_meets
from autoresearch.packages.tools import package_source

__all__ = [
    "ALL",
    "Locked",
    "PackageSet",
    "PackagesNotAllowed",
    "allow",
    "environment_folder",
    "every_node_has",
    "has_packages",
    "is_allowed",
    "is_installed",
    "lock_folder",
    "lock_meets",
    "may_install",
    "package_source",
    "resolve_packages",
    "task_not_allowed",
    "task_python",
]
