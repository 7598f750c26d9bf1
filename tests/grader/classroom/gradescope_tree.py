"""A tree as Gradescope's /autograder, made from the zip that `grader class autograder` packs, and its two scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.worker import supervisor

# $1: the script; the rest: control groups. The supervisor itself stays outside, as it takes memory.
ENTER = 'script=$1; shift; for group; do echo 0 > "$group/cgroup.procs" || exit 70; done; exec "$script"'
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
    root: Path, name: str, seconds: float, more: dict[str, str] | None = None, groups: Sequence[Path] = ()
) -> subprocess.CompletedProcess[str]:
    """Run setup.sh or run_autograder as Gradescope does. more: variables. groups: control groups to run it in.

    All that it starts, compilers among them, ends with it, and if it runs for longer or this process is killed. Raises
    subprocess.TimeoutExpired.
    """
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = kept | {"PATH": "/usr/local/bin:/usr/bin:/bin", "AUTOGRADER": str(root)} | (more or {})
    reader, writer = os.pipe()
    plan = supervisor.Plan(
        command=["/bin/sh", "-c", ENTER, "sh", str(root / "source" / name), *map(str, groups)],
        judge=os.getpid(),
        pipe=reader,
        descriptors=[],
        group="",
        confinement=None,
        folders=[],
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__, json.dumps(plan)],
        cwd=root,  # else Python would import this project's own packages
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=(reader,),
        start_new_session=True,  # Ctrl-C is for this process, which has it ended
    )
    os.close(reader)
    try:
        out, messages = process.communicate(timeout=seconds)
    finally:
        os.close(writer)
        process.wait()
    return subprocess.CompletedProcess([name], process.returncode, out, messages)


def read_results(root: Path) -> dict[str, Any]:
    """Return what the run left for Gradescope."""
    return json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))
