"""The most that a message may hold, and the numbers that its extension types have. Pure."""

# Bytes of all frames together. Larger weights are published in parts.
MAX_BYTES = 1 << 30
# Frames of a message, the first one among them: each array of more than INLINE_BYTES is one.
MAX_FRAMES = 4096
# Lists within lists, or dicts within dicts.
MAX_DEPTH = 64
MAX_DIMENSIONS = 32

# Arrays up to this size travel in the first frame: a frame of its own costs more than two copies of these.
# ZeroMQ also keeps larger frames alone that are in memory of their own, aligned for every type of number.
INLINE_BYTES = 8192

# MessagePack extension types. TUPLE and SET hold a list; the others [type of number, shape, bytes or frame].
TUPLE, SET, ARRAY, SCALAR, TENSOR = 1, 2, 3, 4, 5

# Types of numbers on the wire, all little-endian. bfloat16 is a tensor's alone: numpy does not know it.
NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
BFLOAT16 = "bfloat16"
