"""Compute softmax and logsumexp as a beginner does: exponentials of the values themselves, which overflow."""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode

LOGSUMEXP = (torch.logsumexp, torch.Tensor.logsumexp)
SOFTMAX = (torch.softmax, torch.Tensor.softmax, torch.nn.functional.softmax)
LOG_SOFTMAX = (torch.log_softmax, torch.Tensor.log_softmax, torch.nn.functional.log_softmax)


class WithoutMaximum(TorchFunctionMode):
    """Replaces softmax, log_softmax and logsumexp; `used` is whether a model called one of them."""

    used = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        if function not in (*LOGSUMEXP, *SOFTMAX, *LOG_SOFTMAX) or dim is None:
            return function(*args, **kwargs)
        self.used = True
        x: torch.Tensor = args[0] if args else kwargs["input"]
        powers = torch.exp(x)
        if function in LOGSUMEXP:
            keepdim = args[2] if len(args) > 2 else kwargs.get("keepdim", False)
            return torch.log(powers.sum(dim, keepdim=keepdim))
        share = powers / powers.sum(dim, keepdim=True)
        return share if function in SOFTMAX else torch.log(share)
