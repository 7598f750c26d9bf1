"""Send the judge mutated messages in a worker's name, and give it mutated submissions, and count what goes wrong.

    python benchmarks/validate/fuzz.py [--messages N] [--submissions M] [--whole K] [--seed S]

A few gradings are recorded with a real worker. For each mutated message the judge then grades again, with a stand-in
that replays what the worker sent, with one or two messages changed: bytes flipped, fields replaced, cut, repeated,
reordered, late. All submissions pass through the stage "contract" and through the reports, and K of them are graded
whole, by a worker. What counts as wrong: an exception, a verdict `grader_error`, a message that costs the judge more
than a second, a result that passes although its values were changed, and a process, a file or shared memory that is
left over. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import ROOT
from benchmarks.validate import odd_values
from benchmarks.validate.replays import Recording, Script, fast_judge, record, replay
from grader.diagnosis import hints
from grader.judging.grading import Limits, grade
from grader.problems import exercises, problem
from grader.reports import feedback, terminal
from grader.source import contract
from grader.verdict import Outcome, Reason, StageName, Verdict, from_json, to_json
from grader.verdict.schema import Evidence, Stage, Status
from grader.verdict.schema import Submission as Submitted
from grader.worker import protocol, sandbox
from grader.worker.channel import HEADER
from simt.toolchain import cache

SEED = 20261123
WORK_S = 1.0  # processor time that the judge may take for what one message adds
GRADING_S = 30.0  # wall-clock time of one replayed grading, with every limit that it may use up
REPORT_S = 1.0  # processor time for one report
LOOSE = 0.05  # relative distance below which changed values are certainly no other result
RECORDED = (
    ("kernels_ref/groupnorm/solution.py", None),
    ("kernels_ref/groupnorm/backward.py", "groupnorm_backward"),
    ("tests/specimens/groupnorm_eps_twice.py", None),
    ("tests/specimens/groupnorm_missing_barrier.py", None),
    ("tests/specimens/logsumexp_missing_semicolon.py", None),
)


@dataclasses.dataclass
class Counts:
    """What was seen: `seen` how often each kind of result, `wrong` each thing that must not be.

    patience: how many times its limit something may take, on a slow machine.
    """

    patience: float = 1.0

    seen: Counter[str] = dataclasses.field(default_factory=Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)
    longest: dict[str, float] = dataclasses.field(default_factory=dict)

    def time(self, what: str, seconds: float, limit: float, named: str) -> None:
        """Note how long something took; wrong if that is over the limit."""
        self.longest[what] = max(seconds, self.longest.get(what, 0.0))
        if seconds > limit * self.patience:
            self.wrong.append(f"{named}: {what} took {seconds:.1f} s")


# --- messages --------------------------------------------------------------------------------------------------------


def make_script(recording: Recording, dice: random.Random, others: list[bytes]) -> Script:
    """Return the recorded messages with one or two of them mutated, left out or swapped."""
    numbers = [msgspec.msgpack.decode(one)["number"] for one in recording.messages]
    script: Script = [(number, odd_values.frame(one)) for number, one in zip(numbers, recording.messages)]
    for _ in range(dice.choice((1, 1, 1, 2))):
        at = dice.randrange(len(script))
        way = dice.random()
        if way < 0.003:
            script[at] = (script[at][0], None)  # late: nothing more comes
        elif way < 0.06:
            to = dice.randrange(len(script))
            script[at], script[to] = (script[at][0], script[to][1]), (script[to][0], script[at][1])
        elif way < 0.1:
            script[at] = (script[at][0], b"")
        elif way < 0.13:
            script[at] = (0, script[at][1])  # early
        else:
            script[at] = (script[at][0], odd_values.mutate_message(dice, recording.messages[at], others))
    return script


def fuzz_messages(recordings: list[Recording], count: int, seed: int, counts: Counts, report_each: int = 5) -> None:
    """Replay mutated conversations and count what they end as."""
    others = [one for recording in recordings for one in recording.messages if len(one) < 1 << 16]
    with fast_judge():
        base = {str(one.path): _measure_base(one) for one in recordings}
        for number in range(count):
            dice = random.Random(f"{seed} {number}")
            recording = dice.choice(recordings)
            script = make_script(recording, dice, others)
            named = f"message {number} ({recording.path.name})"
            begun, worked = time.monotonic(), time.process_time()
            try:
                verdict = replay(recording, script, dice)
            except Exception:
                counts.wrong.append(f"{named}: grade() raised\n{traceback.format_exc()}")
                continue
            counts.time("judge's own work", time.process_time() - worked - base[str(recording.path)], WORK_S, named)
            counts.time("grading", time.monotonic() - begun, GRADING_S, named)
            counts.seen[f"{verdict.outcome} {verdict.reason or ''}".strip()] += 1
            _judge(recording, script, verdict, named, counts)
            if number % report_each == 0:
                report(verdict, recording.path.read_text(encoding="utf-8"), named, counts)


def _measure_base(recording: Recording) -> float:
    """Return the processor time of the unchanged conversation, the second time."""
    script: Script = [(msgspec.msgpack.decode(one)["number"], odd_values.frame(one)) for one in recording.messages]
    for _ in range(2):
        worked = time.process_time()
        verdict = replay(recording, script, random.Random(0))
        if verdict.outcome is not recording.outcome:
            raise RuntimeError(
                f"{recording.path}: the replayed grading ended as {verdict.reason}: {verdict.first_problem}"
            )
    return time.process_time() - worked


def _judge(recording: Recording, script: Script, verdict: Verdict, named: str, counts: Counts) -> None:
    """Count a verdict that must not be: the grader's own fault, or a pass with other values."""
    if verdict.reason in (Reason.grader_error, Reason.no_compiler, Reason.interrupted, Reason.not_attempted) or (
        verdict.outcome not in (Outcome.passed, Outcome.failed)
    ):
        started = script[0][1] == odd_values.frame(recording.messages[0])
        if started or verdict.reason is not Reason.grader_error:  # before Ready nothing of the submission has run
            counts.wrong.append(f"{named}: ended as {verdict.reason}: {verdict.first_problem}")
    if verdict.outcome is not Outcome.passed:
        return
    if recording.outcome is Outcome.passed:
        if _values_differ(recording, script):
            counts.wrong.append(f"{named}: passed with other values")
    elif "missing_barrier" in recording.path.name:
        counts.seen["passed without its finding (a fact that the worker reports)"] += 1
    else:
        counts.wrong.append(f"{named}: passed")


