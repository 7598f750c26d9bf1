"""The problems written out in float32 with chosen orders of summation, to see what a comparison lets through.

Nothing here calls the operators that the problems' models call: sums are numpy's, one term after another or as a tree.
"""

from collections.abc import Iterable

import numpy as np
import torch
import torch.nn.functional as F

from grader.judging import tolerance


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


def cut(t: torch.Tensor) -> torch.Tensor:
    """A float32 without its last 13 bits: what tensor cores take where nobody rounded to TF32."""
    return (t.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


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


def shift(top):
    """What to subtract before exp: infinity less infinity is no number."""
    return torch.where(top.isinf(), 0, top)


def logsumexp(x, total=serial):
    top = shift(x.amax(1, keepdim=True))
    return torch.from_numpy(np.log(total(torch.exp(x - top).movedim(1, -1).numpy())))[:, None] + top


def sigmoid(z):
    return torch.from_numpy(1 / (1 + np.exp(-z.numpy())))


def variants(name, model, x, *others):
    """(honest, wrong): results by label. Every wrong one is a mistake that the problem's cases must catch."""
    if name == "matmul":
        return _matmul(x, *others)
    if name == "attention":
        return _attention(model, x, *others)
    if name == "int4_matvec":
        return _int4_matvec(model, x, *others)
    if name == "int8_matmul":
        return _int8_matmul(x, *others)
    if name == "fp8_matvec":
        return _fp8_matvec(model, x, *others)
    if name == "histogram":
        return _histogram(model, x)
    if name == "radix_pass":
        return _radix_pass(model, x)
    return {
        "conv2d": _convolution,
        "im2col_conv": _convolution,
        "conv2d_tensor_core": _tensor_core,
        "bias_scale_sigmoid": _sigmoid,
        "logsumexp": _logsumexp,
        "softmax": _softmax,
        "groupnorm": _groupnorm,
        "scale_maxpool_clamp": _scale_maxpool_clamp,
        "ratio_interval": _ratio_interval,
        "mend_layernorm": _layernorm,
        "scan": _scan,
        "compaction": _compaction,
    }.get(name, _whole)(name, model, x)


def _convolution(name, m, x):
    right = conv(x, m.conv)
    wrong = {"TF32": conv(x, m.conv, tf32), "half inputs": conv(x, m.conv, half), "bfloat16": conv(x, m.conv, bfloat16)}
    return {"serial": right}, wrong | {"half result": half(right)}


def _matmul(a, b):
    def result(rounded=same, step=1, terms=None):
        x, y = rounded(a), rounded(b)
        total = torch.zeros(x.shape[0], y.shape[1])
        for k in range(0, terms or x.shape[1], step):
            part = torch.zeros_like(total)
            for one in range(k, min(k + step, x.shape[1])):
                part = part + x[:, one : one + 1] * y[one]
            total = total + part
        return total

    honest = {"serial": result(), "16 at a time": result(step=16)}
    wrong = {
        "TF32": result(tf32),
        "half inputs": result(half),
        "bfloat16": result(bfloat16),
        "half result": half(result()),
    }
    return honest, wrong | {
        "last term forgotten": result(terms=max(1, a.shape[1] - 1)),
        "transposed B": result(lambda t: t.flip(1)),
    }


def _scale_maxpool_clamp(name, m, x):
    k, scale = m.maxpool.kernel_size, m.scale.detach()

    def pooled(v, largest=np.maximum):
        rows, columns = v.shape[2] // k, v.shape[3] // k
        windows = v.numpy()[:, :, : rows * k, : columns * k].reshape(*v.shape[:2], rows, k, columns, k)
        return torch.from_numpy(largest.reduce(largest.reduce(windows, axis=5), axis=3))

    def clamped(v):
        return v.clamp(m.clamp_min, m.clamp_max)

    honest = {"scale first": clamped(pooled(x * scale)), "clamp first": pooled(clamped(x * scale))}
    wrong = {
        "scale behind the maximum": clamped(pooled(x) * scale),
        "clamp before the scale": pooled(clamped(x) * scale),
        "no clamp": pooled(x * scale),
        "a maximum that starts at 0": clamped(pooled(x * scale).clamp_min(0)),
        "half inputs": clamped(pooled(half(x) * scale)),
        "a maximum that loses NaN": clamped(pooled(x * scale, np.fmax)),
    }
    return honest, wrong | {"half result": half(clamped(pooled(x * scale)))}


def _tensor_core(name, m, x):
    """TF32 is right here, and so is what is more precise; half precision has as many bits, but not the range."""
    honest = {
        "serial": conv(x, m.conv),
        "as TF32": conv(x, m.conv, tf32),
        "split": conv(x, m.conv, lambda t: tf32(t) + tf32(t - tf32(t))),
    }
    wrong = {
        "bfloat16": conv(x, m.conv, bfloat16),
        "stored as bfloat16": bfloat16(conv(x, m.conv, tf32)),
        "cut": conv(x, m.conv, cut),
    }
    return honest, wrong | {"out of half's range": conv(x, m.conv, half)}


def _sigmoid(name, m, x):
    z = (x + m.bias.detach()) * m.scale.detach()
    # CUDA documents __expf as within 2 + 1.16 |x| units in the last place
    loose = torch.exp(-z.clamp(-80, 80)) * (
        1 + (2 + 1.16 * z.clamp(-80, 80).abs()) * 2**-23 * (2 * torch.rand_like(z) - 1)
    )
    honest = {"exp": sigmoid(z), "tanh": 0.5 * torch.tanh(0.5 * z) + 0.5, "__expf": 1 / (1 + loose)}
    return honest, {
        "half inputs": sigmoid(half(z)),
        "half result": half(sigmoid(z)),
        "no bias": sigmoid(x * m.scale.detach()),
    }


def _logsumexp(name, m, x):
    top, total = x[:, :1], torch.ones_like(x[:, :1])
    for c in range(1, x.shape[1]):
        higher = torch.maximum(top, x[:, c : c + 1])
        total = total * torch.exp(top - shift(higher)) + torch.exp(x[:, c : c + 1] - shift(higher))
        top = higher
    honest = {"serial": logsumexp(x), "tree": logsumexp(x, tree), "online": top + torch.log(total)}
    unshifted = torch.log(torch.exp(x).sum(1, keepdim=True))
    most = x.amax(1, keepdim=True)
    above = shift(most.clamp(min=0))
    from_zero, infinite = (torch.log(torch.exp(x - by).sum(1, keepdim=True)) + by for by in (above, most))
    wrong = {"half inputs": logsumexp(half(x)), "half result": half(logsumexp(x)), "no maximum": unshifted}
    return honest, wrong | {"maximum from 0": from_zero, "infinity less infinity": infinite}


def _softmax(name, m, x):
    def result(x=x, total=serial, top=None):
        e = torch.exp(x - (x.amax(1, keepdim=True) if top is None else top))
        return e / torch.from_numpy(total(e.numpy()))[:, None]

    # the smallest number, unlike minus infinity, can be taken from minus infinity
    top, stale, total = torch.full_like(x[:, :1], torch.finfo(x.dtype).min), 0.0, 0.0
    for c in range(x.shape[1]):
        higher = torch.maximum(top, x[:, c : c + 1])
        stale = stale + torch.exp(x[:, c : c + 1] - higher)
        total = total * torch.exp(top - higher) + torch.exp(x[:, c : c + 1] - higher)
        top = higher
    honest = {"serial": result(), "tree": result(total=tree), "online": torch.exp(x - top) / total}
    wrong = {
        "no maximum": result(top=torch.zeros_like(top)),
        "maximum from 0": result(top=top.clamp(min=0)),
        "sum of a stale maximum": torch.exp(x - top) / stale,
        "over rows": result(x.T).T if x.shape[0] == x.shape[1] else half(result()),
        "half inputs": result(half(x)),
    }
    return honest, wrong | {"half result": half(result())}


def _attention(m, q, k, v):
    length, causal = q.shape[-2], torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)

    def result(tile=32, scores=same, weights=half, sums=same, corrected=True, mask=causal, scale=q.shape[-1] ** -0.5):
        top = torch.full((*q.shape[:-1], 1), torch.finfo(torch.float32).min)
        total, out = torch.zeros_like(top), torch.zeros(q.shape)
        for first in range(0, length, tile):
            part = slice(first, first + tile)
            s = scores(q.float() @ k[..., part, :].float().mT * scale)
            s = s.masked_fill(mask[:, part], -torch.inf) if m.causal else s
            higher = torch.maximum(top, s.amax(-1, keepdim=True))
            shrink = torch.exp(top - higher) if corrected else 1.0
            e = torch.exp(s - higher)
            total = total * shrink + e.sum(-1, keepdim=True)
            out = sums(out * shrink + weights(e) @ v[..., part, :].float())
            top = higher
        return (out / total).half()

    honest = {f"tiles of {tile}": result(tile) for tile in (1, 16, 64)} | {"weights of float32": result(weights=same)}
    wrong = {
        "bfloat16 weights": result(weights=bfloat16),
        "scores of half": result(scores=half),
        "sums of half": result(1, sums=half),
        "not corrected": result(16, corrected=False),
        "not scaled": result(scale=1.0),
        "one key too many": result(mask=causal.roll(1, 1).triu(2)),
    }
    return honest, wrong


