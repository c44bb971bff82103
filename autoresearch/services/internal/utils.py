"""Images as JPEG, at the place from which programs written for agentlace import them."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from autoresearch.errors import BadMessage, CannotRunHere, UsageError, install_command

# What an image may unfold to; a small file can claim to be much larger.
MAX_PIXELS = 1 << 26
# A progressive image has some ten scans, each of which is decoded over the whole image.
MAX_SCANS = 100
_SCAN = b"\xff\xda"  # in the data of a scan no 0xff is followed by 0xda

try:
    from PIL import Image
except ImportError:
    raise CannotRunHere("JPEG images need Pillow", hint=install_command("images")) from None


def mat_to_jpeg(img: npt.NDArray[np.uint8]) -> bytes:
    """An image as JPEG: uint8 of the shape (height, width), or (height, width, 3) in OpenCV's order blue, green, red.

    Raises:
        UsageError: it is no such array.
    """
    image = np.asarray(img)
    if image.dtype != np.uint8 or not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)) or not image.size:
        hint = "an image is uint8 of the shape (height, width) or (height, width, 3)"
        raise UsageError(f"an array of {image.dtype} with the shape {image.shape} is no image", hint=hint)
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image[..., ::-1] if image.ndim == 3 else image)).save(out, "JPEG", quality=95)
    return out.getvalue()


def jpeg_to_mat(buf: bytes) -> npt.NDArray[np.uint8]:
    """An image from JPEG: uint8 of the shape (height, width, 3), in OpenCV's order blue, green, red.

    Raises:
        BadMessage: these bytes are no JPEG image, or one of more than 67 million pixels or 100 scans.
    """
    scans = buf.count(_SCAN)
    try:
        with Image.open(io.BytesIO(buf), formats=["JPEG"]) as image:
            if image.width * image.height > MAX_PIXELS:
                raise BadMessage(f"an image of {image.width} x {image.height} pixels came, which is too large")
            if scans > MAX_SCANS or scans * image.width * image.height > 16 * MAX_PIXELS:
                raise BadMessage(f"an image of {scans} scans came, which takes too long to decode")
            return np.asarray(image.convert("RGB"))[..., ::-1].copy()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BadMessage(f"what came is no JPEG image: {error}") from None
