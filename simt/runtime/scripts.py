"""Run a Python file that builds kernels with load_inline as `python FILE.py` would, with the kernels on the CPU."""

from __future__ import annotations

import ast
import sys
import traceback
import types
from pathlib import Path

import torch

from simt.errors import BuildError, CompileError, Diagnostic, KernelError
from simt.runtime import extension, torch_device
from simt.runtime.program_files import read
from simt.runtime.programs import End
from simt.runtime.torch_extension import cpp_extension


def parse(path: Path) -> ast.Module:
    """Parse the file. Raises NoProgram, or CompileError if the file is not valid Python."""
    try:
        return ast.parse(read(path), str(path))
    except SyntaxError as error:
        raise CompileError(
            [Diagnostic(str(path), error.lineno or 0, error.offset or 0, "error", error.msg, error.text or "")]
        ) from None


def run(path: Path, tree: ast.Module, arguments: list[str]) -> End:
    """Run the file as `__main__`. If it has no main part but KernelBench's ModelNew and get_inputs, call the model.

    Raises BuildError. The returned End reports other exceptions of the script.
    """
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent.absolute()))
    cpp_extension.load_inline = extension.load_inline
    try:
        with torch_device.cuda_on_cpu():
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
        return End(1, [_describe_error(path, error)], orderly=False)
    return End(0)


def _has_main_part(tree: ast.Module) -> bool:
    """Return whether the file has an `if __name__ == "__main__":` part."""
    return any(
        isinstance(n, ast.If) and any(isinstance(w, ast.Name) and w.id == "__name__" for w in ast.walk(n.test))
        for n in tree.body
    )


def explain_no_launch(path: Path) -> str:
    """Explain, after run(), why the script launched no kernel and what it needs to launch one."""
    names = vars(sys.modules["__main__"])
    main = 'an `if __name__ == "__main__":` part'
    model, inputs = (callable(names.get(name)) for name in ("ModelNew", "get_inputs"))
    if _has_main_part(parse(path)):
        return f"The main part of {path} launches none. Launch a kernel there."
    if model and inputs:
        return "ModelNew.forward launches none for the inputs of get_inputs(). Check its conditions."
    calls = f"or {main} that launches it" if not model else f"or {main} that calls the model"
    if model:
        return (
            f"{path} defines ModelNew but no inputs for it. Add get_inputs(), and get_init_inputs() if ModelNew takes "
            f"arguments, {calls}."
        )
    return f"Nothing in {path} launches one. Add {'ModelNew' if inputs else 'ModelNew and get_inputs()'}, {calls}."


def _call_model(names: dict) -> None:
    if not (callable(names.get("ModelNew")) and callable(names.get("get_inputs"))):
        return
    arguments = names["get_init_inputs"]() if callable(names.get("get_init_inputs")) else []
    model = names["ModelNew"](*arguments)
    with torch.no_grad():
        model(*names["get_inputs"]())


def _describe_error(path: Path, error: Exception) -> str:
    """Return a message about an exception, with the script's line that led to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    place = f"{path}, line {frames[-1].lineno}: " if frames else f"{path}: "
    return f"{place}{type(error).__name__}: {str(error).strip() or 'no message'}"