def _int4_matvec(m, x, packed, scales):
    def unpacked(order: Iterable[int] = range(8), offset=8):
        return torch.stack([packed >> 4 * k & 15 for k in order], dim=-1).flatten(1).float() - offset

    groups = torch.arange(x.shape[1]) // m.group_size

    def result(weights=None, scaled=same, sums=same, step=8, groups=groups):
        w = scaled((unpacked() if weights is None else weights) * scales[:, groups].float())
        total = torch.zeros(len(x), len(packed))
        for first in range(0, x.shape[1], step):
            part = slice(first, first + step)
            total = sums(total + x[:, part].float() @ w[:, part].T)
        return total.half()

    # a step may round the weights as eager does, and what a few products add up to
    honest = {f"{step} at a time": result(step=step) for step in (8, 32, 256)}
    honest |= {"half weights": result(scaled=half)}
    wrong = {
        "sums of half": result(sums=half, step=1),
        "weights of bfloat16": result(scaled=bfloat16),  # also where few products or equal weights hide it
        "offset of 7": result(unpacked(offset=7)),
        "no offset": result(unpacked(offset=0)),
        "neighbours exchanged": result(unpacked((1, 0, 3, 2, 5, 4, 7, 6))),
        "from the other end": result(unpacked(range(7, -1, -1))),
        "the first scale for all": result(groups=torch.zeros_like(groups)),
        "scale of the group before": result(groups=(groups - 1).clamp(min=0)),
    }
    return honest, wrong


