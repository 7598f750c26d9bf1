"""Time grader.check for an unchanged kernel and for an edited one, pictures included; on a GPU its times as well.

    python benchmarks/timing/desk.py [PROBLEM …]     the exercises of these problems, else all
    python benchmarks/timing/desk.py --json          and write data/desk.json; other machines' and problems' rows stay

Each kernel is checked, checked again unchanged, then with an edit that makes it fail, and with an edit that leaves it
right. The first finding is what the progress bar shows of the failed one, or the verdict. One-time builds are done
before, and on a GPU the first check times the baselines, whose ratios are kept. The exit status is 1 if a check exceeds
its bound.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import ROOT
from grader.notebook import progress_bar

DATA = ROOT / "benchmarks/data/desk.json"
KINDS = ("first", "unchanged", "first finding", "edited, wrong", "edited, right")
# seconds at most of all but the first, without and with a GPU, where an unchanged kernel is timed again
BOUNDS = {"cpu": (1.0, 5.0, 5.0, 5.0), "cuda": (8.0, 3.0, 8.0, 8.0)}
# seconds between two checks: a student reads and edits, and the spare workers load torch
PAUSE = {"cpu": 3, "cuda": 10}

MARK = "// >>> exercise"  # in a kernel's body; problems without it are not timed


@click.command(help=__doc__)
@click.argument("problems", nargs=-1, metavar="[PROBLEM …]")
@click.option("--json", "write", is_flag=True, help="Write the data file.")
def main(problems: tuple[str, ...], write: bool) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # leaves the user's own progress untouched
    import torch

    import simt
    from grader.problems import problem

    simt.warm_up()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    bounds = dict(zip(KINDS[1:], BOUNDS[device]))
    late = []
    print(f"{'problem':26}" + "".join(f"{kind:>15}" for kind in KINDS) + "   seconds")
    for name in problems or [name for name in problem.names() if MARK in read_solution(name)]:
        times: dict[str, float] = dict(zip(KINDS, measure(name)))
        print(f"{name:26}" + "".join(f"{seconds:15.2f}" for seconds in times.values()), flush=True)
        late += [f"{name}, {kind}" for kind, most in bounds.items() if times[kind] > most]
        if write:
            keep(device, name, times)
    said = f"MISSED by {'; '.join(late)}" if late else "kept"
    print(f"bounds {', '.join(f'{kind} {most:g} s' for kind, most in bounds.items())}: {said}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    sys.exit(bool(late))


def read_solution(name: str) -> str:
    return (ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8")


def measure(name: str) -> list[float]:
    """Return the seconds of the first check, of the same again, of a wrong edit and of a harmless edit."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.py"
        text = "# A student's file\n" + read_solution(name)  # else it would be the reference solution itself
        brace = text.index(MARK)
        unique = time.time_ns()
        wrong = text[:brace] + f"if (blockIdx.x == 0) return; int e{unique} = 0; (void)e{unique};\n" + text[brace:]
        right = text[:brace] + f"int f{unique} = 1; (void)f{unique};\n" + text[brace:]
        first, unchanged = (check(file, text, "passed")[1] for _ in range(2))
        return [first, unchanged, *check(file, wrong, "failed"), check(file, right, "passed")[1]]


def check(file: Path, text: str, outcome: str) -> tuple[float, float]:
    """Return the seconds until a finding is shown, and until the check is displayed."""
    import torch

    import grader
    from grader.notebook import check as module

    file.write_text(text, encoding="utf-8")
    shown: list[tuple[float, str]] = []

    @contextlib.contextmanager
    def waiting(name: str):
        with progress_bar.waiting(name) as say:
            yield lambda stage, text: (shown.append((time.perf_counter(), text)), say(stage, text))

    module.waiting = waiting
    begun = time.perf_counter()
    checked = grader.check(file)
    checked._repr_mimebundle_()
    ended = time.perf_counter()
    assert checked.verdict.outcome == outcome, repr(checked)
    said = [stage.message[:30] for stage in checked.verdict.stages if stage.status == "failed"]
    found = next((moment for moment, text in shown if any(words in text for words in said)), ended)
    time.sleep(PAUSE["cuda" if torch.cuda.is_available() else "cpu"])
    return found - begun, ended - begun


def keep(device: str, name: str, times: dict[str, float]) -> None:
    """Write a row of the data file."""
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    kept = data.setdefault(device, {"problems": {}})
    kept["machine"] = describe_machine()
    kept["problems"][name] = {kind: round(seconds, 2) for kind, seconds in times.items()}
    DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
