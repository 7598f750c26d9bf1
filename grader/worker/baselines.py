"""What a submission is timed next to, as one model of a trusted worker: the problem's Model as it is, and compiled."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

EAGER, COMPILED = "eager", "compiled"  # the attributes that Batch.model names
# The submission that this worker builds.
SOURCE = "from grader.worker.baselines import Baselines as ModelNew\n"


class Baselines(torch.nn.Module):
    """Hold a problem's Model and its torch.compile, with the same weights."""

    def __init__(self, *_args: Any, **_kwargs: Any):
        super().__init__()

    def load_reference(self, model: torch.nn.Module) -> None:
        """Take the Model that the worker has made with the judge's weights."""
        self.eager = model

    @functools.cached_property
    def compiled(self) -> Any:
        """The model for torch.compile, whose import takes seconds: it may not be asked for."""
        return torch.compile(self.eager)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Return the parameters by Model's own names."""
        return self.eager.named_parameters(*args, **kwargs)
