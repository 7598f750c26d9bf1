"""Read a KernelBench file as a problem: its literals, its cases, and its model with inputs at any size."""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import difflib
import errno
import functools
import hashlib
import os
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch

from grader.paths import find_place, find_real_path, inductor_cache
from grader.problems import cases as _cases
from grader.problems import exercises, settled
from grader.problems.cases import Case, ProblemError
from grader.problems.draws import (
    derive_seed,
    derive_weight_seed,
    find_constants,
    randomise_parameters,
    redraw_input,
    seeded,
)
from grader.problems.instance import Instance
from grader.problems.literals import (
    evaluate,
    find_names_read,
    is_literal,
    parse_overrides,
    replace_literals,
    split_assignments,
)
from grader.problems.operators import Mode, OnDevice, is_cuda
from grader.problems.values import ends, flatten
from grader.source import contract, syntax
from grader.worker import protocol

__all__ = ["Case", "Instance", "Mode", "Problem", "ProblemError", "ends", "find", "flatten", "names", "read"]

ALL = "all"  # operators are allowed
NEEDED = ("Model", "get_inputs", "get_init_inputs")


def find(submission: Path, folder: Path | None = None) -> Problem:
    """Return the problem that a submission answers, by its name or its folder's. folder: as for contract.read.

    `kernels_student/groupnorm.py` and `groupnorm_backward.py`, `kernels_ref/groupnorm/solution.py` and a file in
    `steps/` are found, and so are handed-in names such as `groupnorm_ada.py`, `groupnorm-2.py` or `ada.groupnorm.py`.
    Raises ProblemError, which lists the known names, for anything else, also next to a `model.py` that is not in
    kernels_ref.
    """
    model = exercises.model_of(submission, folder)
    if model is not None:
        return read(model)
    submission, known = find_place(submission, folder), names()
    if len(named := exercises.list_named(submission.stem)) > 1:
        raise ProblemError(
            f"'{submission.stem}' holds the names of several problems, {' and '.join(named)}: name the file after the "
            "one that it answers, or give --problem FILE."
        )
    near = difflib.get_close_matches(submission.stem, known, n=1)
    hint = f"did you mean {near[0]}.py?" if near else "the problems are " + ", ".join(known) + "."
    folders = (submission.parent, submission.parent.parent)
    models = [folder / "model.py" for folder in folders if (folder / "model.py").is_file()]
    handed_in = (
        f" {models[0]} may have been handed in too: it is run as the problem only if you name it so." if models else ""
    )
    raise ProblemError(
        f"No problem is called '{submission.stem}': {hint} Name the file after its problem, or give --problem FILE."
        f"{handed_in}"
    )


def names() -> list[str]:
    """Return the names of the problems in kernels_ref, sorted."""
    return exercises.problems()


def read(path: Path, overrides: dict[str, str] | None = None) -> Problem:
    """Return any KernelBench file as a problem.

    overrides: module-level names to Python literals as text (`{"batch_size": "2"}`), as `--set` gives them.
    Raises ProblemError if the file cannot be read, lacks Model, get_inputs or get_init_inputs, or fails to run,
    or if a name in overrides is not assigned a literal at module level.
    """
    path = Path(path)
    try:
        if path.stat().st_size > contract.MAX_BYTES:  # parsing would take too long
            raise OSError(errno.EFBIG, contract.TOO_LARGE)
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ProblemError(f"{path}: the problem file cannot be read ({reason}).") from None
    return _make(_name_problem(path), path, source, tuple((key, str(text)) for key, text in (overrides or {}).items()))


