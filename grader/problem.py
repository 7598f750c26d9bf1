"""Read a KernelBench file as a problem: its model, its inputs at any size, and the answers a submission must give."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import functools
import hashlib
import inspect
import random
import symtable
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader import cases as _cases
from grader import channel, student, syntax
from grader.cases import Case, ProblemError, TooMuch

__all__ = ["Case", "Instance", "Problem", "ProblemError", "find", "flatten", "read"]

KERNELS_REF = Path(__file__).resolve().parent.parent / "kernels_ref"
NEEDED = ("Model", "get_inputs", "get_init_inputs")


def find(submission: Path) -> Problem:
    """The problem that a submission answers, by its name or its folder's.

    `kernels_student/groupnorm.py` and `groupnorm_backward.py`, `kernels_ref/groupnorm/solution.py` and a file in `steps/` are found, and so
    are handed-in names such as `groupnorm_ada.py`, `groupnorm-2.py` or `ada.groupnorm.py`. Raises ProblemError, which lists the known
    names, for anything else, also beside a `model.py` that is not in kernels_ref.
    """
    model = student.model_of(submission)
    if model is not None:
        return read(model)
    submission, known = Path(submission).resolve(), names()
    near = difflib.get_close_matches(submission.stem, known, n=1)
    hint = f"did you mean {near[0]}.py?" if near else "the problems are " + ", ".join(known) + "."
    beside = [folder / "model.py" for folder in (submission.parent, submission.parent.parent) if (folder / "model.py").is_file()]
    unasked = f" {beside[0]} may have been handed in too: it is run as the problem only if you name it so." if beside else ""
    raise ProblemError(
        f"No problem is called '{submission.stem}': {hint} Name the file after its problem, or give --problem FILE.{unasked}"
    )


def names() -> list[str]:
    """Names of the problems in kernels_ref, sorted."""
    return student.problems()


def read(path: Path, overrides: dict[str, str] | None = None) -> Problem:
    """Any KernelBench file as a problem.

    overrides: module-level names to Python literals as text (`{"batch_size": "2"}`), as `--set` gives them.
    Raises ProblemError if the file cannot be read, lacks Model, get_inputs or get_init_inputs, or fails to run,
    or if a name in overrides is not assigned a literal at module level.
    """
    path = Path(path)
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ProblemError(f"{path}: the problem file cannot be read ({reason}).") from None
    try:
        tree = syntax.parse(source, str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise ProblemError(f"syntax error: {getattr(error, 'msg', error)}.", path, line) from None
    problem = Problem(_name(path), path, tree, _literals_of(overrides or {}))
    problem.check()
    return problem


def _name(path: Path) -> str:
    """kernels_ref/groupnorm/model.py is called groupnorm; any other file by its stem."""
    return path.resolve().parent.name if path.name == "model.py" else path.stem


def _literals_of(overrides: dict[str, str]) -> dict[str, object]:
    values = {}
    for name, text in overrides.items():
        try:
            values[name] = ast.literal_eval(str(text).strip())
        except (ValueError, SyntaxError):
            raise ProblemError(
                f"--set {name}={text}: the value must be a Python literal such as 16, 0.5 or (8, 1, 1)."
            ) from None
    return values


@dataclasses.dataclass
class Problem:
    """A KernelBench file with some of its module-level literals replaced.

    name: what reports call it. path: its file. overrides: name to value, from --set.
    """

    name: str
    path: Path
    tree: ast.Module
    overrides: dict[str, object]

    def check(self) -> None:
        """Raise ProblemError unless the file runs and has the three names of the contract."""
        module = self.module({})
        missing = [name for name in NEEDED if not callable(getattr(module, name, None))]
        if missing:
            have = "has no " + " and no ".join(missing)
            raise ProblemError(f"{have}; a problem file defines Model, get_inputs and get_init_inputs.", self.path)
        if self.precision not in _cases.PRECISIONS:
            raise ProblemError(f"PRECISION is {self.precision!r}, not one of {', '.join(_cases.PRECISIONS)}.", self.path)

    @functools.cached_property
    def literals(self) -> dict[str, object]:
        """Module-level names that are assigned a literal, with the file's own (or --set's) values."""
        found = {}
        for statement in _split(self.tree).body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                if _is_literal(statement.value):
                    found[statement.targets[0].id] = _value(statement.value)
        return found | self.overrides

    @functools.cached_property
    def read_by_model(self) -> frozenset[str]:
        """Module-level names that Model's own code reads: in its methods, or in what these use of the file."""
        return frozenset(_used(self.tree, "Model"))

    @functools.cached_property
    def names_cuda(self) -> bool:
        """Whether the file puts anything on a GPU by name."""
        nodes = list(ast.walk(self.tree))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        return any(map(_is_cuda, texts)) or any(isinstance(node, ast.Attribute) and node.attr == "cuda" for node in nodes)

    @property
    def precision(self) -> str:
        """How precise an answer must be: as eager float32 ("fp32"), or as eager TF32, which the file's PRECISION asks for."""
        return self.literals.get("PRECISION", _cases.PRECISIONS[0])

    def module(self, overrides: dict[str, object]) -> types.ModuleType:
        """The file executed with these literals replaced; values derived from them follow, and --set's win."""
        overrides = overrides | self.overrides
        tree = _replace(self.tree, overrides, self.path)
        key = hashlib.sha256(repr((str(self.path), overrides)).encode()).hexdigest()[:12]
        module = types.ModuleType(f"problem_{self.name}_{key}")
        module.__file__ = str(self.path)
        sys.modules[module.__name__] = module  # dataclasses and torch.compile look a class's module up
        with self._blame("the file"):
            exec(compile(tree, str(self.path), "exec", dont_inherit=True), module.__dict__)
        return module

    def cases(self) -> list[Case]:
        """The file's CASES, or cases made by lowering its sizes; at least one. Raises ProblemError."""
        declared = getattr(self.module({}), "CASES", None)
        cases = _cases.lower(self) if declared is None else _cases.declared(self, declared)
        return [self._with_reduction(case, "cpu") for case in cases]

    def check_certain(self, cases: list[Case], device: str | torch.device = "cpu") -> None:
        """Raise ProblemError, which says what helps, if arguments, weights and inputs do not settle what Model returns.

        A submission is told no more than these, and is called more than once. It is looked at in one small case.
        """
        case = self._telling(cases)
        instance = self.instantiate(case, 0, device)
        if not isinstance(instance.model, torch.nn.Module):
            return
        why = instance.uncertain()
        if why == DRAWS:
            why += self._without_dropout(case, device)
        if why:
            raise ProblemError(why, self.path)

    def _telling(self, cases: list[Case]) -> Case:
        """The first case with enough inputs for chance to show, or the last: with one feature, softmax is 1 whatever is dropped."""
        for case in cases:
            inputs = self.instantiate(case, 0).inputs
            if sum(t.numel() for t in _tensors(inputs)) >= ENOUGH:
                return case
        return cases[-1]

    def _without_dropout(self, case: Case, device: str | torch.device) -> str:
        """The advice to --set the rates of dropout to 0, if the file names them and that is enough."""
        rates = {name: 0.0 for name, value in self.literals.items() if "drop" in name.lower() and type(value) in (int, float) and value}
        try:
            enough = rates and not dataclasses.replace(self, overrides=self.overrides | rates).instantiate(case, 0, device).uncertain()
        except ProblemError:
            enough = False
        if not enough:
            return "; take out of the file what Model draws."
        return f"; {' '.join(f'--set {name}=0.0' for name in rates)} makes it certain."

    def full(self) -> Case:
        """The file's own sizes and inputs."""
        return self._with_reduction(Case("full size"), "meta")

    def _with_reduction(self, case: Case, device: str) -> Case:
        """The case in the file's precision, with the longest sum that its Model computes, unless the file says it (watching takes a second)."""
        case = dataclasses.replace(case, precision=self.precision)
        if case.reduction is not None:
            return case
        try:
            measured = self.instantiate(case, 0, device).reduction()
        except ProblemError:  # not every Model runs on the meta device: the case's word, or compare's default, must do
            return case
        return dataclasses.replace(case, reduction=measured)

    def instantiate(self, case: Case, seed: int, device: str | torch.device = "cpu") -> Instance:
        """A model with random weights and inputs for `case`, the same for the same (seed, case, device).

        The model is float32 (or whatever the file makes) and in the mode in which it was constructed. Every
        parameter is moved by a random amount so that a default of 0 or 1 hides nothing; buffers stay as they are.
        Raises ProblemError if the file's functions raise, or give what no submission can be handed.
        """
        device = torch.device(device)
        module = self.module(dict(case.set))
        draw = _draw(seed, case)
        with self._blame("get_init_inputs()", device), _seeded(draw, device):
            args, kwargs = _arguments(module.get_init_inputs())
        self._check_fit("get_init_inputs() gives", [args, kwargs])
        with self._blame("get_inputs()", device), _seeded(draw + 1, device), torch.device(device):
            made = module.get_inputs()
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            self._check_fit("get_inputs() gives", made)
            inputs = [_distribute(value, case.inputs, device) for value in made]

        def build(other: int = 0) -> torch.nn.Module:
            with self._blame("Model(...)", device), _seeded(draw + 2 + other, device), torch.device(device):
                model = module.Model(*args, **kwargs)
                if isinstance(model, torch.nn.Module):
                    model = model.to(device)
                    _randomise(model)
                    self._check_fit("Model holds", model.state_dict())
            return model

        return Instance(build(), args, inputs, kwargs, build, functools.partial(self._blame, "Model.forward", device), self.precision)

    def upstream(self, case: Case, seed: int, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Gradients to start backward with: normal random numbers for each floating output, the same for the same (seed, case)."""
        made = []
        for number, like in enumerate(out for out in outputs if out.is_floating_point()):
            generator = torch.Generator(like.device).manual_seed((_draw(seed, case) + 3 + number) % 2**62)
            made.append(torch.randn(like.shape, dtype=like.dtype, device=like.device, generator=generator))
        return made

    def _check_fit(self, what: str, value: object) -> None:
        """Raise ProblemError for what cannot be sent to a submission's process."""
        if unfit := channel.unfit(value):
            raise ProblemError(
                f"{what} {unfit}: a submission takes dense tensors of the usual dtypes, real numbers, strings, None, torch.dtype, torch.device, and "
                "lists, tuples and dicts of these.",
                self.path,
            )

    @contextlib.contextmanager
    def _blame(self, what: str, device: torch.device | None = None) -> Iterator[None]:
        """Turn whatever the file raises into a ProblemError with the line that raised. What it puts on a GPU by name goes to the device; without one
        to the CPU, where there is no GPU."""
        device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            with _Elsewhere(device) if self.names_cuda and device.type != "cuda" else contextlib.nullcontext():
                yield
        except (ProblemError, KeyboardInterrupt, torch.OutOfMemoryError):  # a GPU that is too small is not the file's fault
            raise
        except BaseException as error:
            text = str(error).strip().splitlines()
            reason = type(error).__name__ + (f": {text[0]}" if text else "")
            raise ProblemError(f"{what} raised {reason}", self.path, _line(error, self.path)) from None


@dataclasses.dataclass
class Instance:
    """One model with weights and one list of inputs.

    model: the reference, not yet run (its state_dict is what a submission loads). init_args, init_kwargs: what
    Model was constructed with. inputs: what forward takes; tensors on the device, other values as they are.
    kind: what forward returned when it was last run, in channel.kind_of's words.
    """

    model: torch.nn.Module
    init_args: list
    inputs: list
    init_kwargs: dict
    build: Callable[..., torch.nn.Module]
    blame: Callable[[], contextlib.AbstractContextManager]
    precision: str = _cases.PRECISIONS[0]
    kind: str = ""

    def eager(self) -> list[torch.Tensor]:
        """The outputs in the model's own dtype, with TF32 and other shortcuts off. A fresh model each time.

        In a problem of precision "tf32": with the factors of every product rounded to TF32, as tensor cores take them.
        """
        with Tf32() if self.precision == "tf32" else contextlib.nullcontext():
            return self._run(self.build(), _copies(self.inputs))

    def expected(self) -> list[torch.Tensor]:
        """The outputs computed in float64 (floating outputs are float64; others keep their dtype)."""
        try:
            return self._run_double(rounding=0.0)
        except ProblemError:
            # A model that insists on its own dtype inside has no float64 form: its own result is all there is.
            return [out.double() if out.is_floating_point() else out for out in self.eager()]

    def noise(self) -> list[torch.Tensor]:
        """How far each output moves (float32, absolute) when every input and weight is off by one rounding.

        This is the error that no float32 implementation can be blamed for; compare.tolerance() is built on it.
        """
        expected = self.expected()
        try:
            moved = self._run_double(rounding=self._unit())
        except ProblemError:
            moved = [out.clone() for out in expected]
        return [_distance(a, b) for a, b in zip(expected, moved)]

    def uncertain(self) -> str:
        """How the result depends on more than arguments, weights and inputs, as a sentence; empty if it does not."""
        model, other = self.build(), self.build(other=OTHER)
        try:
            other.load_state_dict(model.state_dict())
        except Exception:  # a Model whose own weights cannot be loaded: nobody knows
            other = self.build()
        drawn, before = _differing(_held(model), _held(other)), _held(model)
        first, drew = self._once(model, 0)
        if any(_apart(first, self._once(self.build(), seed)[0]) for seed in (range(1, 9) if drew else (1,))):
            return DRAWS
        if _apart(first, self._once(other, 0)[0]):
            what = " and ".join(f"`{name}`" for name in drawn) or "something"
            each = ": " + ", ".join(f"self.register_buffer('{name.rpartition('.')[2]}', ...)" for name in drawn) if drawn else ""
            return (
                f"Model itself is random: __init__ draws {what}, and a submission is given parameters and buffers alone; make a buffer of it in the "
                f"file{each}."
            )
        changed = _differing(before, _held(model))
        if _apart(first, self._once(model, 0)[0]):
            what = " and ".join(f"`{name}`" for name in changed) or "something"
            return (
                f"Model keeps {what} from one call to the next: called again with the same inputs it gives other results, so that none is right; "
                "have forward keep nothing in self."
            )
        return ""

    def _once(self, model: torch.nn.Module, seed: int) -> tuple[list[torch.Tensor], bool]:
        """The outputs with this seed, and whether random numbers were drawn on the way."""
        gpus = [t.device for t in _tensors(self.inputs) if t.is_cuda]
        with self.blame(), torch.no_grad(), _exact_float32(), _seeded(seed, None):
            state = torch.cuda.get_rng_state(gpus[0]) if gpus else torch.get_rng_state()
            outputs = [out.clone() for out in flatten(model(*_copies(self.inputs)))]
            return outputs, not torch.equal(state, torch.cuda.get_rng_state(gpus[0]) if gpus else torch.get_rng_state())

    # -- gradients: a list of one for each of differentiable() --

    def differentiable_later(self) -> bool:
        """Whether another call leaves the gradient of the one before as it was: a Model that writes to a tensor of its own may spoil it."""
        try:
            model, inputs = self.build(), _copies(self.inputs)
            with self.blame(), torch.enable_grad(), _seeded(0, None):
                for number in self.differentiable()[0]:
                    inputs[number].requires_grad_()
                outputs = [out for out in ends(model(*inputs)) if out.requires_grad]
                model(*_copies(self.inputs))
                if outputs:
                    torch.autograd.backward(outputs, [torch.ones_like(out) for out in outputs])
        except ProblemError as error:
            return "inplace operation" not in error.message
        return True

    def differentiable(self) -> tuple[list[int], list[str]]:
        """Numbers of the inputs and names of the parameters that can have a gradient."""
        inputs = [number for number, value in enumerate(self.inputs) if _is_float(value)]
        return inputs, [name for name, p in self.model.named_parameters() if _is_float(p) and p.requires_grad]

    def names(self) -> list[str]:
        """What forward calls each input, or "input 0"."""
        taken = [p.name for p in inspect.signature(self.model.forward).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return [taken[n] if n < len(taken) else f"input {n}" for n in range(len(self.inputs))]

    def gradients(self, upstream: list[torch.Tensor]) -> tuple[list[torch.Tensor | None], int]:
        """Eager's gradients in the model's own dtype, and the largest number of terms that it sums for a number on the way there or back."""
        watch = Watch()
        model, inputs = self.build(), _copies(self.inputs)
        with watch:
            return self._differentiate(model, inputs, upstream), watch.reduction

    def expected_gradients(self, upstream: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """The gradients in float64."""
        try:
            return self._gradients_double(upstream, rounding=0.0)
        except ProblemError:  # as in expected()
            return [value if value is None else value.double() for value in self.gradients(upstream)[0]]

    def gradient_noise(self, upstream: list[torch.Tensor], expected: list[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """How far each gradient moves when every input, weight and upstream gradient is off by one rounding."""
        try:
            moved = self._gradients_double(upstream, rounding=self._unit())
        except ProblemError:
            return [value if value is None else torch.zeros_like(value, dtype=torch.float32) for value in expected]
        return [None if a is None or b is None else _distance(a, b) for a, b in zip(expected, moved)]

    def _gradients_double(self, upstream: list[torch.Tensor], rounding: float) -> list[torch.Tensor | None]:
        model, inputs, upstream = _double(self.build()), _double_inputs(self.inputs), _double_inputs(upstream)
        if rounding:
            _jiggle(model, inputs + upstream, rounding)
        with _double_default():
            return self._differentiate(model, inputs, upstream)

    def _differentiate(self, model: torch.nn.Module, inputs: list, upstream: list[torch.Tensor]) -> list[torch.Tensor | None]:
        numbers, names = self.differentiable()
        own = dict(model.named_parameters())
        with self.blame(), torch.enable_grad(), _exact_float32(), _seeded(0, None):
            wanted = [inputs[n].requires_grad_() for n in numbers] + [own[name] for name in names]
            outputs = [out for out in ends(model(*inputs)) if out.is_floating_point()]
            pairs = [(out, up) for out, up in zip(outputs, upstream) if out.requires_grad]
            if not pairs:
                return [None] * len(wanted)
            made = torch.autograd.grad([out for out, _ in pairs], wanted, [up for _, up in pairs], allow_unused=True)
        return [value if value is None else value.to_dense() if value.is_sparse else value for value in made]

    def reduction(self) -> int:
        """How many terms the model sums for one number, at most, over all of its steps (1 if it sums nothing)."""
        return self.watched()[1].reduction

    def watched(self, most_operations: int | None = None) -> tuple[list[torch.Tensor], Watch]:
        """Eager's outputs and what it took to compute them. Raises ProblemError beyond most_operations."""
        watch = Watch(most_operations)
        model, inputs = self.build(), _copies(self.inputs)
        with watch:
            return self._run(model, inputs), watch

    def _run_double(self, rounding: float) -> list[torch.Tensor]:
        model, inputs = _double(self.build()), _double_inputs(self.inputs)
        if rounding:
            _jiggle(model, inputs, rounding)
        with _double_default():
            return self._run(model, inputs)

    def _unit(self) -> float:
        """Relative rounding error of the coarsest dtype among inputs and weights (6e-8 for float32)."""
        tensors = [value for value in self.inputs if _is_float(value)] + list(self.model.parameters())
        return max((torch.finfo(t.dtype).eps / 2 for t in tensors if t.is_floating_point()), default=2.0**-24)

    def _run(self, model: torch.nn.Module, inputs: list) -> list[torch.Tensor]:
        with self.blame(), torch.no_grad(), _exact_float32(), _seeded(0, None):
            made = model(*inputs)
            self.kind = channel.kind_of(made)
            return flatten(made)


DRAWS = "Model itself is random: called twice with the same inputs and weights it gives other results (dropout, say)"
OTHER = 1 << 20  # moves a seed to where no other seed of ours is
ENOUGH = 100  # elements of all inputs together


def _held(model: torch.nn.Module) -> dict[str, object]:
    """Copies of the tensors and numbers that a model and its parts hold and that are no parameters, by their names."""
    held: dict[str, object] = {}
    for path, part in model.named_modules():
        for name, value in [*vars(part).items(), *part.named_buffers(recurse=False)]:
            if isinstance(value, (torch.Tensor, int, float)):
                held[f"{path}.{name}".lstrip(".")] = value.detach().clone() if isinstance(value, torch.Tensor) else value
    return held


def _differing(a: dict[str, object], b: dict[str, object]) -> list[str]:
    """The names that stand for different values."""
    return [name for name in a if name in b and _apart(_tensors(torch.as_tensor(a[name])), _tensors(torch.as_tensor(b[name])))]


def _apart(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    """Whether results differ by more than the order of sums explains."""
    if [(x.shape, x.dtype) for x in a] != [(x.shape, x.dtype) for x in b]:
        return True
    for x, y in zip(a, b):
        x, y = x.double().nan_to_num(), y.double().nan_to_num()
        if x.numel() and (x - y).abs().max() > 1e-4 * x.abs().max():
            return True
    return False


def _distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """|a - b| in float32, 0 where that is not finite or the tensors are not floating; b is used up."""
    if not a.is_floating_point() or a.shape != b.shape:
        return torch.zeros_like(a, dtype=torch.float32)
    return b.sub_(a).abs_().float().nan_to_num_(0.0, 0.0, 0.0)


def flatten(outputs: object) -> list[torch.Tensor]:
    """A model's result as a list of tensors: a tensor, a number, or any nest of tuples, lists and dicts of them."""
    return [tensor.detach() for tensor in ends(outputs)]


def ends(outputs: object) -> list[torch.Tensor]:
    """The tensors of a result, with the graph that they carry. Raises TypeError for what cannot be compared."""
    found = channel.tensors(outputs)
    for end in found:
        if not isinstance(end, torch.Tensor) or channel.unfit(end):
            raise TypeError(f"a model returns dense tensors of the usual dtypes, or numbers, not {channel.unfit(end) or f'a {type(end).__name__}'}")
    return found


class Mode(TorchDispatchMode):
    """A mode of ours. When another one is first called, torch imports its whole compiler, only to tell it to keep off."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Watch(Mode):
    """Counts what a model does while it runs, by shapes, so that it works on the meta device too.

    operations: aten calls that compute. work: multiply-adds, or elements touched where there are none.
    reduction: the largest number of terms that one of them sums for one output.
    picks: whether one passes on its largest or smallest input, or the middle one.
    """

    PICKING = ("max", "min", "amax", "amin", "sort", "topk", "kthvalue", "median", "mode", "fractional_max", "adaptive_max")
    GATHERING = ("embedding", "index", "gather", "take", "max", "min", "amax", "amin")  # outputs are picked, not summed

    def __init__(self, most_operations: int | None = None):
        super().__init__()
        self.operations, self.work, self.reduction, self.picks = 0, 0, 1, False
        self.most_operations = most_operations

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if any(value.alias_info is not None for value in function._schema.returns):
            return result  # a view, or in place
        name = function.overloadpacket.__name__
        inputs, outputs = _tensors(args), _tensors(result)
        terms = 1 if name.startswith(self.GATHERING) else _terms(name, inputs, outputs)
        self.operations += 1
        self.picks |= name.startswith(self.PICKING)
        if name in PRODUCTS:
            self.work += outputs[0].numel() * terms
        else:
            self.work += max((t.numel() for t in inputs + outputs), default=0)
        self.reduction = max(self.reduction, terms)
        if self.most_operations and self.operations > self.most_operations:
            raise TooMuch(f"it does more than {self.most_operations:,} operations, which is what a case may do")
        return result


PRODUCTS = ("convolution", "_convolution", "mkldnn_convolution", "mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot")


class _Elsewhere(TorchFunctionMode):
    """Puts on this device what a file wants on "cuda"."""

    def __init__(self, device: torch.device):
        super().__init__()
        self.device = device

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.cuda:
            return args[0].to(self.device)
        args = [self.device if _is_cuda(value) else value for value in args]
        return function(*args, **{name: self.device if _is_cuda(value) else value for name, value in (kwargs or {}).items()})


def _is_cuda(value: object) -> bool:
    """Whether it is the name of a GPU: "cuda", "cuda:0", torch.device("cuda")."""
    return isinstance(value, (str, torch.device)) and str(value).partition(":")[0] == "cuda"


class Tf32(Mode):
    """Rounds the factors of products to TF32 before they are multiplied in float32: what eager computes on tensor cores."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in PRODUCTS:
            first = 1 if name.startswith(("add", "badd")) else 0  # before it stands what is added
            args = [tf32(a) if first <= i < first + 2 else a for i, a in enumerate(args)]
        return function(*args, **(kwargs or {}))


def tf32(x: torch.Tensor) -> torch.Tensor:
    """float32 numbers rounded to TF32's 10 bits of mantissa, halves away from zero, as cvt.rna.tf32.f32 rounds; others as they are."""
    if x.dtype != torch.float32:
        return x
    bits = x.contiguous().view(torch.int32)
    return torch.where(torch.isfinite(x), (bits + 0x1000 & ~0x1FFF).view(torch.float32).view_as(x), x)


def _terms(name: str, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    """Terms summed for one output of an aten operation, by shapes: normalisations return their statistics too."""
    inputs, outputs = [t for t in inputs if t.numel()], [t for t in outputs if t.numel()]
    if not inputs or not outputs:
        return 1
    if name == "convolution_backward":  # of the gradient that comes in (N, OC, ...), x and the weight (OC, C, ...)
        return max(inputs[0].numel() // inputs[0].shape[1], inputs[2][:, 0].numel())
    if "convolution" in name and len(inputs) > 1:
        return inputs[1][0].numel()
    if name in PRODUCTS:
        return inputs[-1].shape[-2] if inputs[-1].dim() > 1 else inputs[-1].numel()
    if "softmax" in name or name.startswith("cum"):
        return max(inputs[0].shape, default=1)
    return max(t.numel() for t in inputs) // min(t.numel() for t in outputs)


def _tensors(values: object) -> list[torch.Tensor]:
    """The tensors in a value, a list or a nest of lists."""
    if isinstance(values, torch.Tensor):
        return [values]
    return [t for value in values for t in _tensors(value)] if isinstance(values, (list, tuple)) else []


# --- the syntax tree -------------------------------------------------------------------------------------------------


def _split(tree: ast.Module) -> ast.Module:
    """Module-level `a = b = 256` and `a, b = 3, 4` as one assignment a name, so that each can be replaced."""
    body: list[ast.stmt] = []
    for statement in tree.body:
        body.extend(_split_one(statement))
    return ast.Module(body, tree.type_ignores)


def _split_one(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None and isinstance(statement.target, ast.Name):
        return [ast.copy_location(ast.Assign([statement.target], statement.value), statement)]
    if not isinstance(statement, ast.Assign):
        return [statement]
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for target in statement.targets:
        value = statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs.extend(zip(target.elts, value.elts))
        else:
            pairs.append((target, value))
    if not all(isinstance(target, ast.Name) and _is_literal(value) for target, value in pairs):
        return [statement]
    return [ast.copy_location(ast.Assign([target], value), statement) for target, value in pairs]


ARITHMETIC = (ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.expr_context)


def _is_literal(value: ast.expr) -> bool:
    """A Python literal, or one with arithmetic on numbers in it: 16, (8, 1), 1024 * 2."""
    return all(isinstance(node, (*ARITHMETIC, ast.Tuple, ast.List, ast.Dict, ast.Set)) for node in ast.walk(value))


def _value(literal: ast.expr) -> object:
    return eval(compile(ast.Expression(literal), "literal", "eval"), {"__builtins__": {}})


def _replace(tree: ast.Module, overrides: dict[str, object], path: Path) -> ast.Module:
    """The tree with the literal that each name in overrides is assigned at module level replaced."""
    if not overrides:
        return tree
    seen, settable, body = set(), [], []
    for statement in _split(tree).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if _is_literal(statement.value):
                settable.append(name)
                if name in overrides:
                    seen.add(name)
                    value = syntax.parse(repr(overrides[name]), mode="eval").body
                    statement = ast.copy_location(ast.Assign(statement.targets, value), statement)
        body.append(statement)
    for name in overrides:
        if name not in seen:
            can = ", ".join(n for n in dict.fromkeys(settable) if n != "CASES") or "none"
            raise ProblemError(f"--set {name}: the file assigns no literal to '{name}' (it does to: {can}).", path)
    return ast.fix_missing_locations(ast.Module(body, tree.type_ignores))


def _used(tree: ast.Module, name: str) -> set[str]:
    """The module-level names that a class or function reads when it is used, also through others of the file and what these were computed from."""
    top = symtable.symtable(ast.unparse(tree), "problem", "exec")
    reads: dict[str, set[str]] = {}
    for scope in top.get_children():
        reads.setdefault(scope.get_name(), set()).update(_globals(scope))
    for statement in _split(tree).body:
        if isinstance(statement, ast.Assign):
            value = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            for target in (node for one in statement.targets for node in ast.walk(one) if isinstance(node, ast.Name)):
                reads.setdefault(target.id, set()).update(value)
    found, new = set(), [name]
    while new:
        more = reads.get(new.pop(), set()) - found
        found |= more
        new.extend(more)
    return found


def _globals(scope: symtable.SymbolTable) -> set[str]:
    """The global names that a function or class reads, or anything inside it."""
    own = {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return own.union(*map(_globals, scope.get_children()))


def _line(error: BaseException, path: Path) -> int | None:
    """The innermost line of the problem file in an exception's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


# --- weights and inputs ----------------------------------------------------------------------------------------------


def _arguments(init: object) -> tuple[list, dict]:
    """get_init_inputs() returns a list of arguments, a dict of them, or the pair [[...], {...}]."""
    if isinstance(init, dict):
        return [], init
    init = list(init) if isinstance(init, (list, tuple)) else [init]
    if len(init) == 2 and isinstance(init[0], (list, tuple)) and isinstance(init[1], dict):
        return list(init[0]), init[1]
    return init, {}


def _draw(seed: int, case: Case) -> int:
    """A 62-bit seed for torch from the judge's seed and the case."""
    text = repr((seed, case.name, sorted(case.set.items()), case.inputs))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 2


@contextlib.contextmanager
def _seeded(seed: int, device: torch.device | None) -> Iterator[None]:
    """Python's and torch's random numbers start at `seed` inside and are as before afterwards."""
    state = random.getstate()
    if device is None:
        devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    else:
        devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)


def _randomise(model: torch.nn.Module) -> None:
    """Add normal noise to every parameter: 0.2, or less where many products are summed: deep models stay finite."""
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.is_floating_point():
                continue
            fan_in = parameter[0].numel() if parameter.dim() > 1 else 1
            parameter.add_(torch.randn_like(parameter), alpha=min(0.2, fan_in**-0.5))


def _is_float(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _distribute(value: object, inputs: str, device: torch.device) -> object:
    """One input on the device, its floating values drawn anew unless inputs is 'file'."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().to(device)
    if inputs == "file" or not value.is_floating_point():
        return value
    if inputs == "uniform":
        return torch.rand_like(value)
    if inputs == "zeros":
        return torch.zeros_like(value)
    scale, shift = {"normal": (1, 0), "large_mean": (1, 1000), "large": (100, 0), "tiny": (1e-3, 0)}[inputs]
    return torch.randn_like(value) * scale + shift


def _copies(inputs: list) -> list:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


def _double_inputs(inputs: list) -> list:
    """Copies of the inputs, the floating ones in float64."""
    return [value.double() if _is_float(value) else value for value in _copies(inputs)]


def _double(model: torch.nn.Module) -> torch.nn.Module:
    """The model in float64, with the plain tensors that its modules hold as attributes."""
    model = model.double()
    for part in model.modules():
        for name, value in list(vars(part).items()):
            if _is_float(value):
                setattr(part, name, value.double())
    return model


@contextlib.contextmanager
def _double_default() -> Iterator[None]:
    """Tensors that a model's forward creates are float64 inside."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def _exact_float32() -> Iterator[None]:
    """Convolutions and matrix products in full float32 inside: eager's TF32 default must not widen the tolerance."""
    convolution, product = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = convolution
        torch.set_float32_matmul_precision(product)


def _jiggle(model: torch.nn.Module, inputs: list, unit: float) -> None:
    """Multiply every floating input and weight by 1 + unit * (a normal number), in place, from a fixed seed."""
    floating = [value for value in [*inputs, *model.parameters()] if _is_float(value)]
    for number, tensor in enumerate(floating):
        generator = torch.Generator(tensor.device).manual_seed(number)
        noise = torch.randn(tensor.shape, dtype=tensor.dtype, device=tensor.device, generator=generator)
        with torch.no_grad():
            tensor.mul_(noise.mul_(unit).add_(1))
