"""Lesson 14: weights rounded to four bits, packed and unpacked words, a float made of bits, and products of bytes."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call


def _groups(n: int) -> torch.Tensor:
    """Return n groups of eight weights, whose largest in magnitude is negative in every second group."""
    weights = torch.arange(n * 8).reshape(n, 8) * 11 % 29 * 0.03 - 0.31
    weights[torch.arange(n), torch.arange(n) % 8] = torch.where(torch.arange(n) % 2 > 0, -1.37, 0.93)
    return weights


def _rounded(weights: torch.Tensor) -> torch.Tensor:
    scales = weights.abs().amax(1, keepdim=True) / 7
    return torch.cat([torch.round(weights / scales), scales], 1)


FOUR_BITS = Blank(
    text="""
// one thread per group of eight weights; q: their integers, from -7 to 7
__global__ void quantise(const float* w, float* q, float* scales) {
    w += threadIdx.x * 8;
    q += threadIdx.x * 8;
    float largest = 0.0f;
    for (int k = 0; k < 8; ++k) largest = fmaxf(largest, ____);
    float scale = ____;
    for (int k = 0; k < 8; ++k) q[k] = ____;
    scales[threadIdx.x] = scale;
}
""",
    declaration="torch::Tensor run(torch::Tensor w);",
    host="""
torch::Tensor run(torch::Tensor w) {
    auto q = torch::empty_like(w), scales = torch::empty({w.size(0), 1}, w.options());
    quantise<<<1, w.size(0)>>>(w.data_ptr<float>(), q.data_ptr<float>(), scales.data_ptr<float>());
    return torch::cat({q, scales}, 1);
}
""",
    calls=lambda: [Call(f"with {n} group{'s' if n > 1 else ''}", (_groups(n),)) for n in (1, 6)],
    expected=_rounded,
    slips=(
        (r"fmaxf\(largest,w\[k\]\)", "The largest weight may be a negative one: compare magnitudes, `fabsf(w[k])`."),
        (
            r"scale=largest/(8|15|16)(\.0?f?)?;",
            "The largest weight becomes 7, the largest integer: 7 times the scale is `largest`.",
        ),
        (r"scale=7(\.0?f?)?/largest", "The scale is the size of a step. 7 steps make `largest`."),
        (r"q\[k\]=\(int\)", "A conversion to int drops what is behind the point: 6.9 becomes 6. Use `rintf`."),
        (r"q\[k\]=w\[k\]/scale;", "The quotient is no integer yet. `rintf` rounds it to the nearest one."),
        (r"w\[k\]\*scale", "How many steps of size `scale` make the weight? Divide."),
    ),
    right="No weight is off by more than half a step.",
)


def _integers(words: int) -> torch.Tensor:
    """Return eight integers from -8 to 7 for each word."""
    return (torch.arange(words * 8, dtype=torch.int32) * 5 + 3) % 16 - 8


def _packed(q: torch.Tensor) -> torch.Tensor:
    words = ((q + 8).reshape(-1, 8).long() << 4 * torch.arange(8)).sum(1)
    return torch.where(words < 2**31, words, words - 2**32).int()


PACKED_WORD = Blank(
    text="""
// one thread per word; q: eight integers from -8 to 7 for each
__global__ void pack(const int* q, unsigned* words) {
    unsigned word = 0;
    for (int k = 0; k < 8; ++k) word |= ____;
    words[threadIdx.x] = word;
}
""",
    declaration="torch::Tensor run(torch::Tensor q);",
    host="""