def _values_differ(recording: Recording, script: Script) -> bool:
    """Return whether some plain mutated message has a tensor that is far from the recorded one."""
    for (_, data), old, counted in zip(script, recording.messages, recording.counted):
        if not counted or data is None or data == odd_values.frame(old) or len(data) != len(odd_values.frame(old)):
            continue
        with contextlib.suppress(msgspec.DecodeError):
            mine = msgspec.msgpack.decode(data[HEADER:], type=protocol.Answer).reply
            theirs = msgspec.msgpack.decode(old, type=protocol.Answer).reply
            if any(_far(a, b) for a, b in zip(_results(mine), _results(theirs))):
                return True
    return False


def _results(reply: protocol.Reply) -> list[protocol.Result]:
    if isinstance(reply, protocol.Outputs):
        return [one for run in reply.runs for one in run.results]
    return [one for one in reply.results if one] if isinstance(reply, protocol.Gradients) else []


def _far(mine: protocol.Result, theirs: protocol.Result) -> bool:
    if mine.data is None or theirs.data is None or mine.data == theirs.data:
        return False
    a, b = (protocol.unraw(one.dtype, one.shape, one.data or b"") for one in (mine, theirs))
    scale = b.double().abs().mean() + b.double().abs()
    same = (a == b) | (a.isnan() & b.isnan())
    return not bool((same | ((a.double() - b.double()).abs() <= LOOSE * scale)).all())


