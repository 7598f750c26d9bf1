"""Find the line of a kernel that makes values wrong: run many mutants of it and keep those with which cases pass.

grader.diagnosis.mutants compiles all mutants at once, for the CPU, even on a machine with a GPU. This module runs them
one after another on the fastest failing case, and those that make it pass on the other cases. The expected outputs stay
in this process; the worker never sees them.
"""

from __future__ import annotations

import collections
import re
import time
from collections.abc import Callable
from pathlib import Path

from grader.diagnosis import effects, mutants, value_effects
from grader.diagnosis.backward_kernels import backward_lines, gradient_lines
from grader.diagnosis.leads import Candidate, Lead, make_birth_lead, make_lead
from grader.diagnosis.mutant_worker import MutantWorker, WorkerLost
from grader.diagnosis.search_cases import SearchCase, choose_cases, make_search_cases
from grader.problems import exercises
from grader.source import contract
from grader.verdict import Reason, Stage, StageName, Verdict
from grader.worker import sandbox

__all__ = ["WANTED", "Lead", "Search", "lead", "wanted"]

SEARCH_SECONDS = 12.0  # for running mutants on one case; it seldom takes one second
MOST_BUILDS = 3  # each later build leaves out the lines whose mutants the compiler rejected
SLOW_SECONDS = 0.1  # for one run of a case: with a slower one, few mutants can be tried
SLOWEST_SECONDS = 0.5  # of the fastest failing case, where none is faster: it tries the rare kinds, which come first
MOST_LATE = 3  # mutants tried once more, if none makes the first case pass
MOST_CHOSEN = 40  # mutants that make the first case pass and are tried on the others
# A kernel whose blocks wait for one another, or race, may pass in one run and fail in the next:
REPEATED = 10  # runs of each failing case, which show whether it always fails
REPEATED_SECONDS = 0.2  # for these runs of one case
LEAST_REPEATED = 2  # of these runs, where a case is slow
OFTEN = 0.5  # of these runs: with a case that passes more often, no mutant proves anything

VALUE_REASONS = {
    *(
        Reason.wrong_values,
        Reason.non_finite,
        Reason.not_written,
        Reason.low_precision,
        Reason.constant_output,
        Reason.schedule_dependent,
    ),
}
WANTED = VALUE_REASONS | {Reason.out_of_bounds, Reason.launch_error, Reason.wrong_gradient}
STAGES = {StageName.correct, StageName.gradient}


def wanted(verdict: Verdict) -> bool:
    """Return whether a search makes sense: values are wrong, or a kernel failed at a line that may not be the cause."""
    stage = verdict.first_problem
    return stage is not None and stage.name in STAGES and stage.reason in WANTED


def lead(
    path: str | Path,
    text: str,
    problem: str | Path,
    verdict: Verdict,
    start: Callable[..., sandbox.Process] = sandbox.start,
    progress: Callable[[str], None] | None = None,
) -> Lead | None:
    """Return the line to blame, with evidence; None if no mutant makes a case pass.

    path, text: the submission. problem: its model.py. verdict: the judge's. start: as sandbox.start. progress: called
    with a few words.
    """
    if not wanted(verdict):
        return None
    source = contract.Source(Path(path), text, verdict.submission.sha256)
    search = Search(source, verdict.problem, start, progress or (lambda words: None))
    try:
        search.prepare()
        if not search.candidates:
            return None
        search.run(verdict.reason, remake_cases(Path(problem), verdict), failed_gradient(verdict.first_problem))
        return search.best_candidate(verdict)
    except (WorkerLost, sandbox.SandboxError):
        return None
    finally:
        search.close()


def failed_gradient(stage: Stage | None) -> str | None:
    """Return the input or weight whose gradient a stage names."""
    return stage.evidence[0].gradient if stage is not None and stage.evidence else None