def _fp8_matvec(m, x, weight, scales):
    groups = torch.arange(x.shape[1]) // m.group_size
    bits = weight.view(torch.uint8).int()
    exponent, mantissa, sign = bits >> 3 & 15, bits & 7, 1 - 2 * (bits >> 7).float()

    def result(values=None, scaled=same, products=same, sums=same, step=8, groups=groups):
        w = scaled(weight.float() if values is None else values)
        total = torch.zeros(len(x), len(weight))
        for first in range(0, x.shape[1], step):
            part = slice(first, first + step)
            terms = products(x[:, None, part].float() * w[:, part]) * scales[:, groups[part]]
            total = sums(total + terms.sum(-1))
        return total.half()

    # a step may round the weights as eager does
    honest = {f"{step} at a time": result(step=step) for step in (1, 16, 512)}
    honest |= {"half weights": (x.float() @ (weight.float() * scales[:, groups]).half().float().T).half()}
    wrong = {
        "products of half": result(products=half),  # beyond its range where x is large
        "sums of half": result(sums=half, step=1),
        "weights of 3 bits": result(scaled=lambda w: (w.view(torch.int32) & 0xFFE00000 - 2**32).view(torch.float32)),
        "bits as int8": result(bits.to(torch.int8).float()),
        "bias of 8": result(weight.float() / 2),
        "no hidden 1": result(sign * mantissa / 8 * 2.0 ** (exponent - 7)),
        "a hidden 1 in all": result(sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)),
        "subnormals are 0": result(weight.float() * (exponent > 0)),
        "an exponent for infinity": result(torch.where(exponent == 15, torch.inf, weight.float())),
        "no sign": result(weight.float().abs()),
        "e5m2": result(weight.view(torch.float8_e5m2).float()),
        "the first scale for all": result(groups=torch.zeros_like(groups)),
        "scale of the group before": result(groups=(groups - 1).clamp(min=0)),
    }
    return honest, wrong