@functools.lru_cache(50)  # a class's files answer few problems, and a problem's code and cases stay as they are
def _make(name: str, path: Path, source: str, overrides: tuple[tuple[str, str], ...]) -> Problem:
    """Return a checked problem. Raises ProblemError."""
    try:
        tree = syntax.parse(source, str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise ProblemError(f"syntax error: {getattr(error, 'msg', error)}.", path, line) from None
    problem = Problem(name, path, source, tree, parse_overrides(dict(overrides)))
    problem.check()
    return problem


def _name_problem(path: Path) -> str:
    """Return the name of a file: groupnorm for kernels_ref/groupnorm/model.py, its stem for any other."""
    return find_real_path(path).parent.name if path.name == "model.py" else path.stem


@dataclasses.dataclass
class Problem:
    """A KernelBench file with some of its module-level literals replaced.

    name: what reports call it. path, text: its file, and what was read there. overrides: name to value, from --set.
    determined: the devices on which check_determined() has found nothing. same_seed: weights are what Model's
    constructor draws from a seed that a submission may be given, as KernelBench has both construct the same weights.
    """

    name: str
    path: Path
    text: str
    tree: ast.Module
    overrides: dict[str, object]
    determined: set[str] = dataclasses.field(default_factory=set, init=False, compare=False)
    same_seed: bool = dataclasses.field(default=False, init=False)

    def check(self) -> None:
        """Raise ProblemError unless the file runs and has the three names of the contract."""
        module = self.module({})
        missing = [name for name in NEEDED if not callable(getattr(module, name, None))]
        if missing:
            have = "has no " + " and no ".join(missing)
            raise ProblemError(f"{have}; a problem file defines Model, get_inputs and get_init_inputs.", self.path)
        allowed = self.literals.get("ALLOWED_OPERATORS", ALL)
        if allowed != ALL and not (isinstance(allowed, list | tuple) and all(isinstance(one, str) for one in allowed)):
            message = 'ALLOWED_OPERATORS is neither "all" nor a list of names of PyTorch\'s operators, as ["mm"].'
            raise ProblemError(message, self.path)
        precision = self.literals.get("PRECISION", _cases.PRECISIONS[0])
        if precision not in _cases.PRECISIONS:
            raise ProblemError(f"PRECISION is {precision!r}, not one of {', '.join(_cases.PRECISIONS)}.", self.path)
        axes = self.literals.get("AXES", ())
        if not (isinstance(axes, list | tuple) and all(isinstance(one, str) and one.strip() for one in axes)):
            message = (
                'AXES is no list of names of the output\'s dimensions, as ["batch item", "head", "query", "feature"].'
            )
            raise ProblemError(message, self.path)

    @functools.cached_property
    def _codes(self) -> dict[str, types.CodeType]:
        return {}

    @functools.cached_property
    def _warned(self) -> dict:
        """Return what Python keeps of warnings that were shown, for all modules of the file: each is shown once."""
        return {}

    @functools.cached_property
    def literals(self) -> dict[str, object]:
        """Return the module-level names that are assigned a literal, with the file's own (or --set's) values."""
        found = {}
        for statement in split_assignments(self.tree).body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(statement, ast.Assign) and isinstance(target, ast.Name) and is_literal(statement.value):
                found[target.id] = evaluate(statement.value)
        return found | self.overrides

    @property
    def allowed_operators(self) -> frozenset[str] | None:
        """Return the names of PyTorch's operators that may compute with large tensors; None for all of them.

        The file's ALLOWED_OPERATORS says so, a list or "all". Without it the course's own problems allow none, so that
        their results come from kernels, and other files allow all.
        """
        given = self.literals.get("ALLOWED_OPERATORS", [] if exercises.is_of_the_course(self.path) else ALL)
        return None if given == ALL else frozenset(map(str, cast("list[object]", given)))

    @functools.cached_property
    def read_by_model(self) -> frozenset[str]:
        """Return the module-level names that Model's code reads: in its methods, or in what these use of the file."""
        return frozenset(find_names_read(self.tree, "Model"))

    @functools.cached_property
    def names_cuda(self) -> bool:
        """Return whether the file puts anything on a GPU by name."""
        nodes = list(ast.walk(self.tree))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        return any(map(is_cuda, texts)) or any(
            isinstance(node, ast.Attribute) and node.attr == "cuda" for node in nodes
        )

    @property
    def precision(self) -> str:
        """Return how precise outputs must be: as eager float32 ("fp32"), or as eager TF32 ("tf32").

        The file's PRECISION says which.
        """
        precision = self.literals.get("PRECISION", _cases.PRECISIONS[0])
        assert isinstance(precision, str)  # check() refuses a file with another
        return precision

    @property
    def axes(self) -> tuple[str, ...]:
        """Return what the file calls the dimensions of its outputs: its AXES, in the singular. Empty without it."""
        return tuple(cast("list[str]", self.literals.get("AXES", ())))

    def module(self, overrides: dict[str, object]) -> types.ModuleType:
        """Execute the file with these literals replaced; values derived from them follow, and --set's win."""
        overrides = overrides | self.overrides
        key = hashlib.sha256(repr((str(self.path), overrides)).encode()).hexdigest()[:12]
        # inputs are drawn many times while a submission is timed
        tree = None if key in self._codes else replace_literals(self.tree, overrides, self.path)
        module = types.ModuleType(f"problem_{self.name}_{key}")
        module.__file__ = str(self.path)
        module.__dict__["__warningregistry__"] = self._warned
        sys.modules[module.__name__] = module  # dataclasses and torch.compile look a class's module up
        with self._blame("the file"):
            if tree is not None:
                self._codes[key] = compile(tree, str(self.path), "exec", dont_inherit=True)
            exec(self._codes[key], module.__dict__)
        return module

    def cases(self) -> list[Case]:
        """Return the file's (or --set's) CASES, or cases made by lowering its sizes; at least one.

        Raises ProblemError.
        """
        return list(self._all_cases)

    @functools.cached_property
    def _all_cases(self) -> list[Case]:
        return settled.find_cases(self.text, self.overrides, self._make_cases)

    def _make_cases(self) -> list[Case]:
        declared = self.overrides.get("CASES", getattr(self.module({}), "CASES", None))
        cases = _cases.lower(self) if declared is None else _cases.declared(self, declared)
        return [self._with_reduction(case, "cpu") for case in cases]

    def full(self) -> Case:
        """Return the case of the file's own sizes and inputs."""
        return self._with_reduction(Case("full size"), "meta")

    def _with_reduction(self, case: Case, device: str) -> Case:
        """Return the case with the file's precision and names of dimensions, and the longest sum that Model computes.

        A case that gives its `reduction` keeps it: watching Model takes a second.
        """
        case = dataclasses.replace(case, precision=self.precision, axes=self.axes)
        if case.reduction is not None:
            return case
        try:
            measured = self.instantiate(case, 0, device).reduction()
        except ProblemError:  # not every Model runs on the meta device: compare's default must do
            return case
        return dataclasses.replace(case, reduction=measured)

    def instantiate(self, case: Case, seed: int, device: str | torch.device = "cpu") -> Instance:
        """Return a model with random weights and inputs for `case`, the same for the same (seed, case, device).

        The model is float32 (or whatever the file makes) and in the mode in which it was constructed. Every
        parameter is moved by a random amount so that a default of 0 or 1 hides nothing; buffers stay as they are. With
        `same_seed` the constructor gives the weights, on the CPU, as a GPU draws other numbers; those that it does not
        draw are moved all the same.
        Raises ProblemError if the file's functions raise, or give what no submission can be handed.
        """
        device = torch.device(device)
        module = self.module(dict(case.set))
        draw = derive_seed(seed, case)
        with self._blame("get_init_inputs()", device), seeded(draw, device):
            args, kwargs = split_arguments(module.get_init_inputs())
        self._check_fit("get_init_inputs() gives", [args, kwargs])
        inputs = self._draw(module, case, draw + 1, device)

        weight_seed = derive_weight_seed(seed, case) if self.same_seed else None

        def construct(start: int, place: torch.device, moved: list[str] | None = None) -> torch.nn.Module:
            with self._blame("Model(...)", place), seeded(start, place), torch.device(place):
                model = module.Model(*args, **kwargs)
                if isinstance(model, torch.nn.Module):
                    model = model.to(device)
                    randomise_parameters(model, moved)
                    self._check_fit("Model holds", model.state_dict())
            return model

        place, moved = device, None
        if weight_seed is not None:
            place = device if device.type == "meta" else torch.device("cpu")
            moved = find_constants(construct(weight_seed, place, []), construct(weight_seed + 1, place, []))

        def build(other: int = 0) -> torch.nn.Module:
            return construct((draw + 2 if weight_seed is None else weight_seed) + other, place, moved)

        return Instance(
            build(),
            args,
            inputs,
            kwargs,
            build,
            functools.partial(self._blame, "Model.forward", device),
            self.precision,
            weight_seed=weight_seed,
            given=moved,
        )

    def share_seed(self) -> Problem:
        """Return the problem with weights that a submission's constructor draws as well, from the same seed."""
        shared = copy.copy(self)
        shared.same_seed = True
        return shared

    def draw_inputs(self, case: Case, seed: int, device: str | torch.device = "cpu") -> list:
        """Return new inputs for `case`, the same for the same (seed, case, device). Raises as instantiate() does."""
        return self._draw(self.module(dict(case.set)), case, derive_seed(seed, case) + 1, torch.device(device))

    def _draw(self, module: types.ModuleType, case: Case, draw: int, device: torch.device) -> list:
        with self._blame("get_inputs()", device), seeded(draw, device), torch.device(device):
            made = module.get_inputs()
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            self._check_fit("get_inputs() gives", made)
            return [redraw_input(value, case.inputs, device) for value in made]

    def upstream(self, case: Case, seed: int, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return gradients to start backward with, for each floating output.

        They are normal random numbers, the same for the same (seed, case).
        """
        made = []
        for number, like in enumerate(out for out in outputs if out.is_floating_point()):
            generator = torch.Generator(like.device).manual_seed((derive_seed(seed, case) + 3 + number) % 2**62)
            made.append(torch.randn(like.shape, dtype=like.dtype, device=like.device, generator=generator))
        return made

    def _check_fit(self, what: str, value: object) -> None:
        """Raise ProblemError for what cannot be sent to a submission's process."""
        if unfit := protocol.unfit(value):
            raise ProblemError(
                f"{what} {unfit}: a submission takes dense tensors of the usual dtypes, real numbers, strings, None, "
                "torch.dtype, torch.device, and lists, tuples and dicts of these.",
                self.path,
            )

    @contextlib.contextmanager
    def _blame(self, what: str, device: torch.device | None = None) -> Iterator[None]:
        """Turn whatever the file raises into a ProblemError with the line that raised. What it puts on a GPU by name
        goes to the device; without one to the CPU, where there is no GPU."""
        device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if device.type == "meta":  # for which torch may import its compiler: it makes a folder then, by default in /tmp
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(inductor_cache()))
        try:
            with OnDevice(device) if self.names_cuda and device.type != "cuda" else contextlib.nullcontext():
                yield
        except (
            ProblemError,
            KeyboardInterrupt,
            torch.OutOfMemoryError,
        ):  # a GPU that is too small is not the file's fault
            raise
        except BaseException as error:
            text = str(error).strip().splitlines()
            reason = type(error).__name__ + (f": {text[0]}" if text else "")
            raise ProblemError(f"{what} raised {reason}", self.path, _find_line(error, self.path)) from None


def _find_line(error: BaseException, path: Path) -> int | None:
    """Return the innermost line of the problem file in an exception's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def split_arguments(init: object) -> tuple[list, dict]:
    """Return positional and keyword arguments of what get_init_inputs() returns: a list, a dict, or [[...], {...}]."""
    if isinstance(init, dict):
        return [], init
    init = list(init) if isinstance(init, (list, tuple)) else [init]
    if len(init) == 2 and isinstance(init[0], (list, tuple)) and isinstance(init[1], dict):
        return list(init[0]), init[1]
    return init, {}