def remake_cases(path: Path, verdict: Verdict) -> list[SearchCase]:
    """Return the cases to try, made on the CPU from the verdict's seed. path: of the problem's model.py."""
    from grader.judging.gradients import compute_expected_gradients
    from grader.judging.trial import prepare_trial
    from grader.problems import problem as problems

    problem, stage = problems.read(path), verdict.first_problem
    assert stage is not None and verdict.seed is not None
    went = {case.name: case.status for case in stage.cases}
    trials = []
    for case in choose_cases(problem.cases(), went):
        instance = problem.instantiate(case, verdict.seed, "cpu")
        trials.append(prepare_trial(case, instance))
        if stage.name is StageName.gradient:
            trials[-1].gradients = compute_expected_gradients(problem, trials[-1], verdict.seed)
    return make_search_cases(problem, stage, trials)


def leave_own_braces(text: str, given: set[int]) -> set[int]:
    """Return the given lines without those of a lone } that closes lines of the student's.

    Any } looks like one of the exercise's, and a barrier may be missing after it.
    """
    kept, last = set(), False  # whether the last line with code is given
    for number, line in enumerate(text.split("\n"), 1):
        if number in given and (last or line.strip() != "}"):
            kept.add(number)
        last = number in kept if line.strip() else last
    return kept