torch::Tensor run(torch::Tensor q) {
    auto words = torch::empty({q.numel() / 8}, q.options());
    pack<<<1, words.numel()>>>(q.data_ptr<int>(), (unsigned*)words.data_ptr<int>());
    return words;
}
""",
    calls=lambda: [Call(f"with {n} word{'s' if n > 1 else ''}", (_integers(n),)) for n in (1, 5)],
    expected=_packed,
    slips=(
        (r"q\[k\]", "Each thread has its own eight integers: they begin at `threadIdx.x * 8`."),
        (r"q\[threadIdx\.x\+k\]", "A thread's integers begin at `threadIdx.x * 8`, because every thread has eight."),
        (r"<<k\b", "A nibble has four bits, so that number k begins at bit `4 * k`."),
        (r">>", "Nibble k has to be moved up to bit `4 * k`: `<<`."),
        (r"<<4\*\(7-k\)", "Number 0 is in the lowest four bits."),
        (r"&15", "The lowest four bits of -1 are 15. What is stored is the integer plus 8."),
        (r"^(?!.*(____|\+8|8\+\(?q))", "A nibble has no sign: what is stored is the integer plus 8, from 0 to 15."),
    ),
    right="Eight weights take four bytes.",
)

NIBBLES = Blank(
    text="""
// one thread per word; w: its eight weights, from -8 to 7
__global__ void unpack(const unsigned* words, float* w) {
    unsigned word = words[threadIdx.x];
    for (int k = 0; k < 8; ++k) w[threadIdx.x * 8 + k] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor words);",
    host="""
torch::Tensor run(torch::Tensor words) {
    auto w = torch::empty({words.numel() * 8}, words.options().dtype(torch::kFloat32));
    unpack<<<1, words.numel()>>>((const unsigned*)words.data_ptr<int>(), w.data_ptr<float>());
    return w;
}
""",
    calls=lambda: [Call(f"with {n} word{'s' if n > 1 else ''}", (_packed(_integers(n)),)) for n in (1, 5)],
    expected=lambda words: ((words.long()[:, None] >> 4 * torch.arange(8) & 15) - 8).flatten().float(),
    slips=(
        (
            r"=\(?\(?word>>\(?4\*k\)?&(15|0xf)\)?-8u?;|=\(\(word>>4\*k\)&15\)-8u?;",
            "`word` is unsigned, and so is a difference with it: 3 - 8 becomes about 4 billion. Convert to int first.",
        ),
        (r"&0xff|&255", "A weight has four bits: 15 keeps these."),
        (r">>k\b", "A nibble has four bits, so that number k begins at bit `4 * k`."),
        (r">>4\*\(7-k\)", "Weight 0 is in the lowest four bits."),
        (r"^(?!.*(____|&15|&0xf\b|%16))", "After the shift, the nibbles above are still there: `& 15` clears them."),
        (r"^(?!.*(____|-8))", "What is stored is the weight plus 8."),
    ),
    right="A shift, a mask, a conversion and a subtraction for each weight.",
)

