"""The eight problems written out in float32 with chosen orders of summation, to see what a comparison lets through.

Nothing here calls the operators that the problems' models call: sums are numpy's, one term after another or as a tree.
"""

import numpy as np
import torch
import torch.nn.functional as F


def serial(x: np.ndarray) -> np.ndarray:
    """Sum over the last axis, one float32 term after another."""
    return np.cumsum(x, axis=-1, dtype=np.float32)[..., -1]


def tree(x: np.ndarray) -> np.ndarray:
    """Sum over the last axis in float32, neighbours first."""
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros_like(x[..., :1])], -1)
        x = x[..., 0::2] + x[..., 1::2]
    return x[..., 0]


def two_pass(v, total):
    mean = total(v) / np.float32(v.shape[-1])
    d = v - mean[..., None]
    return mean, total(d * d) / np.float32(v.shape[-1])


def welford(v):
    mean, m2 = np.zeros(v.shape[:-1], np.float32), np.zeros(v.shape[:-1], np.float32)
    for k in range(v.shape[-1]):
        delta = v[..., k] - mean
        mean = mean + delta / np.float32(k + 1)
        m2 = m2 + delta * (v[..., k] - mean)
    return mean, m2 / np.float32(v.shape[-1])


def one_pass(v):
    n = np.float32(v.shape[-1])
    mean = tree(v) / n
    return mean, tree(v * v) / n - mean * mean


def unbiased(v):
    mean, variance = two_pass(v, tree)
    n = v.shape[-1]
    return mean, variance * np.float32(n / max(n - 1, 1))


STATISTICS = {
    "serial two-pass": lambda v: two_pass(v, serial),
    "tree two-pass": lambda v: two_pass(v, tree),
    "Welford": welford,
}


def tf32(t: torch.Tensor) -> torch.Tensor:
    """Rounded to the 10 bits of mantissa that a tensor core keeps of a float32."""
    return ((t.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def half(t):
    return t.half().float()


def bfloat16(t):
    return t.bfloat16().float()


def same(t):
    return t


def conv(x, layer, rounded=same):
    """Convolution as a serial sum over channels, rows and columns of the window, in float32."""
    x, w = rounded(x), rounded(layer.weight.detach())
    k = w.shape[-1]
    rows, columns = x.shape[2] - k + 1, x.shape[3] - k + 1
    total = torch.zeros(x.shape[0], w.shape[0], rows, columns)
    for c in range(w.shape[1]):
        for i in range(k):
            for j in range(k):
                total = total + x[:, c : c + 1, i : i + rows, j : j + columns] * w[None, :, c, i, j, None, None]
    return total + layer.bias.detach().view(1, -1, 1, 1)


def group_norm(x, layer, statistics, eps):
    v = x.reshape(x.shape[0], layer.num_groups, -1).numpy()
    mean, variance = statistics(v)
    y = (v - mean[..., None]) * (np.float32(1) / np.sqrt(variance + np.float32(eps)))[..., None]
    shape = (1, -1) + (1,) * (x.dim() - 2)
    return torch.from_numpy(y).reshape(x.shape) * layer.weight.detach().view(shape) + layer.bias.detach().view(shape)


def logsumexp(x, total=serial):
    top = x.amax(1, keepdim=True)
    return torch.from_numpy(np.log(total(torch.exp(x - top).movedim(1, -1).numpy())))[:, None] + top


def sigmoid(z):
    return torch.from_numpy(1 / (1 + np.exp(-z.numpy())))


def variants(name, model, x):
    """(honest, wrong): results by label. Every wrong one is a mistake that the problem's cases must catch."""
    return {
        "conv2d": _convolution, "im2col_conv": _convolution, "bias_scale_sigmoid": _sigmoid, "logsumexp": _logsumexp,
        "groupnorm": _groupnorm,
    }.get(name, _whole)(name, model, x)


def _convolution(name, m, x):
    right = conv(x, m.conv)
    wrong = {"TF32": conv(x, m.conv, tf32), "half inputs": conv(x, m.conv, half), "bfloat16": conv(x, m.conv, bfloat16)}
    return {"serial": right}, wrong | {"half result": half(right)}


def _sigmoid(name, m, x):
    z = (x + m.bias.detach()) * m.scale.detach()
    # CUDA documents __expf as within 2 + 1.16 |x| units in the last place
    loose = torch.exp(-z.clamp(-80, 80)) * (1 + (2 + 1.16 * z.clamp(-80, 80).abs()) * 2**-23 * (2 * torch.rand_like(z) - 1))
    honest = {"exp": sigmoid(z), "tanh": 0.5 * torch.tanh(0.5 * z) + 0.5, "__expf": 1 / (1 + loose)}
    return honest, {"half inputs": sigmoid(half(z)), "half result": half(sigmoid(z)), "no bias": sigmoid(x * m.scale.detach())}


def _logsumexp(name, m, x):
    top, total = x[:, :1], torch.ones_like(x[:, :1])
    for c in range(1, x.shape[1]):
        higher = torch.maximum(top, x[:, c : c + 1])
        total = total * torch.exp(top - higher) + torch.exp(x[:, c : c + 1] - higher)
        top = higher
    honest = {"serial": logsumexp(x), "tree": logsumexp(x, tree), "online": top + torch.log(total)}
    unshifted = torch.log(torch.exp(x).sum(1, keepdim=True))
    return honest, {"half inputs": logsumexp(half(x)), "half result": half(logsumexp(x)), "no maximum": unshifted}


def _groupnorm(name, m, x):
    eps = m.gn.eps
    honest = {label: group_norm(x, m.gn, how, eps) for label, how in STATISTICS.items()}
    right = honest["tree two-pass"]
    wrong = {
        "eps twice": group_norm(x, m.gn, STATISTICS["tree two-pass"], 2 * eps),
        "no eps": group_norm(x, m.gn, STATISTICS["tree two-pass"], 0.0),
        "unbiased": group_norm(x, m.gn, unbiased, eps),
        "one-pass": group_norm(x, m.gn, one_pass, eps),
        "half inputs": group_norm(half(x), m.gn, STATISTICS["tree two-pass"], eps),
        "half result": half(right),
    }
    return honest, wrong


def _whole(name, m, x):
    eps = m.group_norm.eps

    def result(statistics, eps=eps, rounded=same, stored=same):
        v = stored(conv(x, m.conv, rounded))
        if name == "conv_sigmoid_groupnorm":
            return group_norm(sigmoid((v + m.bias.detach()) * m.scale.detach()), m.group_norm, statistics, eps)
        y = group_norm(v, m.group_norm, statistics, eps)
        if name == "conv_groupnorm_maxpool":
            return F.max_pool2d(y * m.scale.detach(), m.maxpool.kernel_size).clamp(m.clamp_min, m.clamp_max)
        return logsumexp(v + F.hardswish(torch.tanh(y)))

    honest = {label: result(how) for label, how in STATISTICS.items()}
    best = STATISTICS["tree two-pass"]
    wrong = {
        "eps twice": result(best, 2 * eps),
        "unbiased": result(unbiased),
        "TF32": result(best, rounded=tf32),
        "half convolution": result(best, stored=half),
        "half result": half(result(best)),
    }
    return honest, wrong
