"""Finds the line of a kernel that makes values wrong: tries many small edits of it, and sees which make the failing cases come out right.

grader.mutants compiles all edits at once, for the CPU, also where there is a GPU; here they are run one after another on the failing case that
runs fastest, and those that mend it on the others. The right answers stay on this side: the worker runs what it is told to and knows no more.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path

from grader import contract, mutants, sandbox, student, suspects
from grader.mutants import KINDS, Mutant
from grader.verdict import Reason, Stage, StageName, Status, Verdict, spelled

SECONDS = 12.0  # for running edits; it seldom takes one
OWN = 20.0  # seconds for the submission's import and construction, the compiler's time not counted
BUILDS = 3  # tries at most: lines whose edits the compiler refuses are left alone
KERNEL = 0.15, 0.3  # seconds for one launch, as many as 20 runs of the case at hand take: an edit may make a loop endless
SLOW = 0.1  # seconds for one run of a case that is to be of use
POLITE = 10  # added to the niceness of a search's processes
DEATHS = 2  # of a worker, by an edit
PASSING = 4  # cases that were right: an edit must leave them so
CHOSEN = 40  # edits that mend the first case and are tried on the others

VALUES = {
    *(Reason.wrong_values, Reason.non_finite, Reason.not_written, Reason.low_precision, Reason.constant_output, Reason.schedule_dependent),
}
WANTED = VALUES | {Reason.out_of_bounds, Reason.launch_error, Reason.wrong_gradient}
STAGES = {StageName.correct, StageName.gradient}
MEETING = {Reason.race, Reason.uninitialized, Reason.schedule_dependent, Reason.nondeterministic}

# What is said of a line, by the kind of the edit that mends it; it never shows the edit.
SAID = {
    "comparison": "With another comparison in line {line}",
    "index": "With another index in line {line}",
    "variable": "With another variable in line {line}",
    "swapped": "With two variables of line {line} in each other's place",
    "first pass": "If line {line} ran in the first pass of its loop alone",
    "first value": "With a variable of line {line} as it was when it was declared",
    "operator": "With another operator in line {line}",
    "term": "With one term otherwise in line {line}",
    "number": "With another number in line {line}",
    "order": "With lines {line} and {until} the other way round",
    "parentheses": "With parentheses in line {line}",
    "type": "With a larger type in line {line}",
    "outer index": "With one more variable in an index of line {line}",
    "shared loop": "With another loop in line {line}",
    "unused": "With something added in line {line}, where a parameter of the kernel is missing that it uses nowhere",
    "function": "With another function in line {line}",
    "bounds test": "With a bounds test between line {line} and line {until}",
    "barrier": "If the threads wait for each other between line {line} and line {until}",
    "scale": "With a factor more in line {line}",
    "argument": "With something added to an argument in line {line}",
    "call": "Without a call in line {line}",
    "identity": "If the function around line {line} gave back what it is given",
    "each value": "If line {line} were done with each value inside the loop above it, before the values are compared",
    "condition": "With another condition in line {line}",
    "statement": "Without line {line}",
}
MISSING = {"bounds test", "barrier"}  # kinds that name a place between two lines


@dataclasses.dataclass(frozen=True)
class Lead:
    """A line of the file that an edit shows to be wrong. until: of a place between two lines, the second; else 0.

    words: the evidence in a sentence. also: lines where an edit does as well.
    """

    line: int
    until: int
    words: str
    kind: str
    also: tuple[int, ...] = ()


def _told_already(verdict: Verdict) -> bool:
    """Whether the checks name a line themselves, in what explains the failing stage: better than an edit that mends some cases alone."""
    return any(stage.name is StageName.safe and stage.reason and stage.evidence and stage.evidence[0].line for stage in verdict.stages)


class Lost(Exception):
    """The worker died, or did not answer, and there is no other."""


def wanted(verdict: Verdict) -> bool:
    """Whether a search makes sense: values are wrong, or a kernel went wrong at a line that may not be the cause."""
    stage = verdict.first_problem
    return stage is not None and stage.name in STAGES and stage.reason in WANTED


def lead(
    path: str | Path, text: str, problem: str | Path, verdict: Verdict, start: Callable[..., sandbox.Process] = sandbox.start,
    progress: Callable[[str], None] | None = None,
) -> Lead | None:  # fmt: skip
    """The line to look at, with evidence; None where no edit mends anything.

    path, text: the submission. problem: its model.py. verdict: the judge's. start: as sandbox.start. progress: called with a few words.
    """
    if not wanted(verdict):
        return None
    search = Search(contract.Source(Path(path), text, verdict.submission.sha256), verdict.problem, start, progress or (lambda words: None))
    try:
        search.prepare()
        if not search.edits:
            return None
        search.run(verdict.reason, search.instances(Path(problem), verdict))
        return search.said(verdict)
    except (Lost, sandbox.SandboxError):
        return None
    finally:
        search.close()


@dataclasses.dataclass
class _Edit:
    """How an edit did. mended: failing cases that it mends."""

    mutant: Mutant
    line: int  # of the file
    until: int
    mended: int = 0
    kept: bool = True


@dataclasses.dataclass
class Tried:
    """A case on the CPU: its inputs, what is right, how far off is still right. problem: what it is a case of. fails: whether it did.

    truth: where backward is tried and what is right is gradients, what it is given and for what; else None.
    """

    problem: object
    instance: object
    expected: list
    eager: list
    allowed: list
    case: object
    fails: bool
    truth: object = None
    seconds: float = 0.0


def chosen(cases: list, went: dict[str, Status]) -> list:
    """The failing cases, and after them some that passed. went: by a case's name."""
    failed = [case for case in cases if went.get(case.name) is Status.failed]
    return failed + [case for case in cases if went.get(case.name) is Status.passed][:PASSING]


