"""Lint a problem file quickly when it is used for the first time, in a process next to the grading."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from grader.paths import KERNELS_REF, ROOT
from simt.toolchain.cache import user_cache

MOST_SECONDS = 10.0  # of the process, which first imports torch
MOST_WAIT_S = 2.0  # for it, where the grading ends earlier


def folder() -> Path:
    """Return the folder with one empty file per problem that was linted."""
    return user_cache() / "grader" / "linted"


@contextlib.contextmanager
def lint_on_first_use(problem: Path | None, settings: Mapping[str, str]) -> Iterator[list[str]]:
    """Lint the problem while the body runs; afterwards the list that this gives holds at most one sentence.

    Nothing happens for the course's own problems, and for a file that was used before with the same content and
    settings. Nothing that goes wrong here is reported: the grading does not depend on it.
    """
    remarks: list[str] = []
    process = _start(problem, settings) if problem is not None else None
    if problem is None or process is None:
        yield remarks
        return
    started = time.monotonic()
    try:
        yield remarks
        left = MOST_SECONDS - (time.monotonic() - started)
        with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError, KeyError):
            text, _ = process.communicate(timeout=min(max(left, 0.1), MOST_WAIT_S))
            remarks += _describe(problem, json.loads(text))
    finally:
        process.kill()
        with contextlib.suppress(OSError, ValueError):
            process.communicate()


def _start(problem: Path, settings: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start `grader lint-problem --quick`; return None where the problem is not to be linted."""
    try:
        path = problem.resolve()
        if path.is_relative_to(KERNELS_REF.resolve()) or not _remember(path, settings):
            return None
        chosen = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        # -P: a submission in the current folder may be called torch.py.
        command = [
            sys.executable,
            "-P",
            "-m",
            "grader",
            "lint-problem",
            "--quick",
            "--json",
            "-",
            *chosen,
            "--",
            str(path),
        ]
        search = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": search, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return None


def _remember(path: Path, settings: Mapping[str, str]) -> bool:
    """Note that a problem is linted; return False if it was before. Raises OSError where nothing can be noted."""
    content = path.read_bytes() + repr(sorted(settings.items())).encode()
    folder().mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(folder() / hashlib.sha256(content).hexdigest(), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def _describe(problem: Path, result: dict) -> list[str]:
    """Return a sentence about the decoys that survived, if there are any."""
    survivors = [one for one in result["outcomes"] if one["status"] == "survived"]
    if not survivors:
        return []
    name = min(survivors, key=lambda one: one["group"] != "constant")["name"]  # the plainest one
    count = len(result["cases"])
    passes = "passes the only case" if count == 1 else f"passes all {count} cases"
    more = f", and {len(survivors) - 1} more" if len(survivors) > 1 else ""
    return [
        f"{problem}: a wrong result {passes} ({name}{more}). Run `grader lint-problem {problem}` to see which "
        "case to add."
    ]
