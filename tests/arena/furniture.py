"""Put things into an arena: the ways in which a file can be handed in, and what attacks look for."""

from __future__ import annotations

import json
import marshal
import os
import socket
import stat
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

from tests.arena.specimen import ROOT


def read_solution(problem: str) -> str:
    """Return an honest submission."""
    return (ROOT / "kernels_ref" / problem / "solution.py").read_text(encoding="utf-8")


# --- how a file is handed in -----------------------------------------------------------------------------------------


def _copy(file: Path, place: Path) -> None:
    place.write_bytes(file.read_bytes())


def _link(file: Path, place: Path) -> None:
    """A link to the classmate's file."""
    (classmate,) = place.parent.glob("*_classmate.py")
    place.symlink_to(classmate.name)


def _pipe(file: Path, place: Path) -> None:
    os.mkfifo(place)


def _folder(file: Path, place: Path) -> None:
    place.mkdir()
    _copy(file, place / "__init__.py")


def _socket(file: Path, place: Path) -> None:
    descriptor = os.open(place.parent, os.O_PATH | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{descriptor}/{place.name}")
    os.close(descriptor)


def _device(file: Path, place: Path) -> None:
    """The device /dev/zero, or a pipe where only the superuser may make devices."""
    try:
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        os.mkfifo(place)


def _huge(file: Path, place: Path) -> None:
    """The file, followed by 8 GiB that take no space on the disk."""
    _copy(file, place)
    os.truncate(place, 8 << 30)


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "file": _copy,
    "link": _link,
    "pipe": _pipe,
    "folder": _folder,
    "socket": _socket,
    "device": _device,
    "huge": _huge,
}

# --- what an arena has only for some specimens -----------------------------------------------------------------------


def _plant_verdicts(arena: Path, problem: str) -> None:
    """A file of verdicts that names a submission that passed."""
    path = str(arena / "submissions" / f"{problem}_classmate.py")
    _write(
        arena / "course" / "verdicts.jsonl", json.dumps({"outcome": "passed", "submission": {"path": path}}).encode()
    )


def _plant_clone(arena: Path, problem: str) -> None:
    """A second clone of the course."""
    _write(arena / "course" / "clone" / "kernels_ref" / problem / "solution.py", read_solution(problem).encode())


def _plant_git(arena: Path, problem: str) -> None:
    """The history of a clone, with the solution as an object."""
    text = read_solution(problem).encode()
    _write(arena / "course" / ".git" / "objects" / "4b" / "825d", zlib.compress(b"blob %d\0" % len(text) + text))


def _plant_bytecode(arena: Path, problem: str) -> None:
    """The solution's bytecode without its source."""
    code = compile(read_solution(problem), "solution.py", "exec")
    file = arena / "course" / "__pycache__" / f"solution.{sys.implementation.cache_tag}.pyc"
    _write(file, bytes(16) + marshal.dumps(code))


def _plant_lesson(arena: Path, problem: str) -> None:
    """A lesson with the solution in a cell."""
    cells = [{"cell_type": "code", "source": read_solution(problem).splitlines(keepends=True)}]
    _write(arena / "course" / "lessons" / "05.ipynb", json.dumps({"cells": cells, "nbformat": 4}).encode())


def _plant_shared_memory(arena: Path, problem: str) -> None:
    """A program's file in the machine's shared memory."""
    _write(Path("/dev/shm") / f"{arena.name}-exam", read_solution(problem).encode())


def _plant_slow_bubblewrap(arena: Path, problem: str) -> None:
    """A bubblewrap that does not end in time, as on a machine that swaps."""
    _write_program(arena / "bin" / "bwrap", "exec sleep 600")


def _plant_broken_bubblewrap(arena: Path, problem: str) -> None:
    """A bubblewrap that fails although the machine grants namespaces."""
    _write_program(arena / "bin" / "bwrap", "echo 'bwrap: out of memory' >&2; exit 1")


PLANTS: dict[str, Callable[[Path, str], None]] = {
    "verdicts": _plant_verdicts,
    "clone": _plant_clone,
    "git": _plant_git,
    "bytecode": _plant_bytecode,
    "lesson": _plant_lesson,
    "shared_memory": _plant_shared_memory,
    "slow_bubblewrap": _plant_slow_bubblewrap,
    "broken_bubblewrap": _plant_broken_bubblewrap,
}


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def _write_program(file: Path, commands: str) -> None:
    _write(file, f"#!/bin/sh\n{commands}\n".encode())
    file.chmod(0o755)