def all_tried(problem, stage: Stage, trials: list) -> list[Tried]:
    """What an edit is tried on: of a stage's cases those that failed and some that passed; with backward, forward must stay right too.

    trials: the judge's, with what is right of each case.
    """
    went = {case.name: case.status for case in stage.cases}
    by_name = {trial.case.name: trial for trial in trials}
    picked = [by_name[case.name] for case in chosen([trial.case for trial in trials], went)]
    if stage.name is StageName.correct:
        return [tried(problem, trial, went[trial.case.name] is Status.failed) for trial in picked]
    picked = [trial for trial in picked if trial.truth is not None]
    back = [tried_back(problem, trial, went[trial.case.name] is Status.failed) for trial in picked]
    return back + [tried(problem, trial, False) for trial in picked[:PASSING]]


def tried(problem, trial, fails: bool) -> Tried:
    """A case with what an edit's outputs are held against."""
    from grader import compare

    case, reduction = trial.case, trial.case.reduction or compare.DEFAULT_REDUCTION
    precision = getattr(case, "precision", "fp32")
    allowed = [compare.tolerance(y, e, reduction, n, precision) for y, e, n in zip(trial.expected, trial.eager, trial.noise)]
    return Tried(problem, trial.instance, trial.expected, trial.eager, allowed, case, fails)


def tried_back(problem, trial, fails: bool) -> Tried:
    """A case with what an edit's gradients are held against."""
    from grader import compare

    right = trial.truth
    allowed = [compare.tolerance(*each) for each in zip(right.expected, right.eager, right.reductions, right.noise)]
    return Tried(problem, trial.instance, right.expected, right.eager, allowed, trial.case, fails, right)


