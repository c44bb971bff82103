"""Computes on the card, inside the sandbox, and says what card that was. Runs as a lone file; nothing imports it.

``nvidia-smi`` works where CUDA does not: only a kernel whose result is right proves that a card computes. Prints one
JSON object: ``uuid``, ``free`` and ``total`` bytes of memory, or ``error`` with the driver's own number.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

_THREADS = 32
_MAJOR = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
_TEXT = """.version 6.4
.target {target}
.address_size 64
.visible .entry probe(.param .u64 out)
{{
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r2, %r1, %r1, 7;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}}
"""


class DriverError(Exception):
    """A call of the driver failed: its name, its number and the driver's word for it."""


def main() -> dict[str, object]:
    """One kernel on the only card that is seen."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"error": f"CUDA's driver library can't be loaded: {error}"}
    try:
        return compute(driver)
    except DriverError as error:
        return {"error": str(error)}


def compute(driver: ctypes.CDLL) -> dict[str, object]:
    """The card's UUID and memory, after it has computed. Raises DriverError."""

    def call(name: str, *arguments: object) -> None:
        if code := getattr(driver, name)(*arguments):
            word = ctypes.c_char_p()
            driver.cuGetErrorName(code, ctypes.byref(word))
            raise DriverError(f"{name} says {(word.value or b'error').decode()} ({code})")

    device, major, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    uuid, free, total = ctypes.create_string_buffer(16), ctypes.c_size_t(), ctypes.c_size_t()
    module, kernel, out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    numbers = (ctypes.c_uint32 * _THREADS)()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetUuid", uuid, device)
    call("cuDeviceGetAttribute", ctypes.byref(major), _MAJOR, device)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    call("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(ctypes.sizeof(numbers)))
    text = _TEXT.format(target="sm_75" if major.value > 7 else "sm_50")
    call("cuModuleLoadData", ctypes.byref(module), text.encode())
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"probe")
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(out))
    call("cuLaunchKernel", kernel, 1, 1, 1, _THREADS, 1, 1, 0, None, parameters, None)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoH_v2", numbers, out, ctypes.c_size_t(ctypes.sizeof(numbers)))
    if list(numbers) != [number * number + 7 for number in range(_THREADS)]:
        raise DriverError("its result of a first kernel is wrong")
    digits = uuid.raw.hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return {"uuid": "GPU-" + "-".join(parts), "free": free.value, "total": total.value}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main()) + "\n")
    sys.stdout.flush()
    os._exit(0)
