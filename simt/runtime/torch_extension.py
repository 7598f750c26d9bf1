"""Import torch's builder of extensions without its warning that a CUDA build of torch finds no GPU."""

from __future__ import annotations

import logging


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Return False for the warning that nvcc is there and a GPU is not: where simt runs kernels, that is expected."""
    return not record.getMessage().startswith("No CUDA runtime is found")


logging.getLogger("torch.utils.cpp_extension").addFilter(_is_of_interest)

import torch.utils.cpp_extension as cpp_extension  # noqa: E402  (the warning comes from this import)

__all__ = ["cpp_extension"]
