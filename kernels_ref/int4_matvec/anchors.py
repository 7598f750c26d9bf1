"""int4_matvec: the same product with all weights in float16, as it is without quantisation."""

import torch


def prepare_half(model, x, packed, scales):
    """Return the product of x with weights that were unpacked beforehand: (N, rows)."""
    stored = torch.stack([packed >> 4 * k & 15 for k in range(8)], dim=-1).flatten(1)
    weight = (stored - 8).half() * scales.repeat_interleave(model.group_size, dim=1)[:, : stored.shape[1]]
    return lambda x, packed, scales: x @ weight.T


ANCHORS = {"torch.matmul, float16": prepare_half}
