"""fp8_matvec: the same product with weights in float16, and torch's product of 8-bit floats."""

import torch

LARGEST = 448.0  # of float8_e4m3fn


def dequantise(model, weight, scales):
    """Return in float32 the weights that weight (rows, columns) and scales (rows, groups) stand for."""
    return weight.float() * scales.repeat_interleave(model.group_size, dim=1)[:, : weight.shape[1]]


def quantise(values):
    """Return values as float8_e4m3fn, and the one scale of all."""
    scale = (values.abs().amax().float() / LARGEST).clamp(min=1e-12)
    return (values / scale).to(torch.float8_e4m3fn), scale


def prepare_half(model, x, weight, scales):
    """Return the product of x with weights that were converted beforehand: (N, rows)."""
    converted = dequantise(model, weight, scales).half()
    return lambda x, weight, scales: x @ converted.T


def prepare_scaled(model, x, weight, scales):
    """Return torch._scaled_mm: (N, rows) float16. It reads the same bytes of weights, and less precise numbers.

    It takes x in 8 bits, too, and here one scale for all weights, so that these are rounded a second time. It needs
    compute capability 8.9, and numbers of rows and columns that 16 divides.
    """
    rounded, weight_scale = quantise(dequantise(model, weight, scales))

    def run(x, weight, scales):
        x, x_scale = quantise(x)
        return torch._scaled_mm(x, rounded.T, x_scale, weight_scale, out_dtype=torch.float16)

    return run


ANCHORS = {"torch.matmul, float16": prepare_half, "torch._scaled_mm, x in 8 bits": prepare_scaled}
