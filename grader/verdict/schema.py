"""The verdict on one submission: the schema that every reader uses."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, cast

import msgspec

SCHEMA = "kernel-course/verdict/1"


class Status(StrEnum):
    """How one stage, or one case of it, ended."""

    passed = "passed"
    failed = "failed"
    skipped = "skipped"
    error = "error"


class StageName(StrEnum):
    """The stages in the order in which they run."""

    contract = "contract"
    build = "build"
    correct = "correct"
    safe = "safe"
    gradient = "gradient"
    fast = "fast"


class Outcome(StrEnum):
    """The verdict in one word. error: the grader or the machine could not finish."""

    passed = "passed"
    failed = "failed"
    not_attempted = "not_attempted"
    error = "error"


class Reason(StrEnum):
    """Why a stage did not pass, or a remark on one that did. `EXPLANATIONS` has a sentence for each."""

    # contract
    unreadable = "unreadable"
    empty_file = "empty_file"
    syntax_error = "syntax_error"
    no_model_new = "no_model_new"
    bad_signature = "bad_signature"
    not_attempted = "not_attempted"
    # build
    import_error = "import_error"
    compile_error = "compile_error"
    undeclared_function = "undeclared_function"
    missing_cpp_sources = "missing_cpp_sources"
    link_error = "link_error"
    unsupported_cuda = "unsupported_cuda"
    init_error = "init_error"
    missing_weights = "missing_weights"
    no_compiler = "no_compiler"
    build_timeout = "build_timeout"
    # correct
    exception = "exception"
    wrong_type = "wrong_type"
    wrong_shape = "wrong_shape"
    wrong_dtype = "wrong_dtype"
    wrong_device = "wrong_device"
    non_finite = "non_finite"
    not_written = "not_written"
    wrong_values = "wrong_values"
    low_precision = "low_precision"
    constant_output = "constant_output"
    launch_error = "launch_error"
    timeout = "timeout"
    kernel_timeout = "kernel_timeout"
    crash = "crash"
    no_kernel = "no_kernel"  # also of a stage that passed, as the next one
    unneeded_kernel = "unneeded_kernel"
    torch_operator = "torch_operator"
    out_of_memory = "out_of_memory"
    false_report = "false_report"
    device_assert = "device_assert"
    # correct or safe
    out_of_bounds = "out_of_bounds"
    illegal_address = "illegal_address"
    misaligned = "misaligned"
    stack_overflow = "stack_overflow"
    division_by_zero = "division_by_zero"
    barrier_divergence = "barrier_divergence"
    warp_divergence = "warp_divergence"
    input_modified = "input_modified"
    output_aliases_input = "output_aliases_input"
    output_reused = "output_reused"
    nondeterministic = "nondeterministic"
    schedule_dependent = "schedule_dependent"
    race = "race"
    uninitialized = "uninitialized"
    int_overflow = "int_overflow"
    leak = "leak"
    # gradient
    missing_gradient = "missing_gradient"
    wrong_gradient = "wrong_gradient"
    gradient_shape = "gradient_shape"
    backward_exception = "backward_exception"
    backward_modified = "backward_modified"
    saved_overwritten = "saved_overwritten"
    noncontiguous_gradient = "noncontiguous_gradient"
    nondeterministic_gradient = "nondeterministic_gradient"
    # fast
    no_gpu = "no_gpu"
    inconclusive = "inconclusive"
    # any stage
    not_reached = "not_reached"
    interrupted = "interrupted"
    no_problem = "no_problem"
    grader_error = "grader_error"


EXPLANATIONS: dict[Reason, str] = {
    Reason.unreadable: "The file could not be read as text.",
    Reason.empty_file: "The file contains no code: it is empty or has only comments.",
    Reason.syntax_error: "Python cannot parse the file.",
    Reason.no_model_new: "The file has no class named ModelNew, which is the class that is graded.",
    Reason.bad_signature: "ModelNew does not take the same arguments as Model.",
    Reason.not_attempted: "This is still the exercise as handed out: fill in the marked places first.",
    Reason.import_error: "The file raised an exception while it was imported.",
    Reason.compile_error: "The compiler rejected the CUDA or C++ code.",
    Reason.undeclared_function: "functions= names a function that cpp_sources does not declare.",
    Reason.missing_cpp_sources: (
        "functions= is given but cpp_sources is empty: declare each function there, as `torch::Tensor f(torch::Tensor "
        "x);`."
    ),
    Reason.link_error: "A function is declared but never defined, so the extension could not be linked or loaded.",
    Reason.unsupported_cuda: "The code uses a CUDA feature that cannot run on this machine without a GPU.",
    Reason.init_error: "ModelNew(...) raised an exception.",
    Reason.missing_weights: (
        "Model's weights do not fit ModelNew: give ModelNew a parameter for each, of the same shape and preferably the "
        "same name, or a method load_reference(model)."
    ),
    Reason.no_compiler: (
        "This machine has no C++ compiler, so CUDA code cannot be built. `grader doctor` shows how to install one."
    ),
    Reason.build_timeout: "Importing the file took too long and was stopped.",
    Reason.exception: "forward raised an exception.",
    Reason.wrong_type: "forward returned something other than a tensor.",
    Reason.wrong_shape: "The output has the wrong shape.",
    Reason.wrong_dtype: "The output has the wrong dtype.",
    Reason.wrong_device: "The output is on the wrong device.",
    Reason.non_finite: (
        "The output contains NaN or infinity where the expected output is finite: look for exp of a large number, a "
        "division by 0, or the square root or logarithm of a negative number."
    ),
    Reason.not_written: (
        "The output, or memory that it was computed from, was never written: look for elements that no thread stores, "
        "and for shared memory that is read before it is set."
    ),
    Reason.wrong_values: "The output differs from the expected output by more than rounding explains.",
    Reason.low_precision: (
        "The output is correct only to a lower precision than required: keep sums in float32, and factors too unless "
        "the problem allows TF32."
    ),
    Reason.constant_output: "Every element of the output is the same number.",
    Reason.launch_error: "The kernel could not be launched.",
    Reason.timeout: "forward did not return within the time limit and was stopped.",
    Reason.kernel_timeout: "A kernel did not finish within the time limit: look for a loop that never ends.",
    Reason.crash: "The program crashed.",
    Reason.no_kernel: "The submission launched no kernel: PyTorch's own operators computed what forward returns.",
    Reason.unneeded_kernel: (
        "The results stay right when the submission's kernels do nothing: let a kernel compute what the host computes."
    ),
    Reason.torch_operator: "PyTorch's own operators compute part of the results.",
    Reason.false_report: (
        "The submission changes the grader's own code in its process: that process reports something else than what "
        "happened."
    ),
    Reason.out_of_memory: "The program needs more memory than this machine has.",
    Reason.device_assert: "An assert in a kernel failed.",
    Reason.out_of_bounds: "A kernel accessed memory outside a tensor.",
    Reason.illegal_address: "A kernel accessed an address that belongs to no tensor.",
    Reason.misaligned: "A kernel accessed an address that is not a multiple of the size it reads or writes there.",
    Reason.stack_overflow: "A kernel used more stack than a thread has.",
    Reason.division_by_zero: "A kernel divided an integer by zero.",
    Reason.barrier_divergence: "Some threads of a block never reach a __syncthreads() at which the others wait.",
    Reason.warp_divergence: "Some lanes named in a warp operation's mask never reach it.",
    Reason.input_modified: "forward changed one of its inputs: write to a new tensor.",
    Reason.output_aliases_input: "The output shares memory with an input: return a new tensor.",
    Reason.output_reused: (
        "The output shares memory with the result of an earlier call: allocate a new output in each call."
    ),
    Reason.nondeterministic: (
        "The same inputs gave different results when run twice: look for random numbers, for two threads that write "
        "one element, and for memory that is read before it is written."
    ),
    Reason.race: (
        "Two threads access the same element, at least one of them writes it, and nothing orders the two accesses."
    ),
    Reason.uninitialized: "A kernel reads memory that nothing has written.",
    Reason.int_overflow: "An int grows past 2,147,483,647, and whatever is computed from it is undefined.",
    Reason.leak: "Device memory is allocated in every call and never freed.",
    Reason.missing_gradient: (
        "An input or a weight gets no gradient: forward must call a torch.autograd.Function whose backward returns a "
        "gradient for each of its arguments."
    ),
    Reason.wrong_gradient: "A gradient differs from the expected gradient by more than rounding explains.",
    Reason.gradient_shape: "A gradient does not have the shape of its input or weight.",
    Reason.backward_exception: "backward raised an exception.",
    Reason.backward_modified: "backward changed a tensor that it does not own: write to a new tensor.",
    Reason.saved_overwritten: (
        "What forward saved was overwritten before backward read it: save that call's tensors with "
        "ctx.save_for_backward, not in the module or in a buffer that the next call reuses."
    ),
    Reason.noncontiguous_gradient: (
        "The gradient is wrong when the incoming gradient is not contiguous: call .contiguous() on it first."
    ),
    Reason.nondeterministic_gradient: (
        "The same call gave a gradient with different bits when it ran again: do not add floats with atomicAdd, whose "
        "order changes; let each block store its partial sum, and add the partial sums in a fixed order."
    ),
    Reason.schedule_dependent: (
        "The result changes with the order in which threads run: look for a race or a missing __syncthreads()."
    ),
    Reason.no_gpu: "Speed is measured on a GPU, and this machine has none.",
    Reason.inconclusive: "The measured times vary too much for a conclusion.",
    Reason.not_reached: "Not run, because an earlier stage did not pass.",
    Reason.interrupted: "Grading was interrupted.",
    Reason.no_problem: "It is not known which problem the file answers, or that problem cannot be used.",
    Reason.grader_error: "The grader itself failed; this says nothing about the submission.",
}

# Reasons of results that are not the work of the submission's own kernels.
NOT_IN_TIME = "it could not be counted in time"  # why no time is predicted, where another check may have more time
NOT_OWN_WORK = frozenset((Reason.no_kernel, Reason.unneeded_kernel, Reason.torch_operator, Reason.false_report))


class WrongMap(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which elements of an output of this shape are wrong, in cells of `cell` elements per dimension (all 1 unless the
    output is large). axes: the problem's names of the dimensions, if it has any.

    bits: one bit per cell, row-major, set if an element of it is wrong; packed, deflated, in base64.
    grader.verdict.wrong_map reads it.
    """

    shape: list[int]
    cell: list[int]
    bits: str
    axes: list[str] = []


