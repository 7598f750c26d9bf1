"""simt/wmma.h against matrix products in float64, and against where an H200 keeps a fragment's elements."""

from __future__ import annotations

import itertools
import zlib

import pytest
import torch

from tests.simt.kernels_of_expressions import DEVICE, ON_GPU, load

# name: (type in CUDA, tensor type, elements of matrix_a, matrix_b) by shape
_TYPES = {
    "half": ("__half", "__half", torch.float16),
    "bfloat16": ("__nv_bfloat16", "__nv_bfloat16", torch.bfloat16),
    "tf32": ("wmma::precision::tf32", "float", torch.float32),
    "double": ("double", "double", torch.float64),
    "s8": ("signed char", "signed char", torch.int8),
    "u8": ("unsigned char", "unsigned char", torch.uint8),
}
_WIDE = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
_SHAPES = {"half": _WIDE, "bfloat16": _WIDE, "tf32": [(16, 16, 8)], "double": [(8, 8, 4)], "s8": _WIDE, "u8": _WIDE}
_SUMS = {
    "half": ["float", "__half"],
    "bfloat16": ["float"],
    "tf32": ["float"],
    "double": ["double"],
    "s8": ["int"],
    "u8": ["int"],
}
_TORCH = {"float": torch.float32, "__half": torch.float16, "double": torch.float64, "int": torch.int32}
# CRC-32 of the bits of test_bits_are_an_h200_s: what an H200 gave with CUDA 13.0 on 2026-11-21.
_BITS = {
    "half-16x16x16-float": 0x6834B98A, "half-16x16x16-__half": 0xF2F68FBC, "half-32x8x16-float": 0x377FE570,
    "half-32x8x16-__half": 0x2EA21F73, "half-8x32x16-float": 0x9CD24C5C, "half-8x32x16-__half": 0x7DE3AF4D,
    "bfloat16-16x16x16-float": 0x7E5B2FBD, "bfloat16-32x8x16-float": 0xAFF8CA34, "bfloat16-8x32x16-float": 0x1AE4311B,
    "tf32-16x16x8-float": 0xC77795C1, "double-8x8x4-double": 0x62A5F353,
}  # fmt: skip
PRODUCTS = [(kind, shape, total) for kind in _TYPES for shape in _SHAPES[kind] for total in _SUMS[kind]]


def _name(product: tuple[str, tuple[int, int, int], str]) -> str:
    kind, shape, total = product
    return f"{kind}-{'x'.join(map(str, shape))}-{total}"


