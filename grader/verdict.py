"""What the judge says about one submission: the one schema that every reader uses."""

from __future__ import annotations

from enum import StrEnum

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
    """The verdict in one word. `error`: the grader or the machine could not finish."""

    passed = "passed"
    failed = "failed"
    not_attempted = "not_attempted"
    error = "error"


class Reason(StrEnum):
    """Why a stage did not pass, or what to know of one that did. `EXPLANATIONS` has a sentence for each."""

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
    no_kernel = "no_kernel"  # of a stage that passed
    out_of_memory = "out_of_memory"
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
    grader_error = "grader_error"


EXPLANATIONS: dict[Reason, str] = {
    Reason.unreadable: "The file could not be read as text.",
    Reason.empty_file: "The file has no code in it: it is empty or only comments.",
    Reason.syntax_error: "Python cannot parse the file.",
    Reason.no_model_new: "The file has no class named ModelNew, which is what is graded.",
    Reason.bad_signature: "ModelNew does not take the same arguments as Model.",
    Reason.not_attempted: "This is still the exercise as handed out: fill in the marked places first.",
    Reason.import_error: "An exception was raised while the file was being imported.",
    Reason.compile_error: "The compiler rejected the CUDA or C++ code.",
    Reason.undeclared_function: "functions= names a function that cpp_sources does not declare.",
    Reason.missing_cpp_sources: "functions= is given but cpp_sources is empty: declare each function there, as `torch::Tensor f(torch::Tensor x);`.",
    Reason.link_error: "A function is declared but never defined, so the extension could not be linked or loaded.",
    Reason.unsupported_cuda: "The code uses a CUDA feature that cannot be run on this machine without a GPU.",
    Reason.init_error: "ModelNew(...) raised an exception when it was constructed.",
    Reason.missing_weights: "Model's weights do not fit ModelNew: give ModelNew parameters of the same names and shapes, or a method load_reference(model).",
    Reason.no_compiler: "This machine has no C++ compiler, so CUDA code cannot be built. `grader doctor` says how to mend that.",
    Reason.build_timeout: "Importing the file took too long and was stopped.",
    Reason.exception: "forward raised an exception.",
    Reason.wrong_type: "forward returned something other than a tensor.",
    Reason.wrong_shape: "The output has the wrong shape.",
    Reason.wrong_dtype: "The output has the wrong dtype.",
    Reason.wrong_device: "The output is on the wrong device.",
    Reason.non_finite: "The output holds NaN or infinity where the right result is finite: look for exp of a large number, a division by 0, the root or logarithm of a negative number.",
    Reason.not_written: "The output was never written, or comes from memory that was not: look for elements that no thread stores, and for shared memory that is read before it is set.",
    Reason.wrong_values: "Values differ from the right result by more than rounding explains.",
    Reason.low_precision: "Values are right only to lower precision than is asked for: keep sums in float32, and factors too where the problem does not say TF32.",
    Reason.constant_output: "Every element of the output is the same number.",
    Reason.launch_error: "The kernel could not be launched.",
    Reason.timeout: "forward did not return in time and was stopped.",
    Reason.kernel_timeout: "A kernel did not finish in time: look for a loop that never ends.",
    Reason.crash: "The program died while it ran.",
    Reason.no_kernel: "No kernel of its own was launched: PyTorch's operators made what forward returns.",
    Reason.out_of_memory: "The program asked for more memory than there is.",
    Reason.device_assert: "An assert in a kernel failed.",
    Reason.out_of_bounds: "A kernel touched memory outside a tensor: check the index and the bounds test.",
    Reason.illegal_address: "A kernel touched an address that belongs to no tensor.",
    Reason.misaligned: "A kernel touched an address that is not a multiple of the size it reads or writes there.",
    Reason.stack_overflow: "A kernel used more stack than a thread has: look for endless recursion or a huge local array.",
    Reason.division_by_zero: "A kernel divided an integer by zero.",
    Reason.barrier_divergence: "Some threads of a block never reach a __syncthreads() that the others wait at.",
    Reason.warp_divergence: "Some lanes named in a warp operation's mask never reach it.",
    Reason.input_modified: "forward changed one of its inputs: write to a new tensor.",
    Reason.output_aliases_input: "The output shares memory with an input: write to a new tensor.",
    Reason.output_reused: "The output shares memory with the result of an earlier call: allocate a new output each time.",
    Reason.nondeterministic: "The same inputs gave different results when run twice: look for a race or memory that was never set.",
    Reason.race: "Two threads use the same element, at least one writes it, and nothing makes one wait for the other.",
    Reason.uninitialized: "A kernel uses memory that nothing has written.",
    Reason.int_overflow: "An int grows past 2,147,483,647: what is computed from it is undefined.",
    Reason.leak: "Device memory is allocated on every call and never freed.",
    Reason.missing_gradient: "An input or a weight gets no gradient: forward must go through a torch.autograd.Function whose backward returns a gradient for each of its arguments.",
    Reason.wrong_gradient: "A gradient differs from the right one by more than rounding explains.",
    Reason.gradient_shape: "A gradient has another shape than what it is the gradient of.",
    Reason.backward_exception: "backward raised an exception.",
    Reason.backward_modified: "backward changed a tensor that is not its own: write to a new tensor.",
    Reason.saved_overwritten: "What forward saved was overwritten before backward read it: save tensors of that call with ctx.save_for_backward, not in the module or in a buffer that the next call uses too.",
    Reason.noncontiguous_gradient: "The gradient is wrong where the one that comes in does not lie in memory in one piece: call .contiguous() on it first.",
    Reason.nondeterministic_gradient: "The same call gave a gradient with other bits when it ran again: do not add floats with atomicAdd, whose order changes; let each block store its part, and add the parts in a fixed order.",
    Reason.schedule_dependent: "The result changes with the order in which threads run: a race, or a __syncthreads() is missing.",
    Reason.no_gpu: "Speed is measured on a GPU and this machine has none.",
    Reason.inconclusive: "The times scattered too much to say anything.",
    Reason.not_reached: "Not run, because an earlier stage did not pass.",
    Reason.interrupted: "Grading was interrupted.",
    Reason.grader_error: "The grader itself could not do this; it says nothing about the submission.",
}


