"""Run the autograder for Gradescope in a tree and a control group as small as its default container.

    python benchmarks/validate/gradescope.py [--install] [--json] [--readme]

`grader class autograder` packs a zip for three problems. It is unpacked into a tree as /autograder, setup.sh fills its
cache, and run_autograder grades one submission after another, with at most 768 MB (files in the page cache included,
no swap) and half a processor. "most MB" is the most that the group held at once, page cache included. --install has
setup.sh install Python's packages, for which it needs a network; otherwise the tree's Python has this one's. --json
keeps the figures in data/gradescope.json, --readme writes that file's table into benchmarks/README.md. The exit status
is 1 if a submission gets other points than it should, or takes more than five minutes. Run it as root on a machine with
the control groups' controllers memory and cpu.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section
from grader.classroom.pack_autograder import MEMORY
from tests.grader.classroom.gradescope_tree import add_python, read_results, run_script, unpack_zip

DATA = DATA_FOLDER / "gradescope.json"
SECONDS = 300.0
SETUP_SECONDS = 3600.0
PROCESSORS = 0.5
PERIOD_US = 100_000
PROBLEMS = ("groupnorm", "conv_groupnorm_logsumexp", "conv2d_backward")
RULES = """title = "Kernels"
[points]
build = 10
correct = 50
safe = 20
gradient = 20
""" + "".join(f"[problems.{name}]\n" for name in PROBLEMS)
HEADS = ["handed in", "points", "seconds", "most MB", "the grader was killed"]


@dataclass(frozen=True)
class Case:
    """What a student hands in. file: below the project's folder; "" for nothing. points: that it should get."""

    words: str
    problem: str
    file: str
    points: float


CASES = [
    Case("groupnorm, right", "groupnorm", "kernels_ref/groupnorm/solution.py", 80),
    Case("groupnorm, wrong values", "groupnorm", "tests/specimens/groupnorm_stats_per_position.py", 45),
    Case(
        "conv_groupnorm_logsumexp, right",
        "conv_groupnorm_logsumexp",
        "kernels_ref/conv_groupnorm_logsumexp/solution.py",
        80,
    ),
    Case("conv2d_backward, right", "conv2d_backward", "kernels_ref/conv2d/backward.py", 100),
    Case("nothing", "groupnorm", "", 0),
]


# ---- the container's limits ----


class Group:
    """A control group with the limits, of version 1 or 2. folders: one for each controller, or one for both."""

    def __init__(self, name: str):
        memory, cpu = _find_controller("memory"), _find_controller("cpu")
        self.is_new = (memory / "cgroup.controllers").is_file()
        self.folders = list(dict.fromkeys((memory / name, cpu / name)))
        quota, limit = round(PROCESSORS * PERIOD_US), MEMORY << 20
        for folder in self.folders:
            folder.mkdir()
        if self.is_new:
            limits = {"memory.max": limit, "memory.swap.max": 0, "cpu.max": f"{quota} {PERIOD_US}"}
        else:
            limits = {"memory.limit_in_bytes": limit, "cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": quota}
        for file, value in limits.items():
            folder = self.folders[-1 if file.startswith("cpu") else 0]
            if (folder / file).exists() or file != "memory.swap.max":  # absent where the kernel has no swap
                (folder / file).write_text(str(value))

    def read_most(self) -> float:
        """Return the most memory that the group held at once, in MB."""
        file = "memory.peak" if self.is_new else "memory.max_usage_in_bytes"
        return int((self.folders[0] / file).read_text()) / (1 << 20)

    def count_kills(self) -> int:
        """Return how many of its processes the kernel killed because memory was short."""
        file = "memory.events" if self.is_new else "memory.oom_control"
        lines = (self.folders[0] / file).read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

    def end(self) -> None:
        """Kill what is left in the group, and remove it."""
        for folder in self.folders:
            for number in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(number), 9)
            for _ in range(100):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.05)