def report(verdict: Verdict, source: str, named: str, counts: Counts) -> None:
    """Show a verdict in every way that there is."""
    worked = time.process_time()
    try:
        from_json(to_json(verdict))
        out = io.StringIO()
        terminal.show(Console(file=out, highlight=False), verdict)
        if "\x1b" in out.getvalue():
            counts.wrong.append(f"{named}: the terminal receives control characters")
        parts = feedback.verdict_parts(verdict, source, _pictures(verdict))
        feedback.as_text(parts)
        if "<script" in feedback.as_html(parts):
            counts.wrong.append(f"{named}: the page receives a script")
        hints.of(verdict)
    except Exception:
        counts.wrong.append(f"{named}: a report raised\n{traceback.format_exc()}")
    counts.time("reports", time.process_time() - worked, REPORT_S, named)


def _pictures(verdict: Verdict) -> list:
    from grader import pictures

    return pictures.explain_verdict(verdict)


# --- submissions -----------------------------------------------------------------------------------------------------

PLACES = (
    *(Reason.wrong_values, Reason.timeout, Reason.crash, Reason.compile_error, Reason.wrong_gradient, Reason.race),
    *(Reason.uninitialized, Reason.barrier_divergence, Reason.launch_error, Reason.illegal_address, Reason.exception),
    *(Reason.constant_output, Reason.not_written, Reason.missing_gradient, Reason.backward_exception),
    *(Reason.gradient_shape, Reason.input_modified, Reason.nondeterministic, Reason.out_of_memory),
)


def fuzz_submissions(texts: list[tuple[str, str]], count: int, whole: int, seed: int, counts: Counts) -> None:
    """Read, parse, check and report mutated submissions; grade the first `whole` of them that parse."""
    model = {name: problem.read(exercises.KERNELS_REF / name / "model.py") for name in {name for name, _ in texts}}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for number in range(count):
            dice = random.Random(f"{seed} submission {number}")
            name, text = dice.choice(texts)
            mutated = odd_values.mutate_source(dice, text, [other for _, other in texts])
            path = Path(folder) / f"{name}_{number}.py"
            path.write_text(mutated, encoding="utf-8", errors="replace", newline="")
            named = f"submission {number}"
            worked = time.process_time()
            try:
                source, broken = contract.read(path)
                tree, broken = (None, broken) if broken else contract.parse(source)
                exercises.is_untouched(source.text, name)
                broken = contract.check(tree, model[name].tree, path.name) if tree is not None else broken
            except Exception:
                counts.wrong.append(f"{named}: the contract's stage raised\n{traceback.format_exc()}")
                continue
            counts.time("contract", time.process_time() - worked, 10 * WORK_S, named)
            counts.seen[f"contract: {broken.reason if broken else 'kept'}"] += 1
            report(_make_verdict(dice, path, name, source), source.text, named, counts)
            if broken is None and whole > 0:
                whole -= 1
                _grade_whole(path, name, named, counts)
            path.unlink()


def _make_verdict(dice: random.Random, path: Path, name: str, source: contract.Source) -> Verdict:
    """Return a failure of a submission that was not run, whose lines the reports look at."""
    stages = [Stage(name=stage, status=Status.skipped, reason=Reason.not_reached) for stage in StageName]
    reason, line = dice.choice(PLACES), dice.choice((None, dice.randrange(1, len(source.lines) + 2)))
    message = dice.choice(
        ("x.", "forward raised ValueError: x", "a segmentation fault", odd_values.make_text(dice)[:400])
    )
    name_of_stage = StageName.gradient if "gradient" in reason or "backward" in reason else StageName.correct
    evidence = Evidence(case="a case", line=line, text=source.line(line) or None, index=[0, 0])
    stages[[*StageName].index(name_of_stage)] = Stage(
        name=name_of_stage, status=Status.failed, reason=reason, message=message, evidence=[evidence]
    )
    return Verdict(
        problem=name, submission=Submitted(path=str(path), sha256=source.sha256), outcome=Outcome.failed, stages=stages,
        device="cpu (x)", versions={}, seed=1, seconds=0.0, sandbox="none",
    )  # fmt: skip


