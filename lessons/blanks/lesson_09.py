"""Lesson 9: where a fragment begins, rounding to TF32, and the image's number in a row of columns."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _round(x: torch.Tensor) -> torch.Tensor:
    """Round to TF32 as __float_to_tf32 does: to nearest, ties away from zero."""
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _matrices(inner: int) -> tuple[torch.Tensor, torch.Tensor]:
    a = (torch.arange(16 * inner) * 7 % 13 - 6.0).reshape(16, inner)
    b = (torch.arange(16 * inner) * 5 % 11 - 5.0).reshape(inner, 16)
    return a, b


FRAGMENTS = Blank(
    text="""
#include <mma.h>
using namespace nvcuda;

// c (16 x 16) = a (16 x K) times b (K x 16), by one warp; both are stored row by row
__global__ void product(const float* a, const float* b, float* c, int K) {
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < K; k += 8) {
        wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
        wmma::load_matrix_sync(fa, ____, K);
        wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
        wmma::load_matrix_sync(fb, ____, 16);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
""",
    declaration="torch::Tensor run(torch::Tensor a, torch::Tensor b);",
    host="""
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
    auto c = torch::empty({16, 16}, a.options());
    product<<<1, 32>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.size(1));
    return c;
}
""",
    calls=lambda: [Call(f"with K = {inner}", _matrices(inner)) for inner in (8, 32)],
    expected=lambda a, b: a @ b,
    slips=(
        (r"\(fa,a,K\)|\(fb,b,16\)", "Then every step multiplies the same parts: the fragments move along K."),
        (r"\(fb,b\+k,16\)", "A step along K is a step of `k` rows in b, and each row has 16 numbers."),
        (r"\(fa,a\+k\*(K|16),K\)", "A step along K stays in the same rows of a: it moves `k` numbers to the right."),
    ),
    right="`a` moves along its rows and `b` down its columns.",
)

ROUNDED = Blank(
    text="""
#include <mma.h>
using namespace nvcuda;

__global__ void product_rounded(const float* a, const float* b, float* c) {  // 16 x 8 times 8 x 16
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
    wmma::load_matrix_sync(fa, a, 8);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = ____;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
    wmma::load_matrix_sync(fb, b, 16);
    for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = ____;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
""",
    declaration="torch::Tensor run(torch::Tensor a, torch::Tensor b);",
    host="""
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
    auto c = torch::empty({16, 16}, a.options());
    product_rounded<<<1, 32>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>());
    return c;
}
""",
    calls=lambda: [
        Call(words, (size + torch.arange(128.0).reshape(16, 8) / 997, 1 + torch.arange(128.0).reshape(8, 16) / 991))
        for words, size in (("with numbers of seven digits", 1.0), ("with numbers around 100,000", 1e5))
    ],
    expected=lambda a, b: (_round(a).double() @ _round(b).double()).float(),
    slips=(
        (
            r"fa\.x\[i\]=fa\.x\[i\];|fb\.x\[i\]=fb\.x\[i\];",
            "Without rounding, the tensor core drops 13 bits, which costs twice the precision.",
        ),
        (
            r"__float2half|__float2bfloat16",
            "That is another format. TF32 keeps a float's range: `wmma::__float_to_tf32`.",
        ),
    ),
    right="The factors are rounded to nearest, and the sum stays in float.",
)

FROM_IMAGE = Blank(
    text="""
// row k of the matrix of columns is channel c and position (ky, kx) of the window; column p is pixel (oy, ox)
__global__ void columns_of(const float* x, float* columns, int H, int W, int KH, int KW, int OW, int pixels) {
    int k = blockIdx.x, p = threadIdx.x;
    int kx = k % KW, ky = ____, c = ____;
    int oy = p / OW, ox = p % OW;
    columns[k * pixels + p] = x[(c * H + oy + ky) * W + ox + kx];
}
""",
    declaration="torch::Tensor run(torch::Tensor x, int64_t KH, int64_t KW);",
    host="""
torch::Tensor run(torch::Tensor x, int64_t KH, int64_t KW) {
    int C = x.size(0), H = x.size(1), W = x.size(2), OH = H - KH + 1, OW = W - KW + 1;
    auto columns = torch::empty({C * KH * KW, OH * OW}, x.options());
    columns_of<<<C * KH * KW, OH * OW>>>(x.data_ptr<float>(), columns.data_ptr<float>(), H, W, KH, KW, OW, OH * OW);
    return columns;
}
""",
    calls=lambda: [
        Call(f"with {C} channels and windows of {KH} × {KW}", (torch.arange(C * 42.0).reshape(C, 6, 7), KH, KW))
        for C, KH, KW in ((2, 3, 3), (3, 2, 4))
    ],
    expected=lambda x, KH, KW: torch.nn.functional.unfold(x[None], (KH, KW))[0],
    slips=(
        (r"ky=k/KW,", "This goes on counting in the next channel: take the remainder by `KH`."),
        (r"c=k/\(?KW\*KW|c=k/KH/KH|ky=k/KH", "The window has `KH` rows of `KW` positions."),
        (r"c=k/KH,|c=k/KW;|c=k/KH;", "A channel has `KH * KW` rows of the matrix."),
    ),
    right="This is all that a kernel needs in order to do without the matrix.",
)

BLANKS = {"fragments": FRAGMENTS, "rounded": ROUNDED, "from_image": FROM_IMAGE}
