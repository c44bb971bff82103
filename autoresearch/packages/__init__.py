"""A task's own Python packages: locking the list, installing it once on a machine, and who has to agree to that.

Nothing of a package is executed here: wheels alone are installed, by their hashes. Programs that use them run in the
sandbox.
"""

from autoresearch.packages.consent import PackagesNotAllowed, allow, is_allowed, may_install
from autoresearch.packages.environments import environment_folder, is_installed, task_python
from autoresearch.packages.locking import Locked, lock_folder, resolve_packages
from autoresearch.packages.tools import package_source

__all__ = [
    "Locked",
    "PackagesNotAllowed",
    "allow",
    "environment_folder",
    "is_allowed",
    "is_installed",
    "lock_folder",
    "may_install",
    "package_source",
    "resolve_packages",
    "task_python",
]