class Search:
    """The search in its steps: prepare, run, said. Each but the last talks to a worker and raises Lost where that dies too often.

    exercise: what the file answers; lines of its stub are left as they are. start: as sandbox.start. progress: called with a few words.
    edits: by number, once they are built.
    """

    def __init__(
        self, source: contract.Source, exercise: str = "", start: Callable = sandbox.start, progress: Callable[[str], None] = lambda words: None
    ):  # fmt: skip
        self.source, self.start, self.progress = source, start, progress
        self.given = student.given_lines(source.text, exercise)
        self.process: sandbox.Process | None = None
        self.client = self.order = self.trial = None
        self.deaths = self.tried = self.tested = 0
        self.strings: list[str] = []
        self.edits: dict[int, _Edit] = {}
        self.good: list[_Edit] = []
        self.birth: int | None = None

    def prepare(self) -> None:
        """Start a worker, find the kernels' sources, compile all edits of them."""
        self.open()
        self.strings = self._strings()
        self.edits = self._built(self.strings) if self.strings else {}

    def run(self, reason: Reason | None, cases: list[Tried]) -> None:
        """Find the edits that mend what fails. reason: of the stage. cases: the failing ones, and some that passed."""
        trials = self._timed(cases)
        first = next((trial for trial in trials if trial.fails), None)
        if first is None:
            return
        if reason is Reason.non_finite:
            self.birth = self._born(first)
            if self.birth:
                return
        self.good = self._mending(first)
        self.tested = 1
        for trial in trials:
            if trial is not first and self.good:
                self.good = self._narrowed(trial, self.good)
                self.tested += trial.fails
        if first.truth is not None and self.good and 2 * self.good[0].mended < self.tested:
            self.good = []  # many an edit mends a case whose gradients are nearly 0

    def said(self, verdict: Verdict) -> Lead | None:
        """What was found, in words. verdict: the judge's; where threads met, a barrier is likelier."""
        if self.birth:
            return Lead(self.birth, 0, f"The first value that is no finite number comes out of line {self.birth}, from numbers that are.", "birth")
        if not self.good or (self.good[0].mended < self.tested and _told_already(verdict)):
            return None
        return self._said(verdict, self.good)

    # -- the worker --

    def open(self) -> None:
        """Starts a worker on the CPU, whatever the machine has."""
        from grader.client import Client, NotStarted

        self.process = self.start(self.source.path, gpu=False, builds=sandbox.extensions(self.source.sha256), required=False)
        with contextlib.suppress(OSError, AttributeError):  # what somebody waits for comes first
            os.setpriority(os.PRIO_PGRP, self.process.popen.pid, POLITE)
        self.client = Client(self.process, self.source.path.resolve(), lambda words: self.progress(words), 120.0)
        try:
            self.client.wait_until_ready()
        except NotStarted as error:
            raise Lost(str(error)) from None

    def close(self) -> None:
        """Ends the worker."""
        if self.process is not None:
            self.process.kill()

    def ask(self, command, seconds: float = OWN, extra: int = 0):
        """The worker's reply. Lost if there is none."""
        from grader.client import Gone, Late

        try:
            return self.client.ask(command, seconds, extra)
        except (Gone, Late) as error:
            raise Lost(str(error)) from None

    def build(self, instead: dict[str, str]):
        """Import the submission, with other CUDA sources."""
        from grader import channel

        self.order = channel.Build(self.source.text, spelled(str(self.source.path.resolve())), OWN, instead)
        return self.ask(self.order)

    def model(self, trial: Tried) -> None:
        """ModelNew for a case."""
        from grader import channel

        self.trial, instance = trial, trial.instance
        self.ask(
            channel.Construct(
                args=channel.pack(list(instance.init_args)), kwargs=channel.pack(dict(instance.init_kwargs)),
                state={name: channel.pack(value) for name, value in instance.model.state_dict().items()},
                model_source=trial.problem.path.read_text(encoding="utf-8"), model_path=str(trial.problem.path),
                overrides=channel.pack(dict(trial.case.set) | trial.problem.overrides), guard="end", seconds=OWN,
            )
        )  # fmt: skip

    def call(self, mutant: int):
        """The worker's reply for the case in hand with an edit in force; None if it died of it: then another worker takes its place."""
        from grader import channel

        size, right = sum(t.numel() * t.element_size() for t in self.trial.eager), self.trial.truth
        inputs = [channel.pack(value) for value in self.trial.instance.inputs]
        limit = min(max(20 * self.trial.seconds, KERNEL[0]), KERNEL[1]) if self.trial.seconds else KERNEL[1]
        how = dict(outputs=[], schedule="forward", guard="end", kernel_seconds=limit, seconds=OWN, max_bytes=4 * size + (1 << 20), mutant=mutant)
        if right is None:
            command = channel.Forward(batches=[inputs], **how)
        else:
            upstream = [channel.pack(value) for value in right.upstream]
            command = channel.Gradient(inputs, right.inputs, right.parameters, upstream, strided=False, other=[], **how)
        try:
            return self.ask(command, 5.0, 8 * size + (2 << 20))
        except Lost:
            self.deaths += 1
            if self.deaths > DEATHS:
                raise
            trial = self.trial
            self.close()
            self.open()
            self.ask(self.order)
            self.model(trial)
            return None

    # -- what is tried, and on what --

    def instances(self, path: Path, verdict: Verdict) -> list[Tried]:
        """The cases to try, made anew on the CPU. path: of the problem's model.py."""
        from grader import problem as problems
        from grader.gradient import truth
        from grader.judge import Trial

        problem, stage = problems.read(path), verdict.first_problem
        went = {case.name: case.status for case in stage.cases}
        trials = []
        for case in chosen(problem.cases(), went):
            instance = problem.instantiate(case, verdict.seed, "cpu")
            trials.append(Trial(case, instance, instance.expected(), instance.eager(), instance.noise()))
            if stage.name is StageName.gradient:
                trials[-1].truth = truth(problem, trials[-1], verdict.seed)
        return all_tried(problem, stage, trials)

    def _strings(self) -> list[str]:
        """The CUDA sources with kernels that the submission compiles."""
        from grader.channel import Failure

        if isinstance(self.build({}), Failure):
            return []
        found: list[str] = []
        for labels in reversed(self.client.sources):
            parts = [text for label, text in labels.items() if label.startswith("cuda_sources[")] or [labels.get("cuda_sources", "")]
            found += [text for text in parts if "__global__" in text and text not in found]
        return found

    def _given(self, string: str) -> set[int]:
        """Lines of a CUDA source that the student was given: the mistake is in another."""
        return {n for n in range(1, string.count("\n") + 2) if contract.locate(self.source, string, n) in self.given} if self.given else set()

    def _built(self, strings: list[str]) -> dict[int, _Edit]:
        """Builds all edits into one extension; the edits by number, at their lines of the file."""
        from grader.channel import Failure

        skip = {string: self._given(string) for string in strings}
        for _ in range(BUILDS):
            instead, edits, number = {}, {}, 1
            for position, string in enumerate(strings):
                text, made = mutants.schema(string, number, skip[string], prelude=position == 0)
                instead[string], number = text, number + len(made)
                for mutant in made:
                    line = contract.locate(self.source, string, mutant.line)
                    until = contract.locate(self.source, string, mutant.until) if mutant.until else 0
                    if line:
                        edits[mutant.number] = _Edit(mutant, line, until or 0)
            reply = self.build(instead)
            if not isinstance(reply, Failure):
                return edits
            refused = {note.line for note in reply.notes if note.line}
            if not refused:
                return {}
            for string in strings:
                skip[string] |= refused
        return {}

    def _timed(self, cases: list[Tried]) -> list[Tried]:
        """The cases that run quickly and go as they went, quickest first."""
        found = []
        for trial in cases:
            self.model(trial)
            begun = time.monotonic()
            right = self._right(0)
            trial.seconds = time.monotonic() - begun
            if trial.seconds < SLOW and right is not trial.fails:
                found.append(trial)
        return sorted(found, key=lambda trial: trial.seconds)

    # -- the search --

    def _mending(self, trial: Tried) -> list[_Edit]:
        """The edits that mend a case. Of a gradient, those of forward's kernels are tried only where none of backward's does."""
        started = time.monotonic()
        self.model(trial)
        good = []
        often = collections.Counter(edit.mutant.kind for edit in self.edits.values())
        behind = suspects.backward_lines(self.source.text) if trial.truth is not None else set()
        for edit in sorted(self.edits.values(), key=lambda edit: (edit.line not in behind, often[edit.mutant.kind])):
            if time.monotonic() - started > SECONDS or (good and behind and edit.line not in behind):
                break
            self.tried += 1
            if self._right(edit.mutant.number):
                edit.mended = 1
                good.append(edit)
        return good

    def _narrowed(self, trial: Tried, good: list[_Edit]) -> list[_Edit]:
        """Of the edits those that do best on one case more."""
        self.model(trial)
        for edit in good[: max(CHOSEN, int(1.0 / max(trial.seconds, 1e-3)))]:
            right = self._right(edit.mutant.number)
            edit.mended += right and trial.fails
            edit.kept &= right or trial.fails
        best = max((edit.mended for edit in good if edit.kept), default=0)
        return [edit for edit in good if edit.kept and edit.mended == best]

    @staticmethod
    def _order(edit: _Edit, verdict: Verdict) -> int:
        """Where the checks found threads that meet, a missing barrier is likelier than anything else."""
        meet = any(stage.reason in MEETING for stage in verdict.stages)
        return -1 if meet and edit.mutant.kind == "barrier" else KINDS.index(edit.mutant.kind)

    @staticmethod
    def _span(best: _Edit, good: list[_Edit]) -> tuple[int, int]:
        """The place of the best edit, with the places beside it where a barrier does as well."""
        line, until = best.line, best.until
        beside = [edit for edit in good if edit.mutant.kind == best.mutant.kind == "barrier" and edit.mutant.depth == best.mutant.depth]
        for _ in beside:
            for edit in beside:
                if edit.until == line or edit.line == until:
                    line, until = min(line, edit.line), max(until, edit.until)
        return line, until

    @staticmethod
    def _distance(edit: _Edit, verdict: Verdict) -> tuple[int, bool, int]:
        """Of barriers that all do, the one outside of inner loops, soon behind the line where threads met."""
        met = [stage.evidence[0].line for stage in verdict.stages if stage.reason in MEETING and stage.evidence and stage.evidence[0].line]
        if edit.mutant.kind != "barrier" or not met:
            return 0, False, 0
        return edit.mutant.depth, edit.until < met[0], abs(edit.until - met[0])

    def _right(self, number: int) -> bool:
        """Whether the case in hand comes out right with an edit."""
        from grader import channel

        reply, trial = self.call(number), self.trial
        runs = reply.runs if isinstance(reply, channel.Outputs) else [reply] if isinstance(reply, channel.Gradients) else []
        if len(runs) != 1 or len(runs[0].results) != len(trial.eager):
            return False
        for result, expected, eager, allowed in zip(runs[0].results, trial.expected, trial.eager, trial.allowed):
            if result is None or result.data is None or list(eager.shape) != result.shape or channel.name_of(eager.dtype) != result.dtype:
                return False
            try:
                got = channel.unraw(result.dtype, result.shape, result.data).double()
            except channel.ChannelError:
                return False
            same_infinities = got == expected
            if not bool((((got - expected).abs() <= allowed) | same_infinities).all()):
                return False
        return True

    def _born(self, trial: Tried) -> int | None:
        """The line whose operation is the first to make infinity or NaN of finite numbers."""
        from grader.channel import Failure

        self.model(trial)
        reply = self.call(mutants.BIRTH)
        if not isinstance(reply, Failure) or "`finite`" not in reply.message or not reply.source_line:
            return None
        return next((line for string in self.strings if (line := contract.locate(self.source, string, reply.source_line))), None)

    def _said(self, verdict: Verdict, good: list[_Edit]) -> Lead:
        """The likeliest edit in words."""
        good = sorted(good, key=lambda edit: (self._order(edit, verdict), *self._distance(edit, verdict), edit.line))
        best = good[0]
        kind = best.mutant.kind
        also = tuple(dict.fromkeys(edit.line for edit in good if edit.line not in (best.line, best.until)))
        line, until = self._span(best, good)
        opening = SAID["variable" if kind == "order" and until == line else kind].format(line=line, until=until)
        failing = sum(case.status is Status.failed for case in verdict.first_problem.cases)
        which = "the failing case comes" if failing == 1 else "the failing cases come" if best.mended == self.tested else "some of the failing cases come"
        more = f" So {'it does' if failing == 1 else 'they do'} with an edit of line {also[0]}." if len(also) == 1 and kind not in MISSING else ""
        return Lead(line, until if kind in MISSING | {"order"} else 0, f"{opening}, {which} out right.{more}", kind, also)