def _find_controller(name: str) -> Path:
    """Return the folder in which groups with this controller can be made. UsageError where there is none."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, after = line.split(" - ")
        folder, (kind, _, options) = Path(before.split()[4]), after.split()[:3]
        has_new = kind == "cgroup2" and name in (folder / "cgroup.subtree_control").read_text().split()
        if (has_new or (kind == "cgroup" and name in options.split(","))) and os.access(folder, os.W_OK):
            return folder
    raise click.UsageError(f"No control group with the controller {name} can be made here. Run this as root.")


@contextlib.contextmanager
def limited(name: str) -> Iterator[Group]:
    """Yield a control group with the limits, and remove it afterwards."""
    group = Group(f"gradescope-{os.getpid()}-{name}")
    try:
        yield group
    finally:
        group.end()


# ---- the runs ----


def set_up(folder: Path, install: bool) -> tuple[Path, float]:
    """Pack the zip, unpack it, and run setup.sh. Return the tree and the seconds of setup.sh."""
    (folder / "course.toml").write_text(RULES, encoding="utf-8")
    words = ["class", "autograder", *PROBLEMS, "--to", str(folder / "a.zip"), "--course", str(folder)]
    subprocess.run([sys.executable, "-m", "grader", *words], cwd=ROOT, check=True)
    root = folder / "autograder"
    unpack_zip(folder / "a.zip", root)
    if not install:
        add_python(root)
    begun = time.perf_counter()
    more = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "TORCH_INDEX", "SSL_"))}
    done = run_script(root, "setup.sh", SETUP_SECONDS, more)
    if done.returncode:
        raise click.ClickException(f"setup.sh failed: {(done.stdout + done.stderr)[-2000:]}")
    click.echo(done.stdout.strip())
    return root, time.perf_counter() - begun


def grade(case: Case, root: Path, number: int) -> dict:
    """Have the tree grade what one student hands in."""
    for left in (root / "submission").iterdir():
        left.unlink()
    if case.file:
        shutil.copy(ROOT / case.file, root / "submission" / f"{case.problem}.py")
    with limited(str(number)) as group:
        begun = time.perf_counter()
        run_script(root, "run_autograder", 2 * SECONDS, groups=group.folders)
        seconds = time.perf_counter() - begun
        most, kills = group.read_most(), group.count_kills()
    results = read_results(root)
    return {
        "handed_in": case.words,
        "points": results["score"],
        "expected": case.points,
        "seconds": round(seconds, 1),
        "most_mb": round(most),
        "kills": kills,
        "machine_failed": results["extra_data"]["machine_failed"],
    }


def make_rows(data: dict) -> list[list[str]]:
    """Return cells under HEADS."""
    return [
        [
            run["handed_in"],
            f"{run['points']:g} of {run['expected']:g}" if run["points"] != run["expected"] else f"{run['points']:g}",
            f"{run['seconds']:.0f}",
            str(run["most_mb"]),
            "yes" if run["kills"] else "no",
        ]
        for run in data["runs"]
    ]


def is_good(run: dict) -> bool:
    """Return whether a submission got what it should, in time."""
    return run["points"] == run["expected"] and run["seconds"] <= SECONDS and not run["machine_failed"]


@click.command(help=__doc__)
@click.option("--install", is_flag=True, help="Have setup.sh install Python's packages.")
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/gradescope.json.")
@click.option("--readme", is_flag=True, help="Write the table into benchmarks/README.md.")
def main(install: bool, keep: bool, readme: bool) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that folder and control group are removed
    with tempfile.TemporaryDirectory(prefix="gradescope-") as folder:
        root, seconds = set_up(Path(folder), install)
        data = {"machine": describe_machine(), "installed": install, "setup_seconds": round(seconds, 1), "runs": []}
        for number, case in enumerate(CASES):
            data["runs"].append(grade(case, root, number))
            click.echo(json.dumps(data["runs"][-1]))
    click.echo(f"setup.sh: {seconds:.0f} s")
    show_table(HEADS, make_rows(data))
    if keep:
        DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if readme:
        kept = json.loads(DATA.read_text(encoding="utf-8"))
        source = describe_source(kept["machine"], "validate/gradescope.py --json --readme")
        write_section("gradescope", make_table_with_source(HEADS, make_rows(kept), source))
    sys.exit(not all(map(is_good, data["runs"])))


if __name__ == "__main__":
    main()