def _int8_matmul(x, x_scale, weight, weight_scale):
    def total(left=x, right=weight):
        return left.int() @ right.int().T

    def scaled(sums, left=x_scale, right=weight_scale):
        return sums.float() * left[:, None] * right

    def shifted(t):
        return t.int() & 0xFF

    honest = {
        "integers": scaled(total()),
        "both scales first": total().float() * (x_scale[:, None] * weight_scale),
        "floats in order": scaled((x.float()[:, None] * weight.float()).cumsum(-1)[..., -1]),
    }
    wrong = {
        "sums of 16 bits": scaled(total().short()),
        "bytes without a sign": scaled(total(shifted(x), shifted(weight))),
        "one factor without a sign": scaled(total(right=shifted(weight))),
        "no scale of x": scaled(total(), torch.ones_like(x_scale)),
        "scale of the next row": scaled(total(), right=weight_scale.roll(-1)),
        "half result": half(scaled(total())),
        "bfloat16 scales": scaled(total(), bfloat16(x_scale), bfloat16(weight_scale)),
        "last four columns forgotten": scaled(total(x[:, :-4], weight[:, :-4])),
    }
    return honest, wrong


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


def _layernorm(name, m, x):
    weight, bias, eps = m.ln.weight.detach(), m.ln.bias.detach(), m.ln.eps

    def result(statistics, x=x, eps=eps):
        v = x.numpy()
        mean, variance = statistics(v)
        y = (v - mean[..., None]) * (np.float32(1) / np.sqrt(variance + np.float32(eps)))[..., None]
        return torch.from_numpy(y) * weight + bias

    honest = {label: result(how) for label, how in STATISTICS.items()}
    best = STATISTICS["tree two-pass"]
    wrong = {"eps twice": result(best, eps=2 * eps), "unbiased": result(unbiased), "one-pass": result(one_pass)}
    return honest, wrong | {"half inputs": result(best, half(x)), "half result": half(result(best))}