class WrongMap(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which elements of an output of this shape are wrong, in cells of `cell` elements a dimension (all 1 unless the output is large).

    bits: a bit for each cell, row-major, set if an element of it is wrong; packed, deflated, in base64. grader.wrong reads it.
    """

    shape: list[int]
    cell: list[int]
    bits: str


class Launch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A kernel's launch; grid and block as (x, y, z)."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was seen, where. Every field is optional; indices and coordinates count from 0, lines from 1.

    launches: on a CPU the kernels of the call that gave these values, or of its backward, oldest first, of many the last 16.
    """

    case: str | None = None
    gradient: str | None = None  # of which input or weight, such as x or gn.weight
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
    """One measured quantity: the median, and where known the spread and how many samples it stands on."""

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    samples: int | None = None


class CaseResult(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How one case of a stage went."""

    name: str
    status: Status
    reason: Reason | None = None


class Stage(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One stage: `message` is the sentence for the student; the first evidence is the one to look at first."""

    name: StageName
    status: Status
    seconds: float = 0.0
    reason: Reason | None = None
    message: str = ""
    evidence: list[Evidence] = []
    cases: list[CaseResult] = []
    measurements: list[Measurement] = []


class Submission(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The file that was graded. `sha256` is of its bytes; empty where there was nothing to read."""

    path: str
    sha256: str


class Verdict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that is known about one submission. `seconds` is wall clock, `device` e.g. "cpu (simt)"."""

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
    problem_sha256: str = ""  # of the problem file's bytes, as `grader grade` found them; empty where nobody looked

    def stage(self, name: StageName | str) -> Stage:
        """The stage of that name; KeyError if the verdict has none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    @property
    def first_problem(self) -> Stage | None:
        """The first stage that failed or could not be done, or None."""
        return next((s for s in self.stages if s.status in (Status.failed, Status.error)), None)

    @property
    def reason(self) -> Reason | None:
        """The reason of the first stage that did not pass, or None."""
        stage = self.first_problem
        return stage.reason if stage else None

    @property
    def doubt(self) -> Reason | None:
        """Of a verdict that passed, why somebody should look at the file all the same; or None."""
        doubtful = self.outcome is Outcome.passed and any(s.reason is Reason.no_kernel for s in self.stages)
        return Reason.no_kernel if doubtful else None


def outcome_of(stages: list[Stage]) -> Outcome:
    """The outcome that these stages amount to."""
    if any(s.reason is Reason.not_attempted for s in stages):
        return Outcome.not_attempted
    if any(s.status is Status.error for s in stages):
        return Outcome.error
    if any(s.status is Status.failed for s in stages):
        return Outcome.failed
    return Outcome.passed


def to_json(verdict: Verdict) -> bytes:
    """The verdict as one line of JSON. Numbers that JSON cannot hold (NaN, infinity) become null; for file names see `spelled`."""
    try:
        return msgspec.json.encode(verdict)
    except UnicodeEncodeError:
        return msgspec.json.encode(_spelled(msgspec.to_builtins(verdict)))


def spelled(name: str) -> str:
    """A file's name, or text with one in it, as JSON can hold it: bytes of it that are not UTF-8 as \\xff."""
    try:
        data = name.encode("utf-8", "surrogateescape")  # as Python keeps such bytes, whatever the locale
    except UnicodeEncodeError:
        data = name.encode("utf-8", "replace")
    return data.decode("utf-8", "backslashreplace")


def _spelled(plain: object) -> object:
    """The same with each text spelled."""
    if isinstance(plain, dict):
        return {_spelled(name): _spelled(value) for name, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_spelled(value) for value in plain]
    return spelled(plain) if isinstance(plain, str) else plain


def from_json(data: bytes | str) -> Verdict:
    """Read a verdict strictly: msgspec.ValidationError if a field is unknown, missing or of another type."""
    verdict = msgspec.json.decode(data, type=Verdict, strict=True)
    if verdict.schema != SCHEMA:
        raise msgspec.ValidationError(f"this verdict follows {verdict.schema!r}, and this grader reads {SCHEMA!r}")
    return verdict


def json_schema() -> dict:
    """The verdict's JSON Schema."""
    return msgspec.json.schema(Verdict)
