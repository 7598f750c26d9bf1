"""Find out which level of sandbox this machine has, and describe what each one holds back."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import tempfile
from enum import StrEnum
from pathlib import Path

from grader.worker import bubblewrap, confine

VARIABLE = "GRADER_SANDBOX"  # names a level to use, whatever the machine has


class SandboxError(Exception):
    """No sandbox is available here; the text gives the reason and what to do."""


class Level(StrEnum):
    """How a worker is isolated, the strongest first."""

    bubblewrap = "bubblewrap"
    landlock = "landlock"
    none = "none"


BUBBLEWRAP = (
    "bubblewrap: no network, listed files only, private /tmp, /dev and /dev/shm, own processes and user, seccomp filter"
)
LANDLOCK = "Landlock: no network, listed files only, no signals to other programs, seccomp filter"
NONE = "none: the submission could read and change files and use the network"
NOT_RUN = "not needed: the submission was not run"
# What a level does not hold back, for `grader doctor`.
GAPS = {
    Level.bubblewrap: "",
    Level.landlock: "Submissions can see which files exist and how large they are, and have no /dev/shm of their own.",
    Level.none: "Submissions can read and change your files and use the network.",
}


@dataclasses.dataclass(frozen=True)
class Probe:
    """What this machine has. trouble: why there is no sandbox, in one sentence; empty if there is one.

    note: why it is not the strongest level. is_broken: nothing may run until the trouble is resolved, because a sandbox
    that should work does not.
    """

    level: Level
    trouble: str = ""
    note: str = ""
    is_broken: bool = False


def describe(level: Level, has_own_user: bool = False) -> str:
    """Return what a level holds back, for reports."""
    if level is Level.none:
        return NONE
    return BUBBLEWRAP if level is Level.bubblewrap else LANDLOCK + ", a user of its own" * has_own_user


def is_unprotected(description: str) -> bool:
    """Return whether a report's description says that a submission ran without a sandbox."""
    return description.startswith(Level.none.value)


def list_gpus() -> list[str]:
    """Return this machine's NVIDIA GPUs that CUDA sees, each as CUDA_VISIBLE_DEVICES names it: by number, or by UUID.

    As in CUDA, what follows the first entry of CUDA_VISIBLE_DEVICES that names no GPU is hidden.
    """
    count = sum(1 for _ in Path("/dev").glob("nvidia[0-9]*"))
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number) for number in range(count)] if listed is None else [one.strip() for one in listed.split(",")]
    there = itertools.takewhile(lambda name: int(name) < count if name.isdigit() else name[:1].isalpha(), names)
    return list(there) if count else []


def has_gpu() -> bool:
    """Return whether this machine has an NVIDIA GPU, and CUDA_VISIBLE_DEVICES does not hide all."""
    return bool(list_gpus())


@functools.cache
def probe() -> Probe:
    """Return what this machine has; the first call runs bubblewrap once, for about 0.1 s."""
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if wanted and wanted not in set(Level):
        names = ", ".join(Level)
        trouble = f"{VARIABLE} is `{wanted[:50]}`. Set it to one of {names}, or unset it."
        return Probe(Level.none, trouble, is_broken=True)
    if wanted == Level.none:
        return Probe(Level.none, f"{VARIABLE} is none. Unset it.")
    found = _probe_landlock() if wanted == Level.landlock else _probe_bubblewrap()
    if wanted and found.level != wanted:
        reason = found.trouble or found.note
        return Probe(Level.none, f"{VARIABLE} is {wanted}, which does not work here: {reason}", is_broken=True)
    return found


def _probe_bubblewrap() -> Probe:
    """Return the strongest level that works."""
    if not bubblewrap.is_installed():
        missing = "bubblewrap is not installed (apt install bubblewrap)."
        return _probe_landlock(missing)
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        trouble, grants_none = bubblewrap.find_trouble(Path(folder).resolve(), has_gpu())
    if not trouble:
        return Probe(Level.bubblewrap)
    sentence = f"bubblewrap is installed but does not run here ({trouble})."
    if grants_none:
        found = _probe_landlock(sentence)
        if found.level is Level.landlock:
            return found
    cure = f"Run `bwrap --ro-bind / / true` to see why, or set {VARIABLE} to landlock or none."
    return Probe(Level.none, f"{sentence} {cure}", is_broken=True)


def _probe_landlock(note: str = "") -> Probe:
    """Return level 2 if it works, else none. note: why there is no bubblewrap."""
    trouble = confine.find_trouble(has_gpu())
    if trouble:
        return Probe(Level.none, f"{note} {trouble}".strip())
    return Probe(Level.landlock, note=note)
