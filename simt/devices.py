"""Define the GPUs whose limits apply to launches on the CPU."""

from __future__ import annotations

import os
import re
from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Device:
    """The limits and sizes of a GPU. Memory in bytes, clocks in kHz.

    Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", and
    NVIDIA's datasheets for multiprocessors, clocks, L2 and memory. copy_engines is what such a GPU usually reports:
    only a program that asks for it sees it.
    """

    name: str
    major: int
    minor: int
    multiprocessors: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    registers_per_multiprocessor: int
    clock_khz: int
    l2_bytes: int
    global_bytes: int
    shared_per_block: int
    shared_per_block_optin: int
    shared_per_multiprocessor: int
    memory_khz: int
    memory_bus_bits: int
    copy_engines: int
    has_ecc: bool

    def fields(self) -> tuple:
        return astuple(self)


_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30

DEVICES = {
    d.name: d
    for d in (
        Device(
            "T4", 7, 5, 40, 1024, 16, 65536, 1590000, 4 * _MIB, 16 * _GIB, 48 * _KIB, 64 * _KIB, 64 * _KIB,
            5001000, 256, 3, True,
        ),
        Device(
            "A100", 8, 0, 108, 2048, 32, 65536, 1410000, 40 * _MIB, 40 * _GIB, 48 * _KIB, 163 * _KIB, 164 * _KIB,
            1215000, 5120, 3, True,
        ),
        Device(
            "L4", 8, 9, 58, 1536, 24, 65536, 2040000, 48 * _MIB, 24 * _GIB, 48 * _KIB, 99 * _KIB, 100 * _KIB,
            6251000, 192, 2, True,
        ),
        Device(
            "H100", 9, 0, 132, 2048, 32, 65536, 1980000, 50 * _MIB, 80 * _GIB, 48 * _KIB, 227 * _KIB, 228 * _KIB,
            2619000, 5120, 3, True,
        ),
        Device(
            "RTX 4060 Laptop", 8, 9, 24, 1536, 24, 65536, 2370000, 32 * _MIB, 8 * _GIB, 48 * _KIB, 99 * _KIB,
            100 * _KIB, 8001000, 128, 1, False,
        ),
        Device(
            "H200", 9, 0, 132, 2048, 32, 65536, 1980000, 60 * _MIB, 141 * _GIB, 48 * _KIB, 227 * _KIB, 228 * _KIB,
            3201000, 6144, 3, True,
        ),
    )
}  # fmt: skip

# The smallest limits of a block: a launch within them runs on every device, except a cooperative one, whose blocks need
# more multiprocessors than the laptop's GPU has.
DEFAULT = "T4"


class UnknownDevice(ValueError):
    """No GPU, or no single one, is meant by a name; str() is one sentence or two."""


# What drivers and shops write around a name. "PCIe" and "NVL" are not among them: an H100 PCIe is a slower GPU.
_AROUND = re.compile(r"\b(?:nvidia|tesla|geforce|gpu|sxm[0-9]?|hbm[0-9]?e?|[0-9]+ ?gb)\b", re.IGNORECASE)


def find_name(written: str) -> str:
    """Return the name in DEVICES that is meant, such as "RTX 4060 Laptop" by "rtx4060" or "laptop".

    Case, spaces and hyphens do not count, nor does what the driver adds, as in "NVIDIA A100-SXM4-80GB". A part of a
    name is enough if it is of one name only and cuts no number short: "H20" is not "H200". Raises UnknownDevice.
    """
    part = _squeeze(_AROUND.sub("", re.sub(r"[\s_-]+", " ", str(written))))
    if named := [name for name in DEVICES if _squeeze(name) == part]:
        return named[0]
    before, after = ("(?<![0-9])" * part[:1].isdigit(), "(?![0-9])" * part[-1:].isdigit())
    whole = before + re.escape(part) + after
    meant = [name for name in DEVICES if part and re.search(whole, _squeeze(name))]
    if len(meant) == 1:
        return meant[0]
    trouble = f"may be {' or '.join(meant)}" if meant else "is unknown"
    raise UnknownDevice(f"The GPU {written!r} {trouble}. Choose one of {', '.join(DEVICES)}.")


def read_default() -> str:
    """Return the full name of the GPU that the variable SIMT_DEVICE names; DEFAULT without it. Raises UnknownDevice."""
    try:
        return find_name(os.environ.get("SIMT_DEVICE") or DEFAULT)
    except UnknownDevice as error:
        raise UnknownDevice(f"SIMT_DEVICE: {error}") from None


def _squeeze(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()