_SOURCE = (
    """
#include <mma.h>
using namespace nvcuda;

// Fragments of any kind: one warp, one product, all layouts; leading dimensions leave a gap.
template <int M, int N, int K, class T, class S, class C, class LayoutA, class LayoutB>
__global__ void product(const S* a, int lda, const S* b, int ldb, const C* c, C* d, int ldc, bool by_rows) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, C> fc, fd;
  wmma::load_matrix_sync(fa, a, lda);
  wmma::load_matrix_sync(fb, b, ldb);
  wmma::load_matrix_sync(fc, c, ldc, by_rows ? wmma::mem_row_major : wmma::mem_col_major);
  wmma::mma_sync(fd, fa, fb, fc);
  wmma::store_matrix_sync(d, fd, ldc, by_rows ? wmma::mem_row_major : wmma::mem_col_major);
}
template <int M, int N, int K, class T, class S, class C>
void launch(int a_rows, int b_rows, int c_rows, torch::Tensor a, torch::Tensor b, torch::Tensor c, torch::Tensor d) {
  const S *pa = POINTER(S, a), *pb = POINTER(S, b);
  C *pc = POINTER(C, c), *pd = POINTER(C, d);
  int la = a.size(1), lb = b.size(1), lc = c.size(1);
  if (a_rows && b_rows) product<M, N, K, T, S, C, wmma::row_major, wmma::row_major><<<1, 32>>>(pa, la, pb, lb, pc, """
    """pd, lc, c_rows);
  if (a_rows && !b_rows) product<M, N, K, T, S, C, wmma::row_major, wmma::col_major><<<1, 32>>>(pa, la, pb, lb, pc, """
    """pd, lc, c_rows);
  if (!a_rows && b_rows) product<M, N, K, T, S, C, wmma::col_major, wmma::row_major><<<1, 32>>>(pa, la, pb, lb, pc, """
    """pd, lc, c_rows);
  if (!a_rows && !b_rows) product<M, N, K, T, S, C, wmma::col_major, wmma::col_major><<<1, 32>>>(pa, la, pb, lb, pc, """
    """pd, lc, c_rows);
}
void multiply(int which, int a_rows, int b_rows, int c_rows, torch::Tensor a, torch::Tensor b, torch::Tensor c, """
    """torch::Tensor d) {
PRODUCTS
}

// Which element of the matrix each lane holds in each x[i]: the matrix holds its own indices.
template <class F, class S> __device__ void tell(const F& f, S* out) {
  for (int i = 0; i < f.num_elements; ++i) out[threadIdx.x * 16 + i] = f.x[i];
}
template <int M, int N, int K, class T, class S>
__global__ void operands(const S* rows, S* out, int lda, int ldb) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::row_major> b;
  wmma::load_matrix_sync(a, rows, lda);
  wmma::load_matrix_sync(b, rows, ldb);
  tell(a, out);
  tell(b, out + 512);
}
template <int M, int N, int K, class C>
__global__ void results(const C* rows, C* out, int ldc) {
  wmma::fragment<wmma::accumulator, M, N, K, C> c;
  wmma::load_matrix_sync(c, rows, ldc, wmma::mem_row_major);
  tell(c, out);
}
std::vector<int64_t> places(int which, torch::Tensor rows, torch::Tensor out) {
OPERANDS
  return {};
}
int64_t result_places(int which, torch::Tensor rows, torch::Tensor out) {
RESULTS
  return 0;
}

__global__ void scaled(float* c, float factor) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  wmma::load_matrix_sync(f, c, 16, wmma::mem_row_major);
  for (int i = 0; i < f.num_elements; ++i) f.x[i] = fmaxf(factor * f.x[i] + 1.0f, 0.0f);
  wmma::store_matrix_sync(c, f, 16, wmma::mem_row_major);
}
void scale(torch::Tensor c, double factor) { scaled<<<1, 32>>>(c.data_ptr<float>(), factor); }

__global__ void rounded(const float* x, float* out, int n) {
  for (int i = threadIdx.x; i < n; i += 32) out[i] = wmma::__float_to_tf32(x[i]);
}
void to_tf32(torch::Tensor x, torch::Tensor out) { """
    """rounded<<<1, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel()); }

__global__ void saturated(const signed char* a, const int* c, int* d, bool stop) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> f;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::fill_fragment(fb, (signed char)1);
  wmma::load_matrix_sync(f, c, 16, wmma::mem_row_major);
  wmma::mma_sync(f, fa, fb, f, stop);
  wmma::store_matrix_sync(d, f, 16, wmma::mem_row_major);
}
void saturate(torch::Tensor a, torch::Tensor c, torch::Tensor d, bool stop) {
  saturated<<<1, 32>>>(POINTER(signed char, a), c.data_ptr<int>(), d.data_ptr<int>(), stop);
}
"""
)


def _source() -> str:
    products = operands = results = ""
    for i, (kind, (m, n, k), total) in enumerate(PRODUCTS):
        cuda, stored, _ = _TYPES[kind]
        shape = f"{m}, {n}, {k}"
        products += (
            f"  if (which == {i}) launch<{shape}, {cuda}, {stored}, {total}>(a_rows, b_rows, c_rows, a, b, c, d);\n"
        )
        operands += (
            f"  if (which == {i}) {{\n"
            f"    operands<{shape}, {cuda}, {stored}><<<1, 32>>>(POINTER({stored}, rows), POINTER({stored}, out), "
            f"{max(k, 16)}, {max(n, 16)});\n"
            f"    return {{wmma::fragment<wmma::matrix_a, {shape}, {cuda}, wmma::row_major>::num_elements, "
            f"wmma::fragment<wmma::matrix_b, {shape}, {cuda}, wmma::row_major>::num_elements}}; }}\n"
        )
        results += (
            f"  if (which == {i}) {{ results<{shape}, {total}><<<1, 32>>>(POINTER({total}, rows), "
            f"POINTER({total}, out), {max(n, 16)});\n"
            f"    return wmma::fragment<wmma::accumulator, {shape}, {total}>::num_elements; }}\n"
        )
    return _SOURCE.replace("PRODUCTS", products).replace("OPERANDS", operands).replace("RESULTS", results)