class Search:
    """The search in its steps: prepare, run, best_candidate. Each but the last raises WorkerLost.

    exercise: its name; lines that it gives to students are not mutated. start: as sandbox.start. progress: called with
    a few words. candidates: by the mutant's number, once they are built.
    """

    def __init__(
        self,
        source: contract.Source,
        exercise: str = "",
        start: Callable[..., sandbox.Process] = sandbox.start,
        progress: Callable[[str], None] = lambda words: None,
    ):
        self.source = source
        self.worker = MutantWorker(source, start, progress)
        self.given = leave_own_braces(source.text, exercises.given_lines(source.text, exercise))
        self.tested = 0  # failing cases
        self.strings: list[str] = []
        self.candidates: dict[int, Candidate] = {}
        self.good: list[Candidate] = []
        self.birth: tuple[int, str] | None = None  # the line, and "NaN" or "infinity"

    def prepare(self) -> None:
        """Start a worker, find the kernels' sources, compile all mutants of them."""
        self.worker.open()
        self.strings = self._find_sources()
        self.candidates = self._build(self.strings) if self.strings else {}

    def close(self) -> None:
        """End the worker."""
        self.worker.close()

    def run(self, reason: Reason | None, cases: list[SearchCase], gradient: str | None = None) -> None:
        """Find the mutants with which the failing cases pass.

        reason: of the stage. cases: the failing ones and some that passed. gradient: the one that the stage names.
        """
        in_order, cases = cases, self._choose_fast(cases)
        first = next((case for case in cases if case.fails), None)
        if first is None:
            return
        chosen = {id(case) for case in cases}
        shown = next(case for case in in_order if case.fails and id(case) in chosen)  # the one that the verdict shows
        if reason is Reason.non_finite:
            self.birth = self._find_birth(shown)
            if self.birth and value_effects.is_cause(*self.birth, self.source.text.split("\n")):
                return
        self.good = self._find_good(first, gradient)
        self.tested = 1
        for case in cases:
            if case is not first and self.good:
                self.good = self._narrow(case, self.good)
                self.tested += case.fails
        if first.gradients is not None and self.good and 2 * self.good[0].passed < self.tested:
            self.good = []  # a case whose gradients are nearly 0 passes with many mutants
        for case in cases:
            if case.fails and self.good:
                self.good = self._leave_out_lucky(case, self.good)

    def best_candidate(self, verdict: Verdict) -> Lead | None:
        """Return the line to blame. verdict: the judge's; if it found a race, a missing barrier is likelier."""
        code = self.source.text.split("\n")
        self.good = [
            one
            for one in self.good
            if one.mutant.kind != "number"
            or not (
                value_effects.leaves_the_warp(one.mutant.what, one.mutant.needed, one.line, code)
                or value_effects.undoes_sharing(one.mutant.what, one.mutant.needed, one.line, code)
            )
        ]
        if self.birth and not (self.good and self.good[0].passed == self.tested):
            return make_birth_lead(*self.birth, self.source.text)
        if not self.good or (self.good[0].passed < self.tested and _checks_name_a_line(verdict)):
            return None
        if self.good[0].passed < self.tested and (
            self._hides_exponent() or self._has_numbers_alone() or self._has_few_or_scattered()
        ):
            return None
        lead = make_lead(self.good, self.tested, verdict, self.source.text)
        return make_birth_lead(*self.birth, self.source.text) if self.birth and lead is None else lead

    def _hides_exponent(self) -> bool:
        """Return whether the best candidates only change what is subtracted in the argument of exp.

        Without it the cases of small values pass, whatever is wrong with the maximum.
        """
        code = self.source.text.split("\n")
        return all(
            (one.mutant.kind == "argument" and one.mutant.what in ("exp", "expf"))
            or effects.is_in_exponent(one.mutant.what, one.line, code)
            for one in self.good
            if one.passed == self.good[0].passed
        )

    def _has_numbers_alone(self) -> bool:
        """Return whether the best candidates only change numbers: with another one, some cases pass by chance."""
        return all(one.mutant.kind == "number" for one in self.good if one.passed == self.good[0].passed)

    def _has_few_or_scattered(self) -> bool:
        """Return whether the best candidates make less than half of the cases pass, or change several lines.

        A case of few elements passes with many mutants that have nothing to do with the mistake. A barrier may help in
        several places next to each other.
        """
        best = [one for one in self.good if one.passed == self.good[0].passed]
        lines = {one.line for one in best if one.mutant.kind != "barrier"}
        return 2 * self.good[0].passed < self.tested or len(lines) > 1

    def _find_sources(self) -> list[str]:
        """Return the CUDA sources with kernels that the submission compiles."""
        from grader.worker.protocol import Failure

        if isinstance(self.worker.build({}), Failure):
            return []
        found: list[str] = []
        for labels in reversed(self.worker.client.sources):
            parts = [text for label, text in labels.items() if label.startswith("cuda_sources[")] or [
                labels.get("cuda_sources", "")
            ]
            found += [text for text in parts if "__global__" in text and text not in found]
        return found

    def _find_given(self, string: str) -> set[int]:
        """Return the lines of a CUDA source that the exercise gave the student: the mistake is in another line."""
        if not self.given:
            return set()
        numbers = range(1, string.count("\n") + 2)
        return {n for n in numbers if contract.locate(self.source, string, n) in self.given}

    def _build(self, strings: list[str]) -> dict[int, Candidate]:
        """Build all mutants into one extension; return them by number, at their lines of the file."""
        from grader.worker.protocol import Failure

        skip = {string: self._find_given(string) for string in strings}
        for _ in range(MOST_BUILDS):
            instead, candidates, number = {}, {}, 1
            for position, string in enumerate(strings):
                text, made = mutants.schema(string, number, skip[string], prelude=position == 0)
                instead[string], number = text, number + len(made)
                for mutant in made:
                    line = contract.locate(self.source, string, mutant.line)
                    until = contract.locate(self.source, string, mutant.until) if mutant.until else 0
                    if line:
                        candidates[mutant.number] = Candidate(mutant, line, until or 0)
            reply = self.worker.build(instead)
            if not isinstance(reply, Failure):
                return candidates
            refused = {note.line for note in reply.notes if note.line}
            if not refused:
                return {}
            for string in strings:
                skip[string] |= refused
        return {}

    def _choose_fast(self, cases: list[SearchCase]) -> list[SearchCase]:
        """Return the cases that run quickly and end as they did for the judge, quickest first; set their `seconds`."""
        found = []
        for case in cases:
            self.worker.construct(case)
            begun = time.monotonic()
            right = self.worker.is_right(0)
            case.seconds = time.monotonic() - begun
            if case.seconds < SLOWEST_SECONDS and right is not case.fails:
                found.append(case)
        found.sort(key=lambda case: case.seconds)
        fast = [case for case in found if case.seconds < SLOW_SECONDS]
        slow = [case for case in found if case.fails][:1] if not any(case.fails for case in fast) else []
        return sorted({id(case): case for case in [*fast, *slow]}.values(), key=lambda case: case.seconds)

    def _find_good(self, case: SearchCase, gradient: str | None = None) -> list[Candidate]:
        """Return the candidates with which a case passes.

        For a gradient, those in the kernels that make it come first, and those in forward's kernels are tried only if
        none in backward's makes the case pass.
        """
        started, restarts, fatal = time.monotonic(), 0.0, set()
        self.worker.construct(case)
        good = []
        often = collections.Counter(one.mutant.kind for one in self.candidates.values())
        behind = backward_lines(self.source.text) if case.gradients is not None else set()
        makers = gradient_lines(self.source.text, gradient) if behind else set()

        def rank(one: Candidate) -> tuple[bool, bool, int]:
            return one.line not in makers, one.line not in behind, often[one.mutant.kind]

        for one in sorted(self.candidates.values(), key=rank):
            if time.monotonic() - started - restarts > SEARCH_SECONDS or (good and behind and one.line not in behind):
                break
            if one.line in fatal:
                continue
            begun, deaths = time.monotonic(), self.worker.deaths
            if self.worker.is_right(one.mutant.number):
                one.passed = 1
                good.append(one)
            if self.worker.deaths > deaths:  # a few mutants that crash must not take the time of all others
                restarts += time.monotonic() - begun
                fatal.add(one.line)  # as with a condition that ends a recursion of the host
        if not good:  # on a machine with much else to do, the right one may have been late
            late = [one for one in self.candidates.values() if one.mutant.number in self.worker.late]
            good = [one for one in late[:MOST_LATE] if self.worker.is_right(one.mutant.number, patient=True)]
            for one in good:
                one.passed = 1
        return good

    def _narrow(self, case: SearchCase, good: list[Candidate]) -> list[Candidate]:
        """Return those of the candidates that do best on one more case."""
        self.worker.construct(case)
        for one in good[: max(MOST_CHOSEN, int(1.0 / max(case.seconds, 1e-3)))]:
            right = self.worker.is_right(one.mutant.number, patient=True)
            one.passed += right and case.fails
            one.spoils_none &= right or case.fails
        best = max((one.passed for one in good if one.spoils_none), default=0)
        return [one for one in good if one.spoils_none and one.passed == best]

    def _leave_out_lucky(self, case: SearchCase, good: list[Candidate]) -> list[Candidate]:
        """Return the candidates, without those that may have passed by luck: the case passes sometimes without them."""
        runs = max(LEAST_REPEATED, min(REPEATED, int(REPEATED_SECONDS / max(case.seconds, 1e-3))))
        self.worker.construct(case)
        passed = sum(self.worker.is_right(0) for _ in range(runs))
        if not passed:
            return good
        if passed > OFTEN * runs:
            return []
        return [
            one
            for one in good[:MOST_CHOSEN]
            if all(self.worker.is_right(one.mutant.number, patient=True) for _ in range(REPEATED))
        ]

    def _find_birth(self, case: SearchCase) -> tuple[int, str] | None:
        """Return the line whose operation is the first to make NaN or infinity of finite numbers, and which of them."""
        from grader.worker.protocol import Failure

        self.worker.construct(case)
        reply = self.worker.call(mutants.BIRTH)
        if not isinstance(reply, Failure) or not reply.source_line:
            return None
        value = re.search(r"`finite, not (NaN|infinity)`", reply.message)
        lines = (contract.locate(self.source, string, reply.source_line) for string in self.strings)
        line = next((line for line in lines if line), None)
        return (line, value[1]) if line and value else None


def _checks_name_a_line(verdict: Verdict) -> bool:
    """Return whether the checks name a line: better evidence than a mutant with which only some cases pass."""
    return any(
        stage.name is StageName.safe and stage.reason and stage.evidence and stage.evidence[0].line
        for stage in verdict.stages
    )
