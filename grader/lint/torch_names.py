"""Which functions and modules of torch a mutation exchanges for one another."""

from __future__ import annotations

import ast
import re

ROOTS = ("torch", "nn", "F", "math", "np", "numpy", "functional")
REDUCTIONS = {
    "sum": ("mean",),
    "mean": ("sum", "amax"),
    "max": ("min",),
    "min": ("max",),
    "amax": ("amin", "mean"),
    "amin": ("amax", "mean"),
    "argmax": ("argmin",),
    "argmin": ("argmax",),
    "prod": ("sum",),
    "var": ("std",),
    "std": ("var",),
    "logsumexp": ("amax",),
    "cumsum": ("cumprod",),
    "cumprod": ("cumsum",),
    "any": ("all",),
    "all": ("any",),
    "median": ("mean",),
}
# Functions of one tensor; the replacement is called from torch.nn.functional with that tensor alone.
ACTIVATIONS = {
    "relu": ("leaky_relu",),
    "leaky_relu": ("relu",),
    "gelu": ("silu",),
    "silu": ("gelu",),
    "sigmoid": ("hardsigmoid",),
    "hardsigmoid": ("sigmoid",),
    "tanh": ("hardtanh",),
    "hardtanh": ("tanh",),
    "hardswish": ("silu",),
    "softplus": ("relu",),
    "elu": ("relu",),
    "selu": ("elu",),
    "mish": ("silu",),
    "softsign": ("tanh",),
    "relu6": ("relu",),
}
SAME_ARGUMENTS = {
    "softmax": ("log_softmax",),
    "log_softmax": ("softmax",),
    "exp": ("expm1",),
    "expm1": ("exp",),
    "log": ("log1p",),
    "log1p": ("log",),
    "sqrt": ("rsqrt",),
    "rsqrt": ("sqrt",),
    "sin": ("cos",),
    "cos": ("sin",),
    "floor": ("ceil",),
    "ceil": ("floor",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "add": ("sub",),
    "sub": ("add",),
    "mul": ("div",),
    "div": ("mul",),
    "tril": ("triu",),
    "triu": ("tril",),
    "max_pool1d": ("avg_pool1d",),
    "max_pool2d": ("avg_pool2d",),
    "max_pool3d": ("avg_pool3d",),
    "avg_pool1d": ("max_pool1d",),
    "avg_pool2d": ("max_pool2d",),
    "avg_pool3d": ("max_pool3d",),
}
MODULES = {
    "ReLU": ("LeakyReLU",),
    "LeakyReLU": ("ReLU",),
    "GELU": ("SiLU",),
    "SiLU": ("GELU",),
    "Sigmoid": ("Hardsigmoid",),
    "Tanh": ("Hardtanh",),
    "Hardtanh": ("Tanh",),
    "Hardswish": ("SiLU",),
    "Hardsigmoid": ("Sigmoid",),
    "Softplus": ("ReLU",),
    "ELU": ("ReLU",),
    "SELU": ("ELU",),
    "Mish": ("SiLU",),
    "Softmax": ("LogSoftmax",),
    "LogSoftmax": ("Softmax",),
    **{f"MaxPool{n}d": (f"AvgPool{n}d",) for n in (1, 2, 3)},
    **{f"AvgPool{n}d": (f"MaxPool{n}d",) for n in (1, 2, 3)},
}
# Keywords that are added where a call leaves them out, by the name of what is called.
ADDED = (
    (
        r"(Group|Layer|RMS|Batch|Instance)Norm(\dd)?|(group|layer|rms|batch|instance)_norm",
        (("eps", 2e-5), ("eps", 0.0)),
    ),
    (r"Conv(Transpose)?\dd|conv(_transpose)?\dd", (("padding", 1), ("stride", 2), ("dilation", 2), ("groups", 2))),
    (r"(Max|Avg|LP)Pool\dd|(max|avg|lp)_pool\dd", (("ceil_mode", True), ("stride", 1), ("padding", 1))),
    (r"AvgPool\dd|avg_pool\dd", (("count_include_pad", False),)),
    (r"GELU|gelu", (("approximate", "tanh"),)),
)


def added_keywords(name: str) -> list[tuple[str, object]]:
    """Return keywords and values that change what a function or module computes."""
    return [pair for pattern, pairs in ADDED if re.fullmatch(pattern, name) for pair in pairs]


def find_name(function: ast.expr) -> str:
    """Return the last part of what is called: `tanh` of torch.tanh, x.tanh and tanh; empty for anything else."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def is_module(value: ast.expr) -> bool:
    """Return whether an expression names a Python module or self, so that what it calls is no method of a tensor."""
    text = ast.unparse(value)
    return text == "self" or text.split(".")[0] in ROOTS


def is_method(function: ast.expr) -> bool:
    """Return whether a function is called on a value, as `x.tanh` is."""
    return isinstance(function, ast.Attribute) and not is_module(function.value)


def rename(function: ast.expr, name: str) -> ast.expr:
    """Return the function of another name in the same place."""
    return ast.Attribute(function.value, name, ast.Load()) if isinstance(function, ast.Attribute) else ast.Name(name)


def make_functional(name: str) -> ast.expr:
    """Return `torch.nn.functional.NAME`."""
    nn = ast.Attribute(ast.Name("torch", ast.Load()), "nn", ast.Load())
    return ast.Attribute(ast.Attribute(nn, "functional", ast.Load()), name, ast.Load())
