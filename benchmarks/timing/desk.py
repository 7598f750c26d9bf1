"""Time grader.check for an unchanged kernel and for an edited one, pictures included.

    python benchmarks/timing/desk.py [PROBLEM …]

Each kernel is checked, checked again unchanged, then with an edit that makes it fail, and with an edit that leaves it
right. One-time builds are done before. The exit status is 1 if a check exceeds its bound.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import ROOT

UNCHANGED, EDITED = 1.0, 5.0  # seconds at most

MARK = "// >>> exercise"  # in a kernel's body; problems without it are not timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM")
    options = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # leaves the user's own progress untouched
    import simt
    from grader.problems import problem

    simt.warm_up()
    late = False
    print(f"{'problem':26}{'first':>8}{'unchanged':>11}{'edited, wrong':>15}{'edited, right':>15}   seconds")
    for name in options.problems or [
        name
        for name in problem.names()
        if MARK in (ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8")
    ]:
        times = measure(name)
        print(f"{name:26}{times[0]:8.2f}{times[1]:11.2f}{times[2]:15.2f}{times[3]:15.2f}", flush=True)
        late |= times[1] > UNCHANGED or max(times[2:]) > EDITED
    outcome, load = "MISSED" if late else "kept", os.getloadavg()[0]
    print(f"bounds: unchanged {UNCHANGED:g} s, edited {EDITED:g} s: {outcome}; {os.cpu_count()} cores, load {load:.1f}")
    sys.exit(late)


def measure(name: str) -> list[float]:
    """Return the seconds of the first check, of the same again, of a wrong edit and of a harmless edit."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.py"
        text = (ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8")
        brace = text.index(MARK)
        unique = time.time_ns()
        wrong = text[:brace] + f"if (blockIdx.x == 0) return; int e{unique} = 0; (void)e{unique};\n" + text[brace:]
        right = text[:brace] + f"int f{unique} = 1; (void)f{unique};\n" + text[brace:]
        return [
            check(file, text, "passed"),
            check(file, text, "passed"),
            check(file, wrong, "failed"),
            check(file, right, "passed"),
        ]


def check(file: Path, text: str, outcome: str) -> float:
    """Return the seconds until the check is displayed."""
    import grader

    file.write_text(text, encoding="utf-8")
    begun = time.perf_counter()
    checked = grader.check(file)
    checked._repr_mimebundle_()
    seconds = time.perf_counter() - begun
    assert checked.verdict.outcome == outcome, repr(checked)
    time.sleep(3)  # a student reads, and the spare worker loads torch
    return seconds


if __name__ == "__main__":
    main()
