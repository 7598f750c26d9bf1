"""src/run/instruction.cpp: does it find a fault's address, and whether it was a write, where the processor does not?"""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[2] / "simt" / "src"
HAS_ARM = shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-aarch64")
ON_ARM = pytest.param(
    "aarch64-linux-gnu-g++",
    ["-static"],
    ["qemu-aarch64"],
    marks=pytest.mark.skipif(not HAS_ARM, reason="aarch64-linux-gnu-g++ or qemu-aarch64 is not installed"),
)


@pytest.mark.parametrize("compiler, flags, start", [("g++", [], []), ON_ARM])
def test_what_an_access_touches(tmp_path, compiler, flags, start):
    """Of loads and stores of every width to addresses that no memory can have, to null, and unaligned: does each say
    what it did and where?
    """
    files = [HERE / "touched.cpp", SOURCES / "run" / "instruction.cpp"]
    subprocess.run(
        [compiler, "-std=c++20", "-O2", "-w", f"-I{SOURCES}", *files, "-o", tmp_path / "touched", *flags], check=True
    )
    printed = subprocess.run([*start, tmp_path / "touched"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in printed.splitlines()]
    assert len(lines) == (24 if compiler == "g++" and "store-rbp" in printed else 17)
    for name, number, kind, place in lines:
        assert int(number) in (signal.SIGSEGV, signal.SIGBUS), name
        assert (kind, place) == ("write" if name.startswith("store") else "read", "there"), name
    told = {name: int(number) for name, number, *_ in lines}
    # which is neither SIGSEGV nor anything that si_addr tells
    assert told.get("store-rbp", signal.SIGBUS) == signal.SIGBUS