BITS_AS_FLOAT = Blank(
    text="""
// one thread per nibble q, from 0 to 15; w: the weight q - 8, as a float
__global__ void convert(const unsigned* q, float* w) {
    unsigned bits = ____;
    w[threadIdx.x] = __uint_as_float(bits) - ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor q);",
    host="""
torch::Tensor run(torch::Tensor q) {
    auto w = torch::empty({q.numel()}, q.options().dtype(torch::kFloat32));
    convert<<<1, q.numel()>>>((const unsigned*)q.data_ptr<int>(), w.data_ptr<float>());
    return w;
}
""",
    calls=lambda: [Call("with all 16 nibbles", (torch.arange(16, dtype=torch.int32),))],
    expected=lambda q: q - 8.0,
    slips=(
        (r"bits=q\[threadIdx\.x\];", "These bits are no float yet: the exponent of 2²³ is missing, `0x4b000000`."),
        (r"0x6400\b", "That is the exponent of a half. A float has `0x4b000000`."),
        (r"0x4b000000&", "`&` keeps only what both have, which is nothing. `|` joins exponent and nibble."),
        (r"-8388608(\.0?f?)?;", "2²³ is gone then, but what is stored is still the weight plus 8."),
        (r"-8388600(\.0?f?)?;", "2²³ and 8 have both to be subtracted: together they are 8,388,616."),
        (r"-8(\.0?f?)?;", "The float is 2²³ + q. 2²³ has to be subtracted, too."),
    ),
    right="No conversion, and no rounding: a float holds all whole numbers up to 2²⁴.",
)


def _bytes(rows: int, columns: int, step: int) -> torch.Tensor:
    return ((torch.arange(rows * columns) * step + 5) % 251 - 125).reshape(rows, columns).to(torch.int8)


FOUR_BYTES = Blank(
    text="""
// one thread per result: vector n times row r of the weights. A word has four bytes; x and the weights have a scale
// per row
__global__ void multiply(const int* x, const float* x_scale, const int* weight, const float* weight_scale, float* y,
                         int rows, int words) {
    int n = blockIdx.x, r = threadIdx.x;
    int sum = 0;
    for (int w = 0; w < words; ++w) sum = ____;
    y[n * rows + r] = ____;
}
""",
    declaration="torch::Tensor run(torch::Tensor x, torch::Tensor weight);",
    host="""
torch::Tensor run(torch::Tensor x, torch::Tensor weight) {
    int vectors = x.size(0), rows = weight.size(0), words = x.size(1) / 4;
    auto x_scale = torch::arange(1, vectors + 1, torch::kFloat32);
    auto weight_scale = torch::arange(1, rows + 1, torch::kFloat32) / 64;
    auto y = torch::empty({vectors, rows}, torch::kFloat32);
    multiply<<<vectors, rows>>>((const int*)x.data_ptr<int8_t>(), x_scale.data_ptr<float>(),
                                (const int*)weight.data_ptr<int8_t>(), weight_scale.data_ptr<float>(),
                                y.data_ptr<float>(), rows, words);
    return y;
}
""",
    calls=lambda: [
        Call(
            f"with {vectors} vector{'s' if vectors > 1 else ''}, {rows} rows and {columns} columns",
            (_bytes(vectors, columns, 37), _bytes(rows, columns, 53)),
        )
        for vectors, rows, columns in ((1, 3, 4), (3, 5, 24))
    ],
    expected=lambda x, weight: (
        (x.double() @ weight.double().T)
        * torch.arange(1.0, x.shape[0] + 1)[:, None]
        * torch.arange(1.0, weight.shape[0] + 1)
        / 64
    ).float(),
    slips=(
        (r"sum=__dp4a\(.*,0\);", "The third argument is what the products are added to: `sum`."),
        (r"sum\+=?__dp4a\(.*,sum\)|sum=sum\+__dp4a\(.*,sum\)", "`__dp4a` adds to its third argument already."),
        (
            r"sum=(sum\+)?x\[[^\]]*\]\*weight",
            "That multiplies whole words as one number. `__dp4a` multiplies their bytes.",
        ),
        (r"__dp4a\(x\[w\]", "Vector n begins n * `words` words after the first one."),
        (r"weight\[w\]", "Row r begins r * `words` words after the first one."),
        (r"x\[n\*words\*4|weight\[r\*words\*4", "The pointers are of words here: a row has `words` of them."),
        (r"x_scale\[r\]|weight_scale\[n\]", "Vector n has its scale in `x_scale[n]`, row r in `weight_scale[r]`."),
        (r"=sum;", "The sum of the integers is exact, but without its two scales."),
        (r"^(?!.*(____|x_scale\[n\]))", "The scale of the vector is missing."),
        (r"^(?!.*(____|weight_scale\[r\]))", "The scale of the row is missing."),
    ),
    right="Four products in one instruction, and two scales for a whole sum.",
)

BLANKS = {
    "four_bits": FOUR_BITS,
    "packed_word": PACKED_WORD,
    "nibbles": NIBBLES,
    "bits_as_float": BITS_AS_FLOAT,
    "four_bytes": FOUR_BYTES,
}
