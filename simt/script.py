"""Runs a Python file whose kernels go through load_inline, as `python FILE.py` would, with the kernels on the CPU."""

from __future__ import annotations

import ast
import sys
import traceback
import types
from pathlib import Path

import torch
import torch.utils.cpp_extension
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from . import extension
from .errors import BuildError, CompileError, Diagnostic, KernelError
from .program import End, read


class _OnCpu(TorchFunctionMode):
    """A script's "cuda" is the CPU; its tensors say that they are on the GPU, so that it takes that way."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function == torch.Tensor.is_cuda.__get__:
            return True
        if function == torch.Tensor.cuda:
            return args[0]
        args, kwargs = tree_map_only((str, torch.device), _on_cpu, (args, kwargs or {}))
        return function(*args, **kwargs)


def _on_cpu(place: str | torch.device) -> str | torch.device:
    return "cpu" if str(place).split(":")[0] == "cuda" else place


def parse(path: Path) -> ast.Module:
    """Reads the file. Raises NoProgram, and CompileError where it is no Python."""
    try:
        return ast.parse(read(path), str(path))
    except SyntaxError as error:
        raise CompileError([Diagnostic(str(path), error.lineno or 0, error.offset or 0, "error", error.msg, error.text or "")]) from None


def run(path: Path, tree: ast.Module, arguments: list[str]) -> End:
    """Runs the file as `__main__`; where it has KernelBench's ModelNew and get_inputs, and no main part, calls the model.

    Raises BuildError. What the script raises besides comes back in the End.
    """
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent.absolute()))
    torch.utils.cpp_extension.load_inline = extension.load_inline
    torch.cuda.synchronize = lambda device=None: None
    try:
        with _OnCpu():
            exec(compile(tree, str(path), "exec"), module.__dict__)
            if not _has_main_part(tree):
                _call_model(module.__dict__)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return End(error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None))
    except BuildError:
        raise
    except KernelError as error:
        return End(1, failure=error, orderly=False)
    except Exception as error:
        return End(1, [_told(path, error)], orderly=False)
    return End(0)


def _has_main_part(tree: ast.Module) -> bool:
    """Whether the file has an `if __name__ == "__main__":`."""
    return any(isinstance(n, ast.If) and any(isinstance(w, ast.Name) and w.id == "__name__" for w in ast.walk(n.test)) for n in tree.body)


def why_no_launch(path: Path) -> str:
    """After run(): why it has launched no kernel, or what the file has to have so that it does."""
    names = vars(sys.modules["__main__"])
    main = 'an `if __name__ == "__main__":` part'
    model, inputs = (callable(names.get(name)) for name in ("ModelNew", "get_inputs"))
    if _has_main_part(parse(path)):
        return f"{path} has {main}, and that launches none."
    if model and inputs:
        return "ModelNew's forward launches none for what get_inputs() returns."
    calls = f"or {main} that launches it" if not model else f"or {main} that calls the model"
    if model:
        return f"{path} defines ModelNew and says nothing of its inputs. Add get_inputs(), and get_init_inputs() where ModelNew takes arguments, {calls}."
    return f"nothing in {path} launches one. Add {'ModelNew' if inputs else 'ModelNew and get_inputs()'}, {calls}."


def _call_model(names: dict) -> None:
    if not (callable(names.get("ModelNew")) and callable(names.get("get_inputs"))):
        return
    arguments = names["get_init_inputs"]() if callable(names.get("get_init_inputs")) else []
    model = names["ModelNew"](*arguments)
    with torch.no_grad():
        model(*names["get_inputs"]())


def _told(path: Path, error: Exception) -> str:
    """What was raised, and the script's own line that led there."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    place = f"{path}, line {frames[-1].lineno}: " if frames else f"{path}: "
    return f"{place}{type(error).__name__}: {str(error).strip() or 'no message'}"
