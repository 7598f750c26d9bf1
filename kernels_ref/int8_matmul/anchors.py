"""int8_matmul: torch's product of bytes, and the same product in float16, as it is without quantisation."""

import torch


def prepare_bytes(model, *inputs):
    """Return torch._int_mm with the scales behind it: (N, rows) float32. It takes no fewer than 17 rows of x."""

    def run(x, x_scale, weight, weight_scale):
        return torch._int_mm(x, weight.T) * x_scale[:, None] * weight_scale

    return run


SMALLER = 2.0**-10  # times the factors' product: sums of 8,192 products of bytes are too large for float16


def prepare_half(model, x, x_scale, weight, weight_scale):
    """Return the product of values that were scaled and rounded to float16 beforehand: (N, rows) float32."""
    left, right = (x * x_scale[:, None] * SMALLER).half(), (weight * weight_scale[:, None]).half()
    return lambda *inputs: (left @ right.T).float() / SMALLER


ANCHORS = {"torch._int_mm and scales": prepare_bytes, "torch.matmul, float16": prepare_half}
