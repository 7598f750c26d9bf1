"""Run a submission with one mutant after another in a worker, which is restarted if a mutant crashes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from grader.diagnosis.search_cases import SearchCase
from grader.paths import find_real_path
from grader.source.contract import Source
from grader.verdict import Reason, spelled
from grader.worker import sandbox

if TYPE_CHECKING:
    from grader.worker import protocol
    from grader.worker.client import Client

OWN_SECONDS = 20.0  # for the submission's import and construction, the compiler's time not counted
CALL_SECONDS = 5.0  # for one call of forward, or of forward and backward
BUILD_SECONDS = 120.0  # for the compilers
# least and most seconds for one launch, between them the time of 20 runs of the case: a mutant may make a loop endless
KERNEL_SECONDS = 0.15, 0.3
PATIENT_SECONDS = 1.0  # for one launch of a mutant that ended in another case, or reached the limit above
MIB = 1 << 20
NICENESS = 10  # added to that of a search's processes: the judge, for which the user waits, comes first
MOST_DEATHS = 3  # crashes of a worker, after which the search ends


class WorkerLost(Exception):
    """Raised if the worker died or did not reply, and is not restarted."""


class MutantWorker:
    """A client of the worker of a search, which always runs on the CPU. start: as sandbox.start."""

    def __init__(self, source: Source, start: Callable[..., sandbox.Process], progress: Callable[[str], None]):
        self.source, self.start, self.progress = source, start, progress
        self.place = find_real_path(source.path)
        self.process: sandbox.Process | None = None
        self.client: Client  # once it is open
        self.build_command: protocol.Build  # the last one
        self.case: SearchCase  # the one that ModelNew is constructed for
        self.deaths = 0
        self.late: set[int] = set()  # mutants that reached the time limit for one launch

    def open(self) -> None:
        """Start a worker. Raises WorkerLost."""
        from grader.worker.client import Client, NotStarted

        builds = sandbox.extensions(self.source.sha256)
        try:
            self.process = self.start(self.place, self.source.data, gpu=False, builds=builds, required=False)
        except sandbox.SubmissionChanged as error:
            raise WorkerLost(str(error)) from None
        self.process.lower_priority(NICENESS)
        self.client = Client(self.process, self.place, lambda words: self.progress(words), BUILD_SECONDS)
        try:
            self.client.wait_until_ready()
        except NotStarted as error:
            raise WorkerLost(str(error)) from None

    def close(self) -> None:
        """End the worker."""
        if self.process is not None:
            self.process.kill()

    def query(self, command, seconds: float = OWN_SECONDS, extra_bytes: int = 0):
        """Send a command and return the worker's reply. Raises WorkerLost if there is none."""
        from grader.worker.client import Gone, Late

        try:
            return self.client.ask(command, seconds, extra_bytes)
        except (Gone, Late) as error:
            raise WorkerLost(str(error)) from None

    def build(self, instead: dict[str, str]):
        """Import the submission, with other CUDA sources; return the worker's reply."""
        from grader.worker import protocol

        self.build_command = protocol.Build(self.source.text, spelled(str(self.place)), OWN_SECONDS, instead)
        return self.query(self.build_command)

    def construct(self, case: SearchCase) -> None:
        """Construct ModelNew for a case."""
        from grader.worker import protocol
        from grader.worker.weights import list_buffers

        self.case, instance = case, case.instance
        self.query(
            protocol.Construct(
                args=protocol.pack(list(instance.init_args)), kwargs=protocol.pack(dict(instance.init_kwargs)),
                state={name: protocol.pack(value) for name, value in instance.weights().items()},
                model_source=case.problem.text, model_path=str(case.problem.path),
                overrides=protocol.pack(dict(case.case.set) | case.problem.overrides), guard="end", seconds=OWN_SECONDS,
                buffers=list_buffers(instance.model), weight_seed=instance.weight_seed,
            )
        )  # fmt: skip

    def call(self, mutant: int, patient: bool = False):
        """Return the worker's reply for the constructed case with a mutant active; None if the mutant crashed it.

        The worker is then restarted. patient: with the long limit for one launch. Raises WorkerLost after too many
        crashes.
        """
        case = self.case
        size = sum(t.numel() * t.element_size() for t in case.eager)
        try:
            return self.query(self._make_command(case, mutant, size, patient), CALL_SECONDS, 8 * size + 2 * MIB)
        except WorkerLost:
            self.deaths += 1
            if self.deaths > MOST_DEATHS:
                raise
            self.close()
            self.open()
            self.query(self.build_command)
            self.construct(case)
            return None

    def _make_command(self, case: SearchCase, mutant: int, size: int, patient: bool):
        from grader.worker import protocol

        inputs, right = [protocol.pack(value) for value in case.instance.inputs], case.gradients
        least, most = (PATIENT_SECONDS, PATIENT_SECONDS) if patient else KERNEL_SECONDS
        how = {
            "outputs": [],
            "schedule": "forward",
            "guard": "end",
            "kernel_seconds": min(max(20 * case.seconds, least), most) if case.seconds else most,
            "seconds": OWN_SECONDS,
            "max_bytes": 4 * size + MIB,
            "mutant": mutant,
        }
        if right is None:
            return protocol.Forward(batches=[inputs], **how)
        upstream = [protocol.pack(value) for value in right.upstream]
        return protocol.Gradient(inputs, right.inputs, right.parameters, upstream, strided=False, other=[], **how)

    def is_right(self, mutant: int, patient: bool = False) -> bool:
        """Return whether the constructed case passes with a mutant; note in `late` one that reached the time limit.

        patient: with the long limit for one launch, and once more where that is reached.
        """
        from grader.worker import protocol

        reply, case = self.call(mutant, patient), self.case
        if _is_late(reply):
            self.late.add(mutant)
            reply = self.call(mutant, patient) if patient else reply
        if isinstance(reply, protocol.Outputs):
            runs = reply.runs
        else:
            runs = [reply] if isinstance(reply, protocol.Gradients) else []
        if len(runs) != 1 or len(runs[0].results) != len(case.eager):
            return False
        for result, expected, eager, allowed in zip(runs[0].results, case.expected, case.eager, case.allowed):
            if (
                result is None
                or result.data is None
                or list(eager.shape) != result.shape
                or protocol.name_of(eager.dtype) != result.dtype
            ):
                return False
            try:
                got = protocol.unraw(result.dtype, result.shape, result.data).double()
            except protocol.ChannelError:
                return False
            same_infinities = got == expected
            if not bool((((got - expected).abs() <= allowed) | same_infinities).all()):
                return False
        return True


def _is_late(reply: object) -> bool:
    """Return whether a launch reached its time limit."""
    from grader.worker import protocol

    return isinstance(reply, protocol.Failure) and reply.reason == Reason.kernel_timeout
