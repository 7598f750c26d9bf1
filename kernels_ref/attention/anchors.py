"""attention: torch's own fused kernels, one row of `grader bench` for each backend that this GPU has."""

import functools

import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def prepare(backend, model, *inputs):
    """Return scaled_dot_product_attention by one backend: q, k, v (N, heads, length, head_dim) -> the same shape."""

    def run(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=model.causal)

    return run


ANCHORS = {
    f"scaled_dot_product_attention, {name}": functools.partial(prepare, backend)
    for name, backend in {
        "FlashAttention": SDPBackend.FLASH_ATTENTION,
        "cuDNN": SDPBackend.CUDNN_ATTENTION,
        "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
    }.items()
}
BACKWARD = list(ANCHORS)
