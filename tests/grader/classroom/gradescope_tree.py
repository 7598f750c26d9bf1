"""A tree as Gradescope's /autograder, made from the zip that `grader class autograder` packs, and its two scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEPT = ("HOME", "LANG", "GRADER_SANDBOX")


def unpack_zip(file: Path, root: Path) -> None:
    """Unpack the zip into root/source, with the modes of its files, and make root/submission."""
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            Path(archive.extract(info, root / "source")).chmod((info.external_attr >> 16) & 0o777)
    (root / "submission").mkdir()


def add_python(root: Path) -> None:
    """Make the Python that setup.sh would install; it has this one's packages."""
    venv = root / "source" / "venv"
    if venv.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    packages = venv / "lib" / Path(sysconfig.get_paths()["purelib"]).parent.name / "site-packages"
    (packages / "more.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")


def run_script(
    root: Path, name: str, seconds: float, more: dict[str, str] | None = None, enter: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run setup.sh or run_autograder as Gradescope does. more: variables. enter: called in the new process."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = kept | {"PATH": "/usr/local/bin:/usr/bin:/bin", "AUTOGRADER": str(root)} | (more or {})
    return subprocess.run(
        [root / "source" / name],
        cwd=root,  # else Python would import this project's own packages
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        preexec_fn=enter,
        check=False,
    )


def read_results(root: Path) -> dict[str, Any]:
    """Return what the run left for Gradescope."""
    return json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))
