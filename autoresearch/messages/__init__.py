"""Values as frames, to send between processes and machines, without code in them. Pure: frames in, frames out.

A value is None, a bool, a number, text, bytes, an array, a tensor, or a list, tuple, set or dict of these.
The first frame is MessagePack and holds the value; large arrays are frames of their own, which nothing copies.
"""

from autoresearch.messages.decoding import decode
from autoresearch.messages.encoding import encode
from autoresearch.messages.limits import MAX_BYTES, MAX_DEPTH, MAX_FRAMES

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_FRAMES", "decode", "encode"]
