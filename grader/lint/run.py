"""Lint a problem: run decoys and mutants over its cases, and look for a case that rejects each survivor."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator

from grader.judging.other_values import prepare_other_values
from grader.judging.trial import Trial, prepare_trial
from grader.lint.attempt import DECOY, MUTANT, Attempt, Label, has_effect, is_accepted
from grader.lint.menu import make_variants
from grader.lint.model_decoys import make_model_decoys
from grader.lint.mutants import Mutant, make_mutants
from grader.lint.output_decoys import FIRST_BLOCK, FULL_BLOCK, WHOLE_BLOCKS, make_copy_decoys, make_output_decoys
from grader.lint.result import LintResult, Outcome
from grader.problems.cases import Case, ProblemError, TooMuch, check_comparable, check_cost, declared
from grader.problems.determinism import check_determined
from grader.problems.problem import Problem

Progress = Callable[[str], None]


class OutOfTime(Exception):
    """Raised when a quick lint has used its time, or a case is too large for one."""


def lint(problem: Problem, device: str = "cpu", seed: int = 0, report: Progress = lambda text: None) -> LintResult:
    """Run every decoy and mutant over the problem's cases.

    Raises ProblemError if the file cannot be used as a problem.
    """
    report("cases")
    run = _Run(problem, device, seed)
    trials = run.prepare_all()
    for number, trial in enumerate(trials, 1):
        report(f"decoys, case {number} of {len(trials)}")
        run.try_all(trial, run.list_decoys(trial))
    run.try_stale_outputs()
    mutants, run.listed = make_mutants(problem)
    for number, mutant in enumerate(mutants, 1):
        report(f"mutant {number} of {len(mutants)}")
        run.try_mutant(mutant)
    report("cases for the survivors")
    run.find_suggestions()
    return run.make_result()


def lint_quickly(problem: Problem, seconds: float) -> LintResult:
    """Run the decoys alone until each is killed, but for those that depend on sizes. No case is suggested.

    Raises OutOfTime after so many seconds of processor time or for large cases, and ProblemError.
    """
    run = _Run(problem, "cpu", 0)
    run.deadline, run.quick = time.process_time() + seconds, True
    for trial in run.prepare_all():
        run.try_all(trial, run.list_decoys(trial))
    return run.make_result()


class _Run:
    """The state of linting one problem."""

    def __init__(self, problem: Problem, device: str, seed: int):
        self.problem, self.device, self.seed = problem, device, seed
        self.trials: list[Trial] = []
        self.outcomes: dict[Label, Outcome] = {}
        self.mutants: dict[Label, Mutant] = {}
        self.raising = self.listed = 0
        self.deadline = float("inf")
        self.quick = False

    def prepare_all(self) -> list[Trial]:
        """Return the problem's cases with their expected outputs."""
        if self.quick:
            self.refuse_large_cases()
        cases = self.problem.cases()
        self.check_time()
        check_determined(self.problem, cases, self.device)
        for case in cases:
            trial = prepare_trial(case, self.problem.instantiate(case, self.seed, self.device))
            check_comparable(case, trial.eager, self.problem.path)
            self.trials.append(trial)
            self.check_time()
        return self.trials

    def refuse_large_cases(self) -> None:
        """Raise OutOfTime where a declared case costs more than a generated one may, before it is made."""
        entries = getattr(self.problem.module({}), "CASES", None)
        for case in [] if entries is None else declared(self.problem, entries):
            try:
                check_cost(self.problem, case)
            except TooMuch:
                raise OutOfTime from None

    def check_time(self) -> None:
        """Raise OutOfTime after the deadline."""
        if time.process_time() > self.deadline:
            raise OutOfTime

    def list_decoys(self, trial: Trial) -> Iterator[Attempt]:
        """Return the decoys of a case or a variant of one."""
        yield from make_output_decoys(trial)
        yield from make_copy_decoys(trial, self.trials)
        yield from make_model_decoys(self.problem, trial)

    def try_all(self, trial: Trial, attempts: Iterable[Attempt]) -> None:
        """Run attempts in one case and record which the case kills."""
        for attempt in attempts:
            outcome = self.outcomes.setdefault(attempt.label, Outcome(attempt.label))
            if not (self.quick and (outcome.killed_by or attempt.label.group == WHOLE_BLOCKS)):
                self.check_time()
                _try_one(trial, attempt, outcome)

    def try_stale_outputs(self) -> None:
        """Compare the outputs of the largest case with those for other values, as the stage "safe" does."""
        trial = max(self.trials, key=lambda trial: sum(out.numel() for out in trial.eager))
        try:
            second = prepare_other_values(trial)
        except ProblemError:
            return
        label = Label(DECOY, "previous", "the outputs of the previous call, for other inputs")
        outcome = self.outcomes.setdefault(label, Outcome(label))
        _try_one(second, Attempt(label, lambda: trial.eager), outcome)

    def try_mutant(self, mutant: Mutant) -> None:
        """Run a mutant in every case. One that raises in each is not counted."""
        outcome, raised = Outcome(mutant.label), 0
        for trial in self.trials:
            try:
                _try_one(trial, mutant.attempt(trial), outcome)
            except ProblemError:
                raised += 1
                outcome.ran_in.append(trial.case.name)
                outcome.killed_by.append(trial.case.name)
        if raised == len(self.trials):
            self.raising += 1
        else:
            self.outcomes[mutant.label], self.mutants[mutant.label] = outcome, mutant

    def find_suggestions(self) -> None:
        """Find for each survivor the first variant of a case that rejects it, and whether it is wrong at all."""
        left = {label: one for label, one in self.outcomes.items() if not one.killed_by}
        if not left:
            return
        for suggestion, trial in make_variants(self.problem, self.trials, self.seed):
            for attempt in self.list_again(trial, left):
                outcome = Outcome(attempt.label, has_effect=left[attempt.label].has_effect)
                try:
                    _try_one(trial, attempt, outcome)
                except ProblemError:
                    continue  # the variant may be one that Model itself is not meant for
                left[attempt.label].has_effect |= outcome.has_effect
                if outcome.killed_by:
                    left.pop(attempt.label).suggestion = suggestion
            if not left:
                return

    def list_again(self, trial: Trial, left: dict[Label, Outcome]) -> list[Attempt]:
        """Return the attempts of these labels in a variant of a case."""
        wanted = set(left)
        made = [attempt for attempt in self.list_decoys(trial) if attempt.label in wanted]
        for label in wanted & self.mutants.keys():
            try:
                made.append(self.mutants[label].attempt(trial))
            except ProblemError:
                continue
        return made

    def has_small_outputs(self) -> bool:
        """Return whether each output of the file's own sizes fits into one block of threads, by shapes alone."""
        try:
            outputs = self.problem.instantiate(Case("full size"), self.seed, "meta").eager()
        except ProblemError:
            return False
        return all(out.numel() <= FULL_BLOCK for out in outputs)

    def make_result(self) -> LintResult:
        """Return the outcomes of the decoys and mutants that ran in some case.

        Outputs of one block are enough where the full size has no more.
        """
        kept = [one for one in self.outcomes.values() if one.ran_in]
        if self.has_small_outputs():
            kept = [one for one in kept if not one.label.name.endswith(FIRST_BLOCK) or one.killed_by]
        return LintResult(
            problem=self.problem.name,
            path=str(self.problem.path),
            sha256=hashlib.sha256(self.problem.path.read_bytes()).hexdigest(),
            settings=self.problem.overrides,
            device=self.device,
            seed=self.seed,
            cases=[trial.case.name for trial in self.trials],
            outcomes=kept,
            raising=self.raising,
            listed=self.listed,
        )


def _try_one(trial: Trial, attempt: Attempt, outcome: Outcome) -> None:
    """Run an attempt in a case and record whether the judge rejects it. Raises ProblemError where a mutant raises.

    A decoy that raises is one that this Model does not take, and does not count.
    """
    try:
        made = attempt.compute()
        if made is None:
            return
        killed = not is_accepted(trial, made)
        changes = killed or attempt.instance is None or has_effect(trial, attempt.instance)
    except ProblemError:
        if attempt.label.kind == MUTANT:
            raise
        return
    outcome.ran_in.append(trial.case.name)
    outcome.killed_by += [trial.case.name] if killed else []
    outcome.has_effect |= changes