@pytest.fixture(scope="module")
def kernels():
    return load(
        _source(),
        [
            "void multiply(int which, int a_rows, int b_rows, int c_rows, torch::Tensor a, torch::Tensor b, "
            "torch::Tensor c, torch::Tensor d)",
            "std::vector<int64_t> places(int which, torch::Tensor rows, torch::Tensor out)",
            "int64_t result_places(int which, torch::Tensor rows, torch::Tensor out)",
            "void scale(torch::Tensor c, double factor)",
            "void to_tf32(torch::Tensor x, torch::Tensor out)",
            "void saturate(torch::Tensor a, torch::Tensor c, torch::Tensor d, bool stop)",
        ],
    )


def _random(rows: int, columns: int, kind: str, generator) -> torch.Tensor:
    dtype = _TYPES[kind][2]
    if kind in ("s8", "u8"):
        low, high = (-128, 128) if kind == "s8" else (0, 256)
        return torch.randint(low, high, (rows, columns), generator=generator).to(dtype)
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64).to(dtype)
    return _tf32(x) if kind == "tf32" else x


def _tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounded to 10 bits after the point, halves away from zero."""
    step = torch.ldexp(torch.ones_like(x), torch.frexp(x).exponent - 11)
    return (torch.sign(x) * torch.floor(x.abs() / step + 0.5) * step).to(torch.float32)


def _in_memory(x: torch.Tensor, by_rows: bool | int, gap: int) -> torch.Tensor:
    """The matrix with a longer leading dimension, at an address that is a multiple of 32."""
    x = x if by_rows else x.T
    whole = torch.full((x.shape[0], x.shape[1] + gap), 7).to(x.dtype)
    whole[:, : x.shape[1]] = x
    return whole.to(DEVICE).contiguous()


@pytest.mark.slow
@pytest.mark.parametrize("which", range(len(PRODUCTS)), ids=map(_name, PRODUCTS))
def test_products(kernels, which):
    """Is d = a·b + c to within the sum's own rounding, for every shape, type and layout?"""
    kind, (m, n, k), total = PRODUCTS[which]
    generator = torch.Generator().manual_seed(which)

    def pad(columns, gap):  # the leading dimension must stay a multiple of 16 bytes
        return gap + -columns % gap

    for a_rows, b_rows, c_rows in itertools.product((0, 1), repeat=3):
        a, b = _random(m, k, kind, generator), _random(k, n, kind, generator)
        c = torch.randint(-99, 99, (m, n), generator=generator).to(_TORCH[total]) / (1 if total == "int" else 8)
        c = c.to(_TORCH[total])
        gap_c = 16 // c.element_size()
        gap_ab = 16 // a.element_size()
        where = _in_memory(c, c_rows, pad(c.shape[1] if c_rows else c.shape[0], gap_c))
        got = torch.zeros_like(where)
        ma = _in_memory(a, a_rows, pad(a.shape[1] if a_rows else a.shape[0], gap_ab))
        mb = _in_memory(b, b_rows, pad(b.shape[1] if b_rows else b.shape[0], gap_ab))
        kernels.multiply(which, a_rows, b_rows, c_rows, ma, mb, where, got)
        got = got.cpu()[:, : (n if c_rows else m)]
        got = got if c_rows else got.T
        exact = a.double() @ b.double() + c.double()
        size = a.double().abs() @ b.double().abs() + c.double().abs()
        if total == "int":
            assert torch.equal(got.double(), exact)
            continue
        eps = {"float": 2.0**-23, "__half": 2.0**-10, "double": 2.0**-52}[total]
        worst = ((got.double() - exact).abs() / size).max().item()
        assert worst <= eps * (1 if total == "__half" else 4), (a_rows, b_rows, c_rows, worst)
        assert worst > 0 or kind == "double", "the sum can't have been exact"


