"""Give torch back its own device "cuda" while a function of another program runs, without importing torch for that."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def with_own_torch(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return the function; in it "cuda" means no CPU, even after simt.enable(cuda_device=True)."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        module = sys.modules.get("simt.runtime.torch_replaced")  # without it, torch is as it was
        if module is None:
            return function(*args, **kwargs)
        with module.suspended():
            return function(*args, **kwargs)

    return call
