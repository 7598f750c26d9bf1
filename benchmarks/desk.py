"""Prints how long grader.check takes for an unchanged kernel and for an edited one, pictures included. Exit status 1 beyond the limits.

`python benchmarks/desk.py [PROBLEM ...]` (all of them without a name). Each kernel is checked, checked again as it is, then with one line
of a kernel changed so that it fails, and with another so that it passes. What a machine builds once is built before.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

UNCHANGED, EDITED = 1.0, 5.0  # seconds at most

MARK = "// >>> exercise"  # stands in a kernel's body; other exercises are not timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM")
    options = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # the student's own progress is none of ours
    import simt

    from grader import problem

    simt.warm_up()
    late = False
    print(f"{'problem':26}{'first':>8}{'unchanged':>11}{'edited, wrong':>15}{'edited, right':>15}   seconds")
    for name in options.problems or [name for name in problem.names() if MARK in (ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8")]:
        times = measure(name)
        print(f"{name:26}{times[0]:8.2f}{times[1]:11.2f}{times[2]:15.2f}{times[3]:15.2f}", flush=True)
        late |= times[1] > UNCHANGED or max(times[2:]) > EDITED
    print(f"limits: unchanged {UNCHANGED:g} s, edited {EDITED:g} s: {'MISSED' if late else 'kept'}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    sys.exit(late)


def measure(name: str) -> list[float]:
    """Seconds of the first check, of the same again, of a kernel with a wrong line, of one with a line that changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.py"
        text = (ROOT / "kernels_ref" / name / "solution.py").read_text(encoding="utf-8")
        brace = text.index(MARK)
        unique = time.time_ns()
        wrong = text[:brace] + f"if (blockIdx.x == 0) return; int e{unique} = 0; (void)e{unique};\n" + text[brace:]
        right = text[:brace] + f"int f{unique} = 1; (void)f{unique};\n" + text[brace:]
        return [check(file, text, "passed"), check(file, text, "passed"), check(file, wrong, "failed"), check(file, right, "passed")]


def check(file: Path, text: str, outcome: str) -> float:
    """Seconds until the check is displayed."""
    import grader

    file.write_text(text, encoding="utf-8")
    begun = time.perf_counter()
    checked = grader.check(file)
    checked._repr_mimebundle_()
    seconds = time.perf_counter() - begun
    assert checked.verdict.outcome == outcome, repr(checked)
    time.sleep(3)  # a student reads; the next worker loads torch meanwhile
    return seconds


if __name__ == "__main__":
    main()
