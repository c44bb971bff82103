"""The network's child: libp2p and trio stay in here.

libp2p imports two packages that have no wheel for Python 3.14 and that nothing here needs. Where one is absent, another
module stands for it: whatever wants a key on the curve secp256k1, or a router's port by UPnP, is refused.
"""

import sys
from importlib.util import find_spec
from types import ModuleType


class _Absent:
    def __init__(self, *_: object, **__: object) -> None:
        raise ValueError("coincurve or miniupnpc is not installed")  # as where bytes are no key


for _name in ("coincurve", "miniupnpc"):
    if find_spec(_name) is None:
        sys.modules[_name] = _module = ModuleType(_name)
        vars(_module).update(PrivateKey=_Absent, PublicKey=_Absent, UPnP=_Absent)