@pytest.mark.slow
@pytest.mark.parametrize("name", _BITS)
def test_bits_are_an_h200_s(kernels, name):
    """Is each sum rounded as an H200's tensor cores round it?"""
    if ON_GPU and "H200" not in torch.cuda.get_device_name():
        pytest.skip("another GPU may round in another way")
    which = [_name(p) for p in PRODUCTS].index(name)
    kind, (m, n, k), total = PRODUCTS[which]
    generator = torch.Generator().manual_seed(100 + which)
    a, b = _random(m, k, kind, generator), _random(k, n, kind, generator)
    c = (torch.randint(-99, 99, (m, n), generator=generator) / 8).to(_TORCH[total])
    where = _in_memory(c, True, 32 - n)
    got = torch.zeros_like(where)
    kernels.multiply(which, 1, 1, 1, _in_memory(a, True, 32 - k), _in_memory(b, True, 32 - n), where, got)
    assert zlib.crc32(got.cpu()[:, :n].contiguous().numpy().tobytes()) == _BITS[name]


@pytest.mark.slow
def test_infinities_and_nans(kernels):
    """Do they come out as in float arithmetic, in their own row or column alone?"""
    a, b, c = torch.zeros(16, 32).half(), torch.eye(16, 32).half(), torch.zeros(16, 32)
    a[:, :16] = torch.arange(256.0).view(16, 16)
    a[3, 5], a[4, 0], c[7, 7] = float("inf"), float("nan"), float("-inf")
    got = torch.zeros(16, 32, device=DEVICE)
    which = [_name(p) for p in PRODUCTS].index("half-16x16x16-float")
    kernels.multiply(which, 1, 1, 1, a.to(DEVICE), b.to(DEVICE), c.to(DEVICE), got)
    got = got.cpu()[:, :16]
    expected = a.float()[:, :16] @ b.float()[:, :16] + c[:, :16]
    assert torch.equal(got.isnan(), expected.isnan()) and got.isnan().sum() == 15 + 16 and got[7, 7] == float("-inf")
    assert torch.equal(got[~got.isnan()], expected[~expected.isnan()])


def _first(lane, i, wide, k):
    """PTX's operand of 16 rows: row, column in k. wide: neighbours in k that a lane holds."""
    group, inside, parts = lane // 4, lane % 4, k // (4 * wide)
    register = i // wide
    return 8 * (register % 2) + group + 16 * (register // (2 * parts)), wide * inside + i % wide + 4 * wide * (
        register // 2 % parts
    )


