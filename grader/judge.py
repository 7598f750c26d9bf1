"""Grades one submission: file in, verdict out. Holds the seed, the inputs, the right answers, the clock and the word."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import secrets
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from grader import contract, sandbox, student
from grader.beside import Beside
from grader.contract import Broken, Source
from grader.repair import WANTED
from grader.verdict import (
    EXPLANATIONS,
    CaseResult,
    Evidence,
    Reason,
    Stage,
    StageName,
    Status,
    Submission,
    Verdict,
    outcome_of,
    spelled,
)

# torch, and what imports it, is loaded inside functions: while this process loads it, the worker does too.

Progress = Callable[[StageName, str], None]
PREPARING = "preparing what every build needs (once on this machine, about 30 s)"
OUTPUT = 4000  # characters kept of what the program printed
MIB = 1 << 20
CHECKED = 8  # times what an unchecked kernel takes
VALUES = {  # reasons that are about numbers: running in another order may explain them
    *(Reason.wrong_values, Reason.non_finite, Reason.not_written, Reason.low_precision, Reason.constant_output),
}


class Refused(Exception):
    """Grading cannot start on this machine as asked; the text is one sentence."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Seconds. own: the program's own time for its import, its construction and each call of forward;
    build: compilers, all together; kernel: one launch on the CPU."""

    own: float = 20.0
    build: float = 600.0

    @property
    def kernel(self) -> float:
        return min(10.0, self.own / 2)


def grade(
    path: str | Path,
    problem: str | Path | None = None,
    overrides: dict[str, str] | None = None,
    device: str | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    limits: Limits = Limits(),
    require_sandbox: bool = False,
    case: str | None = None,
    worker: Callable[..., sandbox.Process] | None = None,
    beside: Beside | None = None,
) -> Verdict:
    """Grade one submission.

    problem: a KernelBench file; found by the submission's name if None. overrides: its literals to replace, as text.
    device: "cpu", "cuda", or None for a GPU where there is one. seed: of inputs and weights; a secret one if None.
    progress: called with a stage and a few words. case: the name of the only case to run; Refused if there is none.
    worker: starts the process instead of sandbox.start, which has the same arguments. beside: looks for the wrong line meanwhile, on a CPU.
    Nothing that a submission does makes this raise. It raises
    ProblemError for an unusable problem and Refused where the machine lacks what was asked for. An interrupt from
    the keyboard ends the worker and gives a verdict whose reason is `interrupted`.
    """
    path = Path(path)
    problem = Path(problem) if problem is not None else None
    seed = secrets.randbits(48) if seed is None else seed
    grading = _Grading(path, problem, overrides or {}, device, seed, progress, limits, require_sandbox)
    grading.wanted_case, grading.start_process, grading.beside = case, worker or sandbox.start, beside
    try:
        return grading.run()
    finally:
        grading.close()


@dataclasses.dataclass
class Trial:
    """One case: its instance, what is right, and what was seen of the submission's two runs of it.

    kept: the first run's outputs. difference: compare's word on them. launches: that run's. side: findings that belong to "safe".
    truth: the right gradients, once the stage "gradient" has made them.
    """

    case: object
    instance: object
    expected: list
    eager: list
    noise: list
    kept: list = dataclasses.field(default_factory=list)
    difference: object = None
    launches: list = dataclasses.field(default_factory=list)
    side: list = dataclasses.field(default_factory=list)
    truth: object = None


class _Stop(Exception):
    """A stage did not pass; its status, reason and evidence are set."""


class Found(Exception):
    """What is being done ends with this finding."""

    def __init__(self, finding):
        super().__init__(finding.message)
        self.finding = finding


class _Grading:
    """One submission's way through the stages."""

    def __init__(self, path, problem, overrides, device, seed, progress, limits, require_sandbox):
        self.path: Path = path
        self.problem_path: Path | None = problem
        self.overrides: dict[str, str] = overrides
        self.wanted_device: str | None = device
        self.seed: int = seed
        self.progress: Progress = progress or (lambda stage, text: None)
        self.limits: Limits = limits
        self.require_sandbox: bool = require_sandbox
        self.wanted_case: str | None = None
        self.start_process: Callable[..., sandbox.Process] = sandbox.start
        self.beside: Beside | None = None
        self.started = time.monotonic()
        self.stages = [Stage(name=name, status=Status.skipped, reason=Reason.not_reached) for name in StageName]
        self.source = Source(path, "", "")
        self.problem_name = self._guess_name()
        self.problem = None
        self.process: sandbox.Process | None = None
        self.client = None
        self.cases: list = []
        self.trials: list[Trial] = []
        self.differentiated: tuple[list[int], list[str]] = [], []  # inputs and parameters that have a gradient
        self.gpu = False
        self.sandbox = sandbox.NONE
        self.versions = {"python": platform.python_version()}

    # -- the way --

    def run(self) -> Verdict:
        """All stages in order. One that does not pass ends the way, except that "safe" may explain "correct"."""
        with contextlib.suppress(_Stop):
            with self.stage(StageName.contract) as stage:
                self.contract(stage)
            with self.stage(StageName.build) as stage:
                self.build(stage)
            with contextlib.suppress(_Stop), self.stage(StageName.correct) as stage:
                self.correct(stage)
            if self._safe_makes_sense():
                with self.stage(StageName.safe) as stage:
                    self.safe(stage)
            if not self._passed(StageName.correct, StageName.safe):
                raise _Stop
            with self.stage(StageName.gradient) as stage:
                self.gradient(stage)
            with self.stage(StageName.fast) as stage:
                self.fast(stage)
        return self.verdict()

    def verdict(self) -> Verdict:
        """What is known now."""
        for stage in self.stages:
            if stage.reason is Reason.not_reached:
                stage.message = EXPLANATIONS[Reason.not_reached]
        return Verdict(
            problem=self.problem_name,
            submission=Submission(path=str(self.path), sha256=self.source.sha256),
            outcome=outcome_of(self.stages),
            stages=self.stages,
            device=self._device_name(),
            versions=self.versions,
            seed=self.seed,
            seconds=round(time.monotonic() - self.started, 3),
            sandbox=self.sandbox,
            output=self.client.printed()[-OUTPUT:] if self.client is not None and self.client.versions else "",
        )

    @contextlib.contextmanager
    def stage(self, name: StageName) -> Iterator[Stage]:
        """Times a stage and turns whatever happens in it into its status. Raises _Stop if it did not pass."""
        stage = self._stage(name)
        stage.status, stage.reason = Status.passed, None
        begun = time.monotonic()
        try:
            self.progress(name, "")
            yield stage
        except _Stop:
            pass
        except Found as found:
            self.settle(stage, found.finding)
        except KeyboardInterrupt:
            self._end(stage, Status.error, Reason.interrupted, EXPLANATIONS[Reason.interrupted])
        except Exception as error:
            self._unexpected(stage, error)
        finally:
            stage.seconds = round(time.monotonic() - begun, 3)
        if stage.status in (Status.failed, Status.error):
            raise _Stop

    def _unexpected(self, stage: Stage, error: Exception) -> None:
        """The grader, the problem or the machine is at fault, not the submission."""
        from grader.cases import ProblemError

        if isinstance(error, (Refused, ProblemError)):
            raise error
        said, detail = EXPLANATIONS[Reason.grader_error], None
        if type(error).__name__ == "OutOfMemoryError":
            said = "The GPU is too small for this problem at this size: lower its sizes with --set."
        else:
            frames = traceback.extract_tb(error.__traceback__)
            where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
            detail = f"{type(error).__name__} at {where}: {str(error)[:500]}"
        self._end(stage, Status.error, Reason.grader_error, said, [Evidence(detail=detail)] if detail else [])

    def settle(self, stage: Stage, finding) -> None:
        """The stage ends with this finding."""
        mine = finding.reason not in (Reason.no_compiler, Reason.grader_error)
        status = Status.failed if mine else Status.error
        self._end(stage, status, finding.reason, finding.message, finding.evidence)

    def _end(self, stage: Stage, status: Status, reason: Reason, message: str, evidence: list[Evidence] = []) -> None:
        stage.status, stage.reason, stage.message = status, reason, message
        stage.evidence = [*stage.evidence, *evidence]

    def skip(self, stage: Stage, reason: Reason | None, message: str) -> None:
        """Leave the stage out, which is no failure."""
        stage.status, stage.reason, stage.message = Status.skipped, reason, message

    def _stage(self, name: StageName) -> Stage:
        return next(stage for stage in self.stages if stage.name is name)

    def _passed(self, *names: StageName) -> bool:
        return all(self._stage(name).status is Status.passed for name in names)

    def _safe_makes_sense(self) -> bool:
        stage = self._stage(StageName.correct)
        return stage.status is Status.passed or (stage.status is Status.failed and stage.reason in VALUES)

    def close(self) -> None:
        """End the worker, whatever state it is in."""
        if self.process is not None:
            self.process.kill()

    # -- contract --

    def _guess_name(self) -> str:
        """The problem's name as far as paths tell it."""
        if self.problem_path is not None:
            name = self.problem_path.parent.name if self.problem_path.name == "model.py" else self.problem_path.stem
            return student.exercise_of(self.path, name)
        model = student.model_of(self.path)
        return student.exercise_of(self.path, model.parent.name) if model else self.path.resolve().stem

    def contract(self, stage: Stage) -> None:
        """What the file alone says; nothing of it is run. Starts the worker, which loads torch while we do."""
        self.source, broken = contract.read(self.path)
        self._broken(stage, broken)
        tree, broken = contract.parse(self.source)
        self._broken(stage, broken)
        if student.is_untouched(self.source.text, self.problem_name):
            self._broken(stage, Broken(Reason.not_attempted, EXPLANATIONS[Reason.not_attempted]))
        self.start_worker()
        with sandbox.undisturbed():  # loads torch, which cannot be loaded again once that was interrupted
            from grader import problem as problems

        found = self.problem_path or problems.find(self.path).path
        self.problem = problems.read(found, self.overrides)
        self.problem_name = student.exercise_of(self.path, self.problem.name)
        self._broken(stage, contract.check(tree, self.problem.tree, self.path.name))
        self._settle_device()

    def _broken(self, stage: Stage, broken: Broken | None) -> None:
        """End the stage if the file is no submission."""
        if broken is None:
            return
        evidence = [broken.evidence] if broken.evidence else []
        for one in evidence:
            one.text = one.text or self.source.line(one.line) or None
        self._end(stage, Status.failed, broken.reason, broken.message, evidence)
        raise _Stop

    def start_worker(self) -> None:
        """Start the worker process; it needs a moment to load torch."""
        try:
            self.process = self._start(self.source, required=self.require_sandbox)
        except sandbox.SandboxError as error:
            raise Refused(str(error)) from None
        self.sandbox = sandbox.BUBBLEWRAP if self.process.sandboxed else sandbox.NONE

    def _start(self, source: Source, required: bool = False) -> sandbox.Process:
        nodes = sandbox.has_gpu() and self.wanted_device != "cpu"
        builds = sandbox.extensions(source.sha256)
        for folder in sandbox.folders(builds)[0]:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise Refused(
                    f"The cache folder {folder} cannot be made ({error.strerror}): set SIMT_CACHE and XDG_CACHE_HOME to "
                    "folders that can be written."
                ) from None
        if not nodes and not sandbox.why_not():
            self._fill_cache(source.text)
        return self.start_process(source.path, gpu=nodes, builds=builds, required=required)

    def _fill_cache(self, text: str) -> None:
        """What simt builds once on a machine has to be there before a worker starts that cannot write to the cache, and would build it for
        itself alone."""
        from simt import build
        from simt.errors import BuildError

        with contextlib.suppress(BuildError, ValueError):  # the stage build says it
            if not build.warm(text):
                self.progress(StageName.contract, PREPARING)
                build.warm_up(text)
                self.progress(StageName.contract, "")

    def _settle_device(self) -> None:
        """Now that torch is loaded: GPU or CPU."""
        import torch

        from grader.exchange import Bytes, GpuMemory

        self.gpu = self.wanted_device != "cpu" and torch.cuda.is_available()
        if self.wanted_device == "cuda" and not self.gpu:
            raise Refused("--device cuda: torch sees no GPU on this machine; `grader doctor` says what is missing.")
        self.versions["torch"] = str(torch.__version__)
        if self.gpu:
            self.versions["cuda"] = torch.version.cuda or ""
        self.exchange = GpuMemory() if self.gpu else Bytes()

    @property
    def device(self) -> str:
        """torch's name of it."""
        return "cuda" if self.gpu else "cpu"

    def _device_name(self) -> str:
        if not self.gpu:
            return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"
        import torch

        return torch.cuda.get_device_name()

    # -- build --

    def build(self, stage: Stage) -> None:
        """Import the file, construct ModelNew for the first case, load the weights."""
        from grader import channel, findings
        from grader.client import Client, NotStarted

        cases = self.problem.cases()  # before anything is compiled: a problem that cannot be used is told at once
        self.problem.check_certain(cases, self.device)
        if not self.gpu:
            self._warm_up()
        path = self.path.resolve()
        self.client = Client(self.process, path, self._say(StageName.build), self.limits.build)
        try:
            self.client.wait_until_ready()
        except NotStarted as error:
            self._end(stage, Status.error, Reason.grader_error, f"The worker process did not start: {error}")
            raise _Stop from None
        with sandbox.sole_builder(sandbox.extensions(self.source.sha256)):
            self.ask(channel.Build(self.source.text, spelled(str(path)), self.limits.own), findings.IMPORT, None)
        self.cases = self._wanted(cases)
        self.construct(self.trial(self.cases[0]), "end")

    def _wanted(self, cases: list) -> list:
        """All cases, or the one that was asked for."""
        if self.wanted_case is None:
            return cases
        chosen = [case for case in cases if self.wanted_case in (case.name, case.name.partition(" (")[0] if case.made else None)]
        if not chosen:
            names = "; ".join(case.name for case in cases)
            raise Refused(f"{self.problem_name} has no case {self.wanted_case!r}: it has {names}.")
        return chosen

    def _say(self, name: StageName) -> Callable[[str], None]:
        return lambda text: self.progress(name, text)

    def _warm_up(self) -> None:
        """What simt builds once on a machine is built by the judge, before the submission's time counts."""
        import simt
        from grader.findings import Finding

        try:
            self.progress(StageName.build, PREPARING)
            simt.warm_up()
        except simt.CacheError as error:  # which every submission's build would meet, after as long again
            raise Found(Finding(Reason.grader_error, str(error), [])) from None
        except simt.BuildError:
            return  # the submission's own build says it, if it needs a compiler
        except ValueError as error:  # a variable of simt's that is set to nonsense
            raise Refused(str(error)) from None
        self.progress(StageName.build, "")

    def trial(self, case) -> Trial:
        """A case with its inputs and right answers; made once. ProblemError if it leaves nothing to compare."""
        from grader.cases import ProblemError, worth

        for trial in self.trials:
            if trial.case is case:
                return trial
        instance = self.problem.instantiate(case, self.seed, self.device)
        trial = Trial(case, instance, instance.expected(), instance.eager(), instance.noise())
        if case in self.cases and not worth(trial.eager):
            raise ProblemError(
                f"the case '{case.name}' leaves nothing to compare: Model returns no tensor, or one that is empty or without a finite number.",
                self.problem.path,
            )
        self.trials.append(trial)
        if self.gpu:  # what the right answers took on the way is the submission's again: both processes share the card
            import torch

            torch.cuda.empty_cache()
        return trial

    def construct(self, trial: Trial, guard: str | None) -> None:
        """ModelNew with this case's arguments and weights."""
        self.ask(self._construct_command(trial, guard), "ModelNew(...)", trial.case.name)

    def _construct_command(self, trial: Trial, guard: str | None):
        from grader import channel

        instance = trial.instance
        return channel.Construct(
            args=channel.pack(list(instance.init_args)),
            kwargs=channel.pack(dict(instance.init_kwargs)),
            state={name: channel.pack(value) for name, value in instance.model.state_dict().items()},
            model_source=self.problem.path.read_text(encoding="utf-8"),
            model_path=str(self.problem.path),
            overrides=channel.pack(dict(trial.case.set) | self.problem.overrides),
            guard=guard,
            seconds=self.limits.own,
        )

    def ask(self, command, doing: str, case: str | None, extra_bytes: int = 0):
        """Have the worker do something; its reply. Raises Found where the submission is at fault."""
        from grader import findings
        from grader.channel import Failure
        from grader.client import Gone, Late

        try:
            reply = self.client.ask(command, self.limits.own, extra_bytes)
        except (Gone, Late) as error:
            raise Found(findings.of_death(error, self.source, case, doing)) from None
        if isinstance(reply, Failure):
            raise Found(findings.of_failure(reply, self.source, self.client.sources, case))
        return reply

    # -- correct --

    def correct(self, stage: Stage) -> None:
        """Every case twice, on the CPU with each tensor's end at a guard page; on a GPU the full size comes last."""
        cases = self.cases + ([self.problem.full()] if self.gpu else [])
        found: list = []
        for number, case in enumerate(cases, 1):
            if found and found[-1].fatal:
                stage.cases.append(CaseResult(name=case.name, status=Status.skipped, reason=Reason.not_reached))
                continue
            self.progress(StageName.correct, f"case {number} of {len(cases)}: {case.name}")
            finding = self._try(case, constructed=number == 1)
            status = Status.failed if finding else Status.passed
            stage.cases.append(CaseResult(name=case.name, status=status, reason=finding.reason if finding else None))
            found += [finding] if finding else []
            self.look_beside(finding)
        if found:
            self.settle(stage, clearest(found))
            self.looked_at(stage)
        else:
            self._to_know(stage)

    def _to_know(self, stage: Stage) -> None:
        """What to know of right results."""
        from grader.cases import few

        said = few(self.cases) if self.wanted_case is None else ""
        if not self.has_kernels():
            stage.reason, said = Reason.no_kernel, f"{EXPLANATIONS[Reason.no_kernel]} {said}"
        stage.message = said.strip()

    def has_kernels(self) -> bool:
        """Whether the submission launched a kernel in some case. On a GPU, where nobody counts launches: whether it built any."""
        return bool(self.client.sources) if self.gpu else any(trial.launches for trial in self.trials)

    def look_beside(self, finding) -> None:
        """A case is over: where its values are wrong, another process begins to look for the line."""
        if self.beside and finding and not self.gpu and finding.reason in WANTED:
            self.beside.wrong(self.source, self.problem_name)

    def looked_at(self, stage: Stage) -> None:
        """All cases of a stage that failed are over: what was found to look for the line is handed to who does."""
        if self.beside and not self.gpu:
            self.beside.ended(stage, self.problem, self.trials)

    def _try(self, case, constructed: bool):
        """Run one case; the finding if its result is wrong. What "safe" wants to know is kept with the trial."""
        from grader import findings

        try:
            trial = self.trial(case)
            if not constructed:
                self.construct(trial, "end")
            runs = self.forward(trial, "forward", "end", calls=2)
            trial.difference = runs[0].difference
            trial.kept = runs[0].outputs
            trial.launches = runs[0].run.launches
            trial.side = self._side_effects(trial, runs)
        except Found as found:
            return self._told_better(case, found.finding)
        finally:
            self.release()
        return findings.of_difference(trial.difference, trial.launches) if trial.difference else None

    def _told_better(self, case, finding):
        """What the checks say where a plain run cannot tell thread and element: they come to the same place.

        Of a misaligned access the processor tells no address; of a write beside a tensor that no guard page met, only the launch is known.
        """
        placeless = finding.reason is Reason.out_of_bounds and finding.evidence[0].thread is None
        if finding.fatal or not (placeless or finding.reason is Reason.misaligned):
            return finding
        told = self._checked(self.trial(case))
        if told is None or told.reason is not finding.reason:
            return dataclasses.replace(finding, fatal=told is not None and told.fatal)  # a worker that died in the checks runs no more cases
        return told

    def forward(self, trial: Trial, schedule: str, guard: str | None, calls: int, check: bool = False) -> list:
        """Call forward so many times on the case's inputs and compare each result with the right one.

        check: run with simt's checks on; the result is what they found instead (channel.Found).
        """
        from grader import channel, compare

        instance, size = trial.instance, sum(t.numel() * t.element_size() for t in trial.eager)
        command = channel.Forward(
            batches=[self.exchange.inputs(instance.inputs) for _ in range(calls)],
            outputs=[self.exchange.rooms(trial.eager) for _ in range(calls)] if self.gpu else [],
            schedule=schedule,
            guard=guard,
            kernel_seconds=min(self.limits.own * 0.9, self.limits.kernel * CHECKED) if check else self.limits.kernel,
            seconds=self.limits.own,
            max_bytes=4 * size + MIB,
            check=check,
        )
        reply = self.ask(command, "forward", trial.case.name, calls * (command.max_bytes + MIB))
        if check and isinstance(reply, channel.Outputs) and (reply.found or len(reply.runs) == calls):
            return reply.found
        if not isinstance(reply, channel.Outputs) or len(reply.runs) != calls:
            raise Found(nonsense(trial.case.name))
        made = []
        for position, run in enumerate(reply.runs, -calls):  # of the calls since the last release(), these are the last
            outputs = self._outputs(trial, run, position)
            difference = compare.compare(outputs, trial.expected, trial.eager, trial.case, trial.noise)
            made.append(_Run(run, outputs, difference, self.exchange.modified(run, position)))
        return made

    def _outputs(self, trial: Trial, run, position: int) -> list:
        """The tensors of a run; one that did not travel is there in shape and dtype alone."""
        import torch

        from grader.channel import DTYPES, ChannelError

        case, count = trial.case.name, len(trial.eager)
        theirs = trial.instance.kind
        plain = run.kind == "Tensor" if count == 1 else run.kind.endswith(f" of {count} tensors")
        if not plain and run.kind != theirs:
            wanted = "a tensor" if count == 1 else f"{count} tensors"
            if theirs.endswith(("thing", "things")):
                wanted = f"what Model returns ({theirs})"
            message = f"forward returned {'nothing (None)' if run.kind == 'NoneType' else run.kind}, not {wanted}."
            raise Found(_finding(Reason.wrong_type, message, case))
        if len(run.results) != count:  # a number where Model has None, say
            message = f"forward returned {len(run.results)} tensors and numbers, Model {count}."
            raise Found(_finding(Reason.wrong_type, message, case))
        try:
            outputs = self.exchange.results(run, position)
        except ChannelError:
            raise Found(nonsense(case)) from None
        for number, result in enumerate(run.results):
            if result.device != self.device:
                message = f"The output is on the device {result.device[:20]!r}, not on {self.device!r}."
                raise Found(_finding(Reason.wrong_device, message, case))
            if result.dtype not in DTYPES:
                message = f"The dtype is {result.dtype[:40]}, not {str(trial.eager[number].dtype).split('.')[1]}."
                raise Found(_finding(Reason.wrong_dtype, message, case))
            if outputs[number] is None:
                try:
                    outputs[number] = torch.empty(result.shape, dtype=DTYPES[result.dtype], device="meta")
                except (RuntimeError, TypeError):
                    raise Found(nonsense(case)) from None
        return outputs

    def _side_effects(self, trial: Trial, runs: list[_Run]) -> list:
        """What two runs show besides values: inputs written to, memory shared, results that differ."""
        case, found = trial.case.name, []
        modified = sorted({n for run in runs for n in run.modified})
        if modified and not self._model_modifies(trial):
            found.append(_finding(Reason.input_modified, f"forward changed {_inputs(modified)}: write to a new tensor.", case))
        aliases = sorted({n for run in runs for n in run.run.aliases})
        if aliases and not self._model_aliases(trial):
            message = f"The output shares memory with {_inputs(aliases)}: write to a new tensor."
            found.append(_finding(Reason.output_aliases_input, message, case))
        elif any(run.run.reuses for run in runs) and not aliases:
            found.append(_finding(Reason.output_reused, EXPLANATIONS[Reason.output_reused], case))
        return found or self._nondeterminism(trial, runs)

    def _nondeterminism(self, trial: Trial, runs: list[_Run]) -> list:
        """Two runs on the same inputs whose difference is more than rounding."""
        from grader import compare, findings
        from grader.exchange import same_bits

        first, second = runs[0], runs[1]
        if any(t.device.type == "meta" for t in (*first.outputs, *second.outputs)):
            return []
        alike = [a.shape == b.shape and a.dtype == b.dtype for a, b in zip(first.outputs, second.outputs)]
        if all(alike) and all(same_bits(a, b) for a, b in zip(first.outputs, second.outputs)):
            return []
        if first.difference is None:
            difference = second.difference
        else:
            exact = [t.double() for t in first.outputs]
            difference = compare.compare(second.outputs, exact, first.outputs, trial.case, trial.noise)
        if difference is None:
            return []
        evidence = findings.of_difference(difference, second.run.launches).evidence
        expected = "the right value" if first.difference is None else "the first run's value"
        evidence[0].detail = f"expected: {expected}; got: the second run's"
        said = EXPLANATIONS[Reason.nondeterministic]
        if not self.gpu and not any(run.run.launches for run in runs):
            said = (
                "The same inputs gave different results when run twice, and no kernel was launched: look for what forward draws at random, or keeps "
                "from one call to the next."
            )
        return [findings.Finding(Reason.nondeterministic, said, evidence)]

    def _model_modifies(self, trial: Trial) -> bool:
        """Whether the problem's own Model changes its inputs, so that a submission may."""
        import torch

        inputs = _copies(trial.instance.inputs)
        with trial.instance.blame(), torch.no_grad():
            trial.instance.build()(*inputs)
        return any(
            isinstance(a, torch.Tensor) and not torch.equal(a, b) for a, b in zip(inputs, trial.instance.inputs)
        )

    def _model_aliases(self, trial: Trial) -> bool:
        """Whether the problem's own Model returns an input or a view of one, so that a submission may."""
        import torch

        from grader.channel import overlap
        from grader.problem import flatten

        inputs = _copies(trial.instance.inputs)
        with trial.instance.blame(), torch.no_grad():
            outputs = flatten(trial.instance.build()(*inputs))
        return any(overlap(out, value) for out in outputs for value in inputs)

    def release(self) -> None:
        """On a GPU, have the worker let go of our memory, then free it."""
        from grader.channel import Release

        if not self.gpu:
            return
        for trial in self.trials:
            trial.kept = []
        with contextlib.suppress(Found):
            if self.process.alive():
                self.ask(Release(), "the release", None)
        self.exchange.free()

    # -- safe --

    def safe(self, stage: Stage) -> None:
        """What the runs of "correct" showed besides values, and on the CPU another run in reverse order.

        Where "correct" failed, this looks at the failing case alone, for what may explain it.
        """
        failed = self._stage(StageName.correct).status is Status.failed
        trials = [trial for trial in self.trials if not failed or trial.difference is not None][: 1 if failed else None]
        first = None
        for number, trial in enumerate(trials, 1):
            self.progress(StageName.safe, f"case {number} of {len(trials)}: {trial.case.name}")
            finding = self._checked(trial) or (trial.side[0] if trial.side else self._reversed(trial))
            status = Status.failed if finding else Status.passed
            reason = finding.reason if finding else None
            stage.cases.append(CaseResult(name=trial.case.name, status=status, reason=reason))
            first = first or finding
            if finding is not None and finding.fatal:
                break
        if first is None and not failed:
            first = self._with_other_values(trials)
        if first is not None:
            self.settle(stage, first)

    def _checked(self, trial: Trial):
        """Run with all of simt's checks on: bounds, races, memory that nobody wrote, …"""
        from grader import findings

        if self.gpu:
            return None
        try:
            self.construct(trial, "end")
            found = self.forward(trial, "forward", None, calls=1, check=True)
        except Found as found:
            return found.finding
        return findings.of_check(found[0], self.source, self.client.sources, trial.case.name) if found else None

    def _reversed(self, trial: Trial):
        """Run with the threads of each block in reverse and each tensor's beginning at a guard page."""
        from grader import compare, findings

        if self.gpu:
            return None
        try:
            self.construct(trial, "front")
            run = self.forward(trial, "reverse", "front", calls=1)[0]
        except Found as found:
            return found.finding
        if trial.difference is None:
            difference = run.difference
        else:
            before = [tensor.double() for tensor in trial.kept]
            difference = compare.compare(run.outputs, before, trial.kept, trial.case, trial.noise)
        if difference is None:
            return None
        finding = findings.of_difference(difference, run.run.launches)
        if not run.run.launches:
            said = (
                "A second ModelNew with the same arguments and weights gave other results, and no kernel was launched: look for what __init__ or "
                "forward draws at random."
            )
            finding.evidence[0].detail = "expected: the first one's value; got: the second one's"
            return findings.Finding(Reason.nondeterministic, said, finding.evidence)
        finding.evidence[0].detail = "expected: with the threads in order; got: with the threads in reverse order"
        return findings.Finding(Reason.schedule_dependent, EXPLANATIONS[Reason.schedule_dependent], finding.evidence)

    def _with_other_values(self, trials: list[Trial]):
        """Two calls of one model, the second with other values: a result kept from the first call is wrong there."""
        from grader import findings
        from grader.cases import ProblemError
        from grader.exchange import same_bits

        trials = [trial for trial in trials if trial.case in self.cases]  # the full size would take long
        if not trials:
            return None
        trial = max(trials, key=lambda trial: sum(t.numel() for t in trial.eager))
        other = dataclasses.replace(trial.instance, inputs=_rolled(trial.instance.inputs))
        try:
            second = Trial(trial.case, other, other.expected(), other.eager(), other.noise())
            self.construct(trial, "end")
            kept = self.forward(trial, "forward", "end", calls=1)[0].outputs
            run = self.forward(second, "forward", "end", calls=1)[0]
            same = all(same_bits(old, new) for old, new in zip(kept, run.outputs))
        except ProblemError:  # Model does not take these values: a matrix that it inverts, say
            return None
        except Found as found:
            return found.finding
        finally:
            self.release()
        if run.difference is None:
            return None
        finding = findings.of_difference(run.difference, run.run.launches)
        if not same:
            return finding
        said = "forward returned the result of the call before once more, though the values of its inputs were others."
        finding.evidence[0].pattern = None  # of numbers that have nothing to do with these inputs
        return findings.Finding(Reason.output_reused, said, finding.evidence)

    # -- gradient --

    @property
    def wants_gradient(self) -> bool:
        """Whether the submission must have gradients: its name ends in _backward."""
        return self.problem_name != self.problem.name

    def gradient(self, stage: Stage) -> None:
        """Every case with its backward: required by the submission's name, else checked if forward's result carries a gradient."""
        from grader.gradient import Gradients

        if not (self.wants_gradient or self.trials[0].instance.differentiable_later()):
            self.skip(stage, None, "This problem asks for no gradient, and Model's own is lost when Model is called again.")
            return
        Gradients(self, self.wants_gradient).check(stage)

    def make_room(self) -> None:
        """On a GPU, give back what the right answers took: outputs are compared by now, and both processes share the card."""
        if not self.gpu:
            return
        import torch

        for trial in self.trials:
            trial.expected, trial.noise = [], []
        torch.cuda.empty_cache()

    # -- fast --

    def fast(self, stage: Stage) -> None:
        """Times, on a GPU."""
        if not self.gpu:
            self.skip(stage, Reason.no_gpu, EXPLANATIONS[Reason.no_gpu])
            return
        from grader import speed

        trial = self.trials[-1]  # the full size
        self.construct(trial, None)
        bench = speed.Bench(
            client=self.client,
            source=self.source,
            trial=trial,
            problem=self.problem,
            seed=self.seed,
            seconds=self.limits.own,
            build_seconds=self.limits.build,
            construct=self._construct_command(trial, None),
            start=self._start,
            say=self._say(StageName.fast),
            reference=student.source_of(self.problem_name),
            back=self._back(speed, trial) if self.wants_gradient else None,
        )
        finding = speed.measure(bench, stage)
        if finding is not None:
            raise Found(finding)

    def _back(self, speed, trial: Trial):
        """What the backward of a NAME_backward is timed with."""
        inputs, parameters = self.differentiated
        own = dict(trial.instance.model.named_parameters())
        like = [trial.instance.inputs[n] for n in inputs] + [own[name].detach() for name in parameters]
        return speed.Back(self.problem.upstream(trial.case, self.seed + 1, trial.eager), inputs, parameters, like)