class Launch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A kernel's launch; grid and block as (x, y, z)."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One observation and its place. Every field is optional; indices and coordinates count from 0, lines from 1.

    launches: on a CPU the kernels of the call that gave these values, or of its backward, oldest first; of many the
    last 16.
    """

    case: str | None = None
    gradient: str | None = None  # the input or weight whose gradient it is, such as x or gn.weight
    index: list[int] | None = None
    expected: float | None = None
    got: float | None = None
    wrong_count: int | None = None
    total: int | None = None
    pattern: str | None = None
    max_error: float | None = None
    tolerance: float | None = None
    wrong: WrongMap | None = None
    launches: list[Launch] = []
    kernel: str | None = None
    block: list[int] | None = None
    thread: list[int] | None = None
    line: int | None = None  # in the student's file
    source_line: int | None = None  # in the CUDA or C++ string
    text: str | None = None  # that line
    detail: str | None = None


class Measurement(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One measured quantity: the median, and where known its interval and the number of samples."""

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    samples: int | None = None


TIMED = "this submission"  # name of the measurement that is the submission's own time


class PredictedLaunch(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Launches of one kernel with one shape: how many, and the milliseconds that all of them are predicted to take.

    limit: what limits it, one of the terms of simt.counting.time_model.
    """

    kernel: str
    grid: list[int]
    block: list[int]
    times: int
    ms: float
    limit: str


class Rung(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Another kernel for the same problem at the same sizes, or what PyTorch takes. One of the two times is given, or
    both.

    kind: "step", "reference", "fastest", "eager" or "compile". predicted, measured: milliseconds on the prediction's
    GPU. idea: of a step, what is new in it.
    """

    name: str
    kind: str
    predicted: float | None = None
    measured: float | None = None
    idea: str = ""


class Prediction(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The predicted time of one forward at full size, from counters; nothing of it was measured on the submission.

    gpu: a name of simt.devices.DEVICES. sizes: of the inputs. backward: the time is that of forward and backward. low,
    high: milliseconds between which nine in ten such predictions hold. limit: of the launches that take longest.
    bound_ms: what the bytes of inputs and outputs alone take. advice: what to try next; empty if nothing stands out.
    moving: PyTorch's operators that fill or copy memory beside the kernels; their time is not in ms. waiting: a call in
    the host's code with which the CPU waits for the GPU, and what to do instead; empty if there is none. rungs: the
    fastest last; empty where none are known for these sizes.
    """

    gpu: str
    sizes: list[list[int]]
    ms: float
    low: float
    high: float
    limit: str
    bound_ms: float
    launches: list[PredictedLaunch]
    backward: bool = False
    advice: str = ""
    advice_line: int | None = None  # in the student's file
    moving: list[str] = []
    waiting: str = ""
    waiting_line: int | None = None  # in the student's file
    rungs: list[Rung] = []


class CaseResult(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The result of one case of a stage."""

    name: str
    status: Status
    reason: Reason | None = None


class Stage(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The result of one stage. message: the sentence for the student; evidence: the most useful one first.

    prediction: of "fast"; what was measured is in measurements alone.
    """

    name: StageName
    status: Status
    seconds: float = 0.0
    reason: Reason | None = None
    message: str = ""
    evidence: list[Evidence] = []
    cases: list[CaseResult] = []
    measurements: list[Measurement] = []
    prediction: Prediction | None = None

    def find_time(self) -> Measurement | None:
        """Return the submission's measured time, or None if none was."""
        return next((one for one in self.measurements if one.name == TIMED), None)


TIMEOUTS = {Reason.build_timeout, Reason.timeout, Reason.kernel_timeout}
USUAL_TIMEOUT = 20.0  # seconds, of verdicts that do not name theirs


class Submission(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The file that was graded. sha256: of its bytes; empty if it could not be read."""

    path: str
    sha256: str


class Verdict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole result of grading one submission. seconds: wall clock; device: e.g. "cpu (simt)".

    timeout: the limit in seconds for the submission's import and each of its steps; None in those of older graders.
    """

    schema: str = SCHEMA
    problem: str
    submission: Submission
    outcome: Outcome
    stages: list[Stage]
    device: str
    versions: dict[str, str]
    seed: int
    seconds: float
    sandbox: str
    output: str = ""  # the end of what the program printed
    settings: dict[str, str] = {}  # the problem's literals that --set replaced, as text
    problem_sha256: str = ""  # of the problem file's bytes, set by `grader grade`; else empty
    timeout: float | None = None

    def holds_for(self, device: str | None, timeout: float | None, gpu: str | None = None) -> bool:
        """Return whether grading the same file with these options would repeat this verdict; None: with any value.

        device: "cpu" or "cuda". timeout: a longer one changes nothing but a verdict that a time limit decided. gpu: of
        the prediction, if the verdict has one and no measured time.
        """
        ran_on = "cpu" if self.device.startswith("cpu (") else "cuda"
        limit = USUAL_TIMEOUT if self.timeout is None else self.timeout
        reasons = {one.reason for stage in self.stages for one in (stage, *stage.cases)}
        in_time = timeout in (None, limit) or (timeout > limit and not reasons & TIMEOUTS)
        predicted = {one.prediction.gpu for one in self.stages if one.prediction and not one.find_time()}
        return device in (None, ran_on) and in_time and (gpu is None or predicted <= {gpu})

    def stage(self, name: StageName | str) -> Stage:
        """Return the stage of that name. Raises KeyError if the verdict has none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    @property
    def first_problem(self) -> Stage | None:
        """The first stage that failed or ended with an error, or None."""
        return next((s for s in self.stages if s.status in (Status.failed, Status.error)), None)

    @property
    def reason(self) -> Reason | None:
        """The reason of the first stage that did not pass, or None."""
        stage = self.first_problem
        return stage.reason if stage else None

    @property
    def is_interrupted(self) -> bool:
        """Whether the keyboard ended the grading, if only after a stage that failed."""
        return any(stage.reason is Reason.interrupted for stage in self.stages)

    @property
    def not_own(self) -> Reason | None:
        """Why forward's results are not the work of the submission's own kernels, or None.

        None also where the submission passed, marked: then the problem asks for no kernels.
        """
        correct = next((s for s in self.stages if s.name is StageName.correct), None)
        if correct is None or correct.reason not in NOT_OWN_WORK:
            return None
        return correct.reason if correct.status is Status.failed or self.outcome is Outcome.failed else None

    @property
    def doubt(self) -> Reason | None:
        """Why a person should read the file although it passed, or None."""
        reasons = (s.reason for s in self.stages if s.reason in (Reason.no_kernel, Reason.unneeded_kernel))
        return next(reasons, None) if self.outcome is Outcome.passed else None


def outcome_of(stages: list[Stage]) -> Outcome:
    """Return the outcome that follows from these stages."""
    if any(s.reason is Reason.not_attempted for s in stages):
        return Outcome.not_attempted
    if any(s.status is Status.error for s in stages):
        return Outcome.error
    if any(s.status is Status.failed for s in stages):
        return Outcome.failed
    return Outcome.passed


def to_json(verdict: Verdict) -> bytes:
    """Return the verdict as one line of JSON. NaN and infinity, which JSON does not have, become null; for file names
    see `spelled`.
    """
    try:
        return msgspec.json.encode(verdict)
    except UnicodeEncodeError:
        return msgspec.json.encode(_spell_all(msgspec.to_builtins(verdict)))


def spelled(name: str) -> str:
    """Return a file name, or text that contains one, with bytes that are not UTF-8 written as \\xff."""
    try:
        data = name.encode("utf-8", "surrogateescape")  # as Python keeps such bytes, whatever the locale
    except UnicodeEncodeError:
        data = name.encode("utf-8", "replace")
    return data.decode("utf-8", "backslashreplace")


def _spell_all(plain: object) -> object:
    """Return plain data (dicts, lists, text, numbers) with `spelled` applied to each text in it."""
    if isinstance(plain, dict):
        pairs = cast(dict[object, object], plain).items()
        return {_spell_all(name): _spell_all(value) for name, value in pairs}
    if isinstance(plain, list | tuple):
        return [_spell_all(value) for value in cast("list[object] | tuple[object, ...]", plain)]
    return spelled(plain) if isinstance(plain, str) else plain


def from_json(data: bytes | str) -> Verdict:
    """Read a verdict. Raises msgspec.ValidationError if a field is unknown, missing or of another type."""
    verdict = msgspec.json.decode(data, type=Verdict, strict=True)
    if verdict.schema != SCHEMA:
        raise msgspec.ValidationError(f"this verdict follows {verdict.schema!r}, and this grader reads {SCHEMA!r}")
    return verdict


def json_schema() -> dict[str, Any]:
    """Return the verdict's JSON Schema."""
    return msgspec.json.schema(Verdict)
