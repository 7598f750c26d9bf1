"""Lesson 7: the chain rule for one number, a sum over the batch, the softmax's share, and a convolution backwards."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _drawn(*sizes: int) -> torch.Tensor:
    """Return some numbers that are neither equal nor in order."""
    count = torch.Size(sizes).numel()
    return (torch.arange(count) * 7 % 11 - 4.0).reshape(sizes)


CHAIN = Blank(
    text="""
__global__ void sigmoid_backward(const float* gy, const float* y, float* gx, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gx[i] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor gy, torch::Tensor y);",
    host="""
torch::Tensor run(torch::Tensor gy, torch::Tensor y) {
    int n = y.numel();
    auto gx = torch::empty_like(y);
    sigmoid_backward<<<(n + 31) / 32, 32>>>(gy.data_ptr<float>(), y.data_ptr<float>(), gx.data_ptr<float>(), n);
    return gx;
}
""",
    calls=lambda: [Call("with 40 numbers", (_drawn(40), torch.sigmoid(_drawn(40) / 3)))],
    expected=lambda gy, y: gy * y * (1 - y),
    slips=(
        (r"gx\[i\]=y\[i\]\*\(1(\.0f?)?-y\[i\]\);", "The upstream gradient is missing: multiply by `gy[i]`."),
        (r"gx\[i\]=gy\[i\]\*y\[i\];", "The derivative of the sigmoid has two factors: y and 1 − y."),
        (r"exp", "`y` is the sigmoid's result already: no exponential is needed."),
        (r"gy\[i\]\+", "The chain rule multiplies: contributions are added only where x changes several results."),
    ),
    right="The result alone was enough; x need not be saved.",
)

OVER_THE_BATCH = Blank(
    text="""
__global__ void bias_gradient(const float* gy, float* gbias, int images, int channels, int pixels) {
    int c = threadIdx.x;
    float sum = 0.0f;
    for (int n = 0; n < images; ++n)
        for (int p = 0; p < pixels; ++p)
            sum += gy[____];
    gbias[c] = sum;
}
""",
    declaration="torch::Tensor run(torch::Tensor gy);",
    host="""
torch::Tensor run(torch::Tensor gy) {
    int images = gy.size(0), channels = gy.size(1), pixels = gy.size(2);
    auto gbias = torch::empty({channels}, gy.options());
    bias_gradient<<<1, channels>>>(gy.data_ptr<float>(), gbias.data_ptr<float>(), images, channels, pixels);
    return gbias;
}
""",
    calls=lambda: [
        Call(f"with {images} images of {channels} channels and {pixels} pixels", (_drawn(images, channels, pixels),))
        for images, channels, pixels in ((2, 3, 5), (3, 2, 4))
    ],
    expected=lambda gy: gy.sum((0, 2)),
    slips=(
        (r"gy\[c\*pixels\+p\]", "That is the first image each time: `n` is missing."),
        (
            r"gy\[n\*pixels\+p\]|gy\[\(?n\*pixels",
            "An image has `channels` planes: image `n` begins after `n * channels` of them, and channel `c` follows.",
        ),
        (
            r"gy\[\(?c\*images",
            "In memory the images come first, then their channels: (n · channels + c) planes lie before.",
        ),
    ),
    right="Each channel sums over its pixels in every image.",
)

SHARE = Blank(
    text="""
__global__ void logsumexp_backward(const float* gy, const float* x, const float* y, float* gx, int columns) {
    int row = blockIdx.x;
    int i = row * columns + threadIdx.x;
    gx[i] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor gy, torch::Tensor x, torch::Tensor y);",
    host="""
torch::Tensor run(torch::Tensor gy, torch::Tensor x, torch::Tensor y) {
    auto gx = torch::empty_like(x);
    logsumexp_backward<<<x.size(0), x.size(1)>>>(gy.data_ptr<float>(), x.data_ptr<float>(), y.data_ptr<float>(),
                                                 gx.data_ptr<float>(), x.size(1));
    return gx;
}
""",
    calls=lambda: [
        Call(words, (_drawn(3), x, torch.logsumexp(x, 1)))
        for words, x in (("with small numbers", _drawn(3, 5)), ("with numbers around 500", 500 + _drawn(3, 4)))
    ],
    expected=lambda gy, x, y: gy[:, None] * torch.softmax(x, 1),
    slips=(
        (
            r"gx\[i\]=expf\(x\[i\]-y\[row\]\);",
            "That is the share. The upstream gradient is missing: multiply by `gy[row]`.",
        ),
        (
            r"expf\(x\[i\]\)",
            "`expf` of a large number is infinite. Subtract in the exponent: the sum of all e^x is e^y.",
        ),
        (r"gy\[i\]|y\[i\]\)", "`y` and `gy` have one number for each row."),
        (r"x\[i\]/", "The share is that of e^x in their sum, and not that of x."),
    ),
    right="No second sum: y holds it.",
)

TRANSPOSED = Blank(
    text="""
__global__ void slide_backward(const float* gy, const float* w, float* gx, int n, int size, int results) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < size; ++k) {
        int o = ____;  // x[i] was multiplied by w[k] for result o
        if (____) sum += gy[o] * w[k];
    }
    gx[i] = sum;
}
""",
    declaration="torch::Tensor run(torch::Tensor gy, torch::Tensor w);",
    host="""
torch::Tensor run(torch::Tensor gy, torch::Tensor w) {
    int results = gy.numel(), size = w.numel(), n = results + size - 1;
    auto gx = torch::empty({n}, gy.options());
    slide_backward<<<(n + 31) / 32, 32>>>(gy.data_ptr<float>(), w.data_ptr<float>(), gx.data_ptr<float>(), n, size,
                                          results);
    return gx;
}
""",
    calls=lambda: [
        Call(f"with {results} results and a window of {size}", (_drawn(results), torch.arange(1.0, size + 1)))
        for results, size in ((6, 1), (8, 3), (40, 5))
    ],
    expected=lambda gy, w: torch.nn.functional.conv_transpose1d(gy[None, None], w[None, None])[0, 0],
    slips=(
        (
            r"into=i\+k;",
            "Forward adds the offset: result o reads x[o + k]. So x[i] belongs to the result with o + k = i.",
        ),
        (r"if\(o<results\)|if\(results>o\)", "At the beginning `i - k` is below 0, and there is no such result."),
        (
            r"if\(o>=0\)|if\(0<=o\)|if\(i>=k\)",
            "At the end there is no result `o`, either: there are only `results` of them.",
        ),
        (r"o<n\)|o<=results", "There are `results` of them, numbered from 0: fewer than numbers in x."),
    ),
    right="Each thread gathers its own terms, so no atomic is needed.",
)

BLANKS = {
    "chain": CHAIN,
    "over_the_batch": OVER_THE_BATCH,
    "softmax_share": SHARE,
    "transposed": TRANSPOSED,
}