@dataclasses.dataclass
class _Run:
    """One call of forward: the worker's report, the tensors, compare's word, the inputs it changed."""

    run: object
    outputs: list
    difference: object
    modified: list[int]


def _finding(reason: Reason, message: str, case: str | None):
    from grader.findings import Finding

    return Finding(reason, message, [Evidence(case=case)])


def clearest(found: list):
    """The first finding, or a later one of the same reason that has a pattern where the first has none to speak of."""
    patterned = [f for f in found if f.reason is found[0].reason and f.evidence[0].pattern not in (None, "everything")]
    return patterned[0] if patterned else found[0]


def nonsense(case: str | None):
    from grader.findings import Finding

    said = "The program answered the grader with something that makes no sense."
    return Finding(Reason.crash, said, [Evidence(case=case)], fatal=True)


def _inputs(numbers: list[int]) -> str:
    """"input 0", or "inputs 0 and 2"."""
    if len(numbers) == 1:
        return f"input {numbers[0]}"
    return f"inputs {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _rolled(inputs: list) -> list:
    """The floating tensors with their values moved on by one place, or if there are none all tensors; anything else as it is.

    Beside floating tensors integers tend to be indices, which in another order may mean nothing, to Model either.
    """
    floats = [hasattr(value, "is_floating_point") and value.is_floating_point() for value in inputs]
    rolls = floats if any(floats) else [hasattr(value, "is_floating_point") for value in inputs]
    return [value.flatten().roll(1).view(value.shape) if one else value for value, one in zip(inputs, rolls)]


def _copies(values: list) -> list:
    return [value.clone() if hasattr(value, "clone") else value for value in values]