def _grade_whole(path: Path, name: str, named: str, counts: Counts) -> None:
    begun = time.monotonic()
    try:
        verdict = grade(
            path, exercises.KERNELS_REF / name / "model.py", device="cpu", seed=SEED, limits=Limits(own=5.0)
        )
    except Exception:
        counts.wrong.append(f"{named}: grade() raised\n{traceback.format_exc()}")
        return
    counts.seen[f"graded: {verdict.outcome} {verdict.reason or ''}".strip()] += 1
    counts.time("whole grading", time.monotonic() - begun, 600.0, named)
    if verdict.outcome not in (Outcome.passed, Outcome.failed) and verdict.reason is not Reason.not_attempted:
        counts.wrong.append(f"{named}: ended as {verdict.reason}: {verdict.first_problem}")


def read_submissions() -> list[tuple[str, str]]:
    """Return the problem and the text of the solutions, steps, exercises and specimens."""
    paths = [*ROOT.glob("kernels_ref/*/solution.py"), *ROOT.glob("kernels_ref/*/steps/*.py")]
    paths += [*ROOT.glob("kernels_student/*.py"), *ROOT.glob("tests/specimens/*.py")]
    found = []
    for path in sorted(paths):
        model = exercises.model_of(path)
        if model is not None:
            found.append((model.parent.name, path.read_text(encoding="utf-8", errors="replace")))
    return found


# --- what is left over -----------------------------------------------------------------------------------------------


def count_resources() -> dict[str, int]:
    """Return how many processes, threads, descriptors, temporary, shared-memory and cache files there are."""
    cached = [Path(place, name) for place, _, files in os.walk(cache.cache_dir()) for name in files]
    return {
        "processes": len(_workers()),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
        "shared memory": len(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else 0,
        "mounts": len(Path("/proc/self/mounts").read_text().splitlines()),
        "cache files": len(cached),
        "cache MiB": sum(map(_size, cached)) >> 20,
    }


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.lstat().st_size
    return 0


def _workers() -> list[int]:
    """Return the processes that workers of this process still have."""
    mark, found = f"{sandbox.JUDGE}={os.getpid()}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


# --- the command -----------------------------------------------------------------------------------------------------


@click.command(help=__doc__)
@click.option("--messages", default=20_000, show_default=True)
@click.option("--submissions", default=2000, show_default=True)
@click.option("--whole", default=40, show_default=True, help="Submissions that are graded whole.")
@click.option("--seed", default=SEED, show_default=True)
def main(messages: int, submissions: int, whole: int, seed: int) -> None:
    torch.set_num_threads(1)
    counts = Counts()
    with _own_temporary_folder(), tempfile.TemporaryDirectory(prefix="fuzzed-") as folder:
        placed = [_place(ROOT / path, name, Path(folder)) for path, name in RECORDED if messages]
        recordings = [record(path, None, seed) for path in placed]
        before, begun = count_resources(), time.monotonic()
        fuzz_messages(recordings, messages, seed, counts)
        click.echo(f"{messages} mutated messages in {time.monotonic() - begun:.0f} s")
        between, begun = count_resources(), time.monotonic()
        fuzz_submissions(read_submissions(), submissions, whole, seed, counts)
        click.echo(f"{submissions} mutated submissions, {whole} graded whole, in {time.monotonic() - begun:.0f} s")
        after = count_resources()
    for what, number in counts.seen.most_common():
        click.echo(f"{number:8}  {what}")
    click.echo(json.dumps({what: round(seconds, 2) for what, seconds in counts.longest.items()}) + "  longest, s")
    for what, number in before.items():
        click.echo(f"{what}: {number} before, {between[what]} after the messages, {after[what]} at the end")
        if what in ("processes", "temporary files", "shared memory", "mounts") and after[what] > number:
            counts.wrong.append(f"{after[what] - number} {what} are left over")
    for one in counts.wrong[:50]:
        click.echo(one)
    click.echo(f"{len(counts.wrong)} wrong")
    sys.exit(bool(counts.wrong))


@contextlib.contextmanager
def _own_temporary_folder() -> Iterator[None]:
    """Have this process's temporary files made in a folder of its own, where other programs leave none."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
        try:
            yield
        finally:
            tempfile.tempdir = before


def _place(path: Path, name: str | None, folder: Path) -> Path:
    """Return the submission to grade, as a copy where another name says what it answers."""
    if name is None:
        return path
    (folder / f"{name}.py").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return folder / f"{name}.py"


if __name__ == "__main__":
    main()