def _ratio_interval(name, m, x):
    def result(x=x, ratio=np.divide, median=np.median, wider=0):
        r = np.sort(ratio(x[:, 0].numpy(), x[:, 1].numpy()), axis=-1)
        below = max(0, int(np.floor(r.shape[-1] / 2 - 0.98 * np.sqrt(r.shape[-1]))) - wider)
        found = np.stack([median(r, axis=-1), r[..., below], r[..., r.shape[-1] - 1 - below]], axis=1)
        return torch.from_numpy(found.astype(np.float32))[..., None]

    def lower(r, axis):
        return r[..., (r.shape[-1] - 1) // 2]

    honest = {"division": result(), "reciprocal": result(ratio=lambda a, b: a * (np.float32(1) / b))}
    wrong = {
        "mean": result(median=np.mean),
        "lower of two": result(median=lower),
        "inverse": result(ratio=lambda a, b: b / a),
        "one rank too wide": result(wider=1),
        "half inputs": result(half(x)),
        "half result": half(result()),
    }
    return honest, wrong


def _compaction(name, m, x):
    def moved(keep, values=x):
        kept = values[keep]
        return torch.cat([kept, torch.zeros(len(x) - len(kept))])

    kept = moved(x != 0)
    wrong = {
        "half result": half(kept),
        "bfloat16 result": bfloat16(kept),
        "zeros in place": x.clone(),
        "one place too far": kept.roll(1),
        "from the last to the first": torch.cat([x[x != 0].flip(0), x[x == 0]]),
        "in order of size": moved(x != 0, x).sort(descending=True).values,
        "blocks exchanged": torch.cat([moved(x != 0)[256:], kept[:256]]),
        "negative ones dropped": moved(x > 0),
    }
    return {"moved": kept}, wrong


def _radix_pass(m, keys):
    def gather(parts=(keys,), shift=m.shift, digits=range(16), bits=15):
        """The keys of each part in the order of their digits, part after part."""
        return torch.cat([part[(part >> shift & bits) == digit] for part in parts for digit in digits])

    by_digit = [(keys >> m.shift & 15) == digit for digit in range(16)]
    wrong = {
        "input": keys.clone(),
        "sorted": keys.sort().values,
        "shift forgotten": gather(shift=0),
        "a digit of 3 bits": gather(digits=range(8), bits=7),
        "from the highest digit on": gather(digits=range(15, -1, -1)),
        "block after block": gather(keys.split(256)),
        "equal digits turned around": torch.cat([keys[which].flip(0) for which in by_digit]),
        "equal digits sorted": torch.cat([keys[which].sort().values for which in by_digit]),
        "last digit left out": torch.cat([gather(digits=range(15)), keys])[: len(keys)],
        "half result": half(gather().float()).clamp(max=65504).int(),
        "float result": gather().float(),
    }
    return {"gathered": gather()}, wrong


def _histogram(m, x):
    v, low, high = x.numpy(), np.float32(m.low), np.float32(m.high)

    def count(values=v, bins=m.bins, inside=None, rounded=np.floor, last=m.bins - 1):
        inside = (values >= low) & (values <= high) if inside is None else inside
        places = rounded((values[inside] - low) * np.float32(bins) / (high - low)).astype(np.int64)
        counts = np.bincount(places.clip(0, last), minlength=m.bins)[: m.bins]
        return torch.from_numpy(counts).int()

    factor = np.float32(m.bins) / (high - low)
    places = ((v - low) * factor).astype(np.int64)[(v >= low) & (v <= high)]
    multiplied = np.bincount(places.clip(0, m.bins - 1), minlength=m.bins)
    honest = {"divided": count(), "multiplied": torch.from_numpy(multiplied).int()}
    wrong = {
        "without high": count(inside=(v >= low) & (v < high)),
        "high behind the last bin": count(last=m.bins),
        "a bin too few": count(bins=m.bins - 1),
        "outside in the first and last bin": count(inside=np.ones_like(v, dtype=bool)),
        "below in the first bin": count(inside=v <= high, rounded=np.trunc),
        "less than a bin below in the first": count(inside=(v > low - 1 / factor) & (v <= high)),
        "edges in the lower bin": count(rounded=lambda place: np.ceil(place) - 1),
        "to the nearest bin": count(rounded=np.rint),
        "values of 11 bits": count(half(x).numpy()),
        "values of 8 bits": count(bfloat16(x).numpy()),
        "counts of 16 bits": count().short().int(),
        "counts of 11 bits": half(count().float()).clamp(max=65504).int(),
        "float counts": count().float(),
    }
    return honest, wrong


def _scan(name, m, x):
    def blocks(x, size=256, added=np.add):
        """Blocks scanned by themselves, their sums in the same way, and each block moved by what lies before it."""
        padded = np.zeros(-(-len(x) // size) * size, np.float32)
        padded[: len(x)] = x
        parts = np.cumsum(padded.reshape(-1, size), axis=1, dtype=np.float32)
        if len(parts) > 1:
            parts[1:] = added(parts[1:], blocks(parts[:, -1], size)[:-1, None])
        return parts.reshape(-1)[: len(x)]

    v, positions = x.numpy(), np.arange(len(x))
    ordered = np.cumsum(v, dtype=np.float32)
    honest = {"blocks": blocks(v), "blocks of 1,024": blocks(v, 1024), "a thread each 8,192": blocks(v, 8192)}
    if len(v) <= tolerance.LONGEST_SUM:
        honest["serial"] = ordered
    wrong = {
        "exclusive": ordered - v,
        "offsets forgotten": blocks(v, added=lambda part, before: part),
        "half result": half(x.cumsum(0)).numpy(),
        "first element forgotten": ordered - v[0],
        "from the other end": np.cumsum(v[::-1], dtype=np.float32)[::-1].copy(),
        "one neighbour too many at the end": ordered + np.where(positions == len(v) - 1, v[-1], np.float32(0)),
    }
    return {k: torch.from_numpy(y) for k, y in honest.items()}, {k: torch.from_numpy(y) for k, y in wrong.items()}


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