def _second(lane, i, wide, k):
    group, inside, parts = lane // 4, lane % 4, k // (4 * wide)
    register = i // wide
    return wide * inside + i % wide + 4 * wide * (register % parts), group + 8 * (register // parts)


@pytest.mark.parametrize("which", range(len(PRODUCTS)), ids=map(_name, PRODUCTS))
def test_places_of_elements(kernels, which):
    """Does each lane hold as many elements as CUDA's headers say, and those that it holds on an H200?"""
    kind, (m, n, k), total = PRODUCTS[which]
    cuda_count = {"half": (16, 16)}.get(kind, (m * k // 32, k * n // 32))
    wide = {"half": 2, "bfloat16": 2, "s8": 4, "u8": 4}.get(kind, 1)
    # 8-bit elements can't hold the index: high and low digits come in two loads.
    digits = [0, 1] if kind in ("s8", "u8") else [None]
    found = []
    for digit in digits:
        index = torch.arange(1024)
        held = index if digit is None else index // 32 if digit else index % 32
        rows = (
            held.to(_TYPES[kind][2]).to(DEVICE)
            if kind != "bfloat16"
            else index.to(DEVICE).to(torch.int16).view(torch.bfloat16)
        )
        out = torch.zeros(1024, dtype=rows.dtype, device=DEVICE)
        assert tuple(kernels.places(which, rows, out)) == cuda_count
        out = out.view(torch.int16) if kind == "bfloat16" else out
        found.append(out.long().cpu().view(2, 32, 16))
    found = found[0] if len(found) == 1 else found[0] + 32 * found[1]
    for lane in range(32):
        for i in range(cuda_count[0]):
            at = i % (m * k // 32)
            row, column = tuple(reversed(_second(lane, at, wide, k))) if m == 8 else _first(lane, at, wide, k)
            assert found[0, lane, i] == row * max(k, 16) + column, ("a", lane, i)
        for i in range(cuda_count[1]):
            at = i % (k * n // 32)
            row, column = tuple(reversed(_first(lane, at, wide, k))) if n == 32 else _second(lane, at, wide, k)
            assert found[1, lane, i] == row * max(n, 16) + column, ("b", lane, i)
    rows = torch.arange(1024).to(_TORCH[total]).to(DEVICE)
    out = torch.zeros(512, dtype=rows.dtype, device=DEVICE)
    count = m * n // 32
    assert kernels.result_places(which, rows, out) == count
    found = out.long().cpu().view(32, 16)
    for lane in range(32):
        for i in range(count):
            row, column = lane // 4 + 8 * (i // 2 % 2), lane % 4 * 2 + i % 2
            row, column = (row + 16 * (i // 4), column) if n == 8 or n == 32 else (row, column + 8 * (i // 4))
            row, column = (column, row) if n == 32 else (row, column)
            assert found[lane, i] == row * max(n, 16) + column, ("c", lane, i)


def test_an_epilogue_touches_every_element_once(kernels):
    """Does a loop over x[] reach all 256 results, each once?"""
    c = torch.randn(16, 16, generator=torch.Generator().manual_seed(3))
    got = c.to(DEVICE).clone()
    kernels.scale(got, -2.0)
    assert torch.equal(got.cpu(), (-2 * c + 1).relu())


def test_float_to_tf32(kernels):
    """Is the nearest tf32 taken, with halves away from zero, and are inf and NaN kept?"""
    bits = torch.randint(-(2**31), 2**31, (4000,), generator=torch.Generator().manual_seed(5)).to(torch.int32)
    special = torch.tensor([0, -(2**31), 0x7F800000, 0x7F7FFFFF, 0x7FC00000])
    bits = torch.cat([bits, bits & ~0x1FFF | 0x1000, bits & ~0x1FFF | 0x0FFF, special]).to(torch.int32)
    x = bits.view(torch.float32)
    out = torch.zeros_like(x, device=DEVICE)
    kernels.to_tf32(x.to(DEVICE), out)
    out = out.cpu()
    finite = x.isfinite() & (x.abs() >= 2.0**-126) & (x.abs() < 3e38)
    assert finite.sum() > 10000
    assert torch.equal(out[finite], _tf32(x[finite].double()))
    assert torch.equal(out.isnan(), x.isnan())
    assert torch.equal(out[x.isinf()], x[x.isinf()])
    assert out[-2].isinf(), "the largest float rounds up"


def test_unconverted_operands_are_cut(kernels):
    """Does a float that nobody rounded to tf32 lose its last 13 bits?"""
    which = next(i for i, p in enumerate(PRODUCTS) if p[0] == "tf32")
    generator = torch.Generator().manual_seed(11)
    a, b = torch.randn(16, 8, generator=generator), torch.eye(8, 16)
    c = torch.zeros(16, 16, device=DEVICE)
    got = torch.zeros(16, 16, device=DEVICE)
    kernels.multiply(which, 1, 1, 1, a.to(DEVICE), b.to(DEVICE), c, got)
    cut = (a.view(torch.int32) & ~0x1FFF).view(torch.float32)
    assert torch.equal(got.cpu()[:, :8], cut) and not torch.equal(cut, _tf32(a))


@pytest.mark.parametrize("stop", [False, True])
def test_integers_wrap_or_stop(kernels, stop):
    """Do int sums wrap around, or stop at the largest int where the program says so?"""
    a = torch.full((16, 16), 100, dtype=torch.int8)
    c = torch.full((16, 16), 2**31 - 100, dtype=torch.int32)
    got = torch.zeros(16, 16, dtype=torch.int32, device=DEVICE)
    kernels.saturate(a.to(DEVICE), c.to(DEVICE), got, stop)
    expected = 2**31 - 1 if stop else 2**31 - 100 + 1600 - 2**32
    assert torch.equal(got.cpu(), torch.full((16, 16), expected, dtype=torch.int32))
