"""PTX's integer instructions in programs, against C++ with wider integers."""

import pytest

from tests.simt.cli.sources import CHECK

# Kind and type of the result, the instruction, its arguments: of the 64-bit numbers a and b, or their 32 lower bits.
SINGLE = (
    ("l", "w", "mul.lo.u64 %0, %1, %2;", '"l"(a), "l"(b)'),
    ("l", "w", "mul.hi.s64 %0, %1, %2;", '"l"(a), "l"(b)'),
    ("r", "u", "mul.hi.u32 %0, %1, %2;", '"r"(p), "r"(q)'),
    ("l", "w", "mad.wide.s32 %0, %1, %2, %3;", '"r"(p), "r"(q), "l"(b)'),
    ("r", "u", "min.s32 %0, %1, %2;", '"r"(p), "r"(q)'),
    ("r", "u", "max.u32 %0, %1, %2;", '"r"(p), "r"(q)'),
    ("r", "u", "bfe.u32 %0, %1, %2, %3;", '"r"(p), "r"(k & 63), "r"(k >> 6 & 63)'),
    ("r", "u", "bfe.s32 %0, %1, %2, %3;", '"r"(p), "r"(k & 63), "r"(k >> 6 & 63)'),
    ("r", "u", "bfi.b32 %0, %1, %2, %3, %4;", '"r"(p), "r"(q), "r"(k & 63), "r"(k >> 6 & 63)'),
    ("r", "u", "prmt.b32 %0, %1, %2, %3;", '"r"(p), "r"(q), "r"(k & 0xffff)'),
    ("r", "u", "popc.b32 %0, %1;", '"r"(p)'),
    ("r", "u", "clz.b32 %0, %1;", '"r"(p)'),
    ("r", "u", "brev.b32 %0, %1;", '"r"(p)'),
    ("r", "u", "abs.s32 %0, %1;", '"r"(q)'),
)
INTEGERS = (
    CHECK
    + r"""
typedef unsigned u; typedef unsigned long long w; typedef unsigned __int128 x;
__global__ void products(const w* in, w* out) {
  const w a = in[2 * threadIdx.x], b = in[2 * threadIdx.x + 1];
  const u p = (u)a, q = (u)b, k = (u)(b >> 40);
  w* o = out + 24 * threadIdx.x;
  u lo, hi; w low, mid, high;
  const u p2 = (u)(a >> 32), q2 = (u)(b >> 32);
  asm("add.cc.u32 %0, %2, %4;\n\taddc.u32 %1, %3, %5;" : "=r"(lo), "=r"(hi) : "r"(p), "r"(p2), "r"(q), "r"(q2));
  o[0] = (w)hi << 32 | lo;
  asm("sub.cc.u32 %0, %2, %4;\n\tsubc.u32 %1, %3, %5;" : "=r"(lo), "=r"(hi) : "r"(p), "r"(p2), "r"(q), "r"(q2));
  o[1] = (w)hi << 32 | lo;
  asm("mad.lo.cc.u64 %0, %3, %4, %5;\n\tmadc.hi.cc.u64 %1, %3, %4, %5;\n\taddc.u64 %2, 0, 0;"
      : "=l"(low), "=l"(mid), "=l"(high) : "l"(a), "l"(b), "l"(~0ull));
  o[2] = low, o[3] = mid, o[4] = high;
  asm("sub.cc.u64 %0, %2, %3;\n\tsubc.cc.u64 %1, 0, 0;" : "=l"(low), "=l"(mid) : "l"(a), "l"(b));
  o[5] = low, o[6] = mid;
"""
    + "\n".join(
        f'  {{ {type_} r; asm("{text}" : "={kind}"(r) : {operands}); o[{7 + i}] = r; }}'
        for i, (kind, type_, text, operands) in enumerate(SINGLE)
    )
    + r"""
}
static u field(u p, int at, int n, bool sign) {  // bit by bit, as the PTX ISA defines it
  u r = 0, last = at + n - 1 < 31 ? at + n - 1 : 31, fill = sign && n ? p >> last & 1 : 0;
  for (int i = 0; i < 32; ++i) r |= (i < n && at + i < 32 ? p >> (at + i) & 1 : fill) << i;
  return r;
}
int main() {
  const int n = 64;
  w h[2 * n], got[24 * n], *in, *out, s = 88172645463325252ull; int wrong = 0;
  for (w& v : h) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; v = s; }
  h[0] = h[1] = ~0ull; h[2] = 0; h[3] = 1;
  CHECK(cudaMalloc(&in, sizeof h)); CHECK(cudaMalloc(&out, sizeof got));
  CHECK(cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(out, 0, sizeof got));
  products<<<1, n>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost)); CHECK(cudaFree(in)); CHECK(cudaFree(out));
  for (int t = 0; t < n; ++t) {
    const w a = h[2 * t], b = h[2 * t + 1], *o = got + 24 * t;
    const u p = (u)a, q = (u)b, k = (u)(b >> 40); const int at = k & 63, m = k >> 6 & 63;
    const x first = (x)(a * b) + ~0ull, second = ((x)a * b >> 64) + ~0ull + (w)(first >> 64);
    u put = q, moved = 0, reversed = 0;
    for (int i = 0; i < m && at + i < 32; ++i) put = (put & ~(1u << (at + i))) | (p >> i & 1) << (at + i);
    for (int i = 0; i < 4; ++i) {
      const u c = k >> 4 * i & 15, byte = ((w)q << 32 | p) >> 8 * (c & 7) & 255;
      moved |= (c & 8 ? byte & 128 ? 255u : 0u : byte) << 8 * i;
    }
    for (int i = 0; i < 32; ++i) reversed |= (p >> i & 1) << (31 - i);
    const w want[] = {a + b, a - b, (w)first, (w)second, (w)(second >> 64), a - b, a < b ? ~0ull : 0, a * b,
      (w)(((__int128)(long long)a * (long long)b) >> 64), (w)p * q >> 32, (w)((long long)(int)p * (int)q) + b,
      (int)p < (int)q ? p : q, p > q ? p : q, field(p, at, m, false), field(p, at, m, true), put, moved,
      (u)__builtin_popcount(p), p ? (u)__builtin_clz(p) : 32, reversed, (int)q < 0 ? 0u - q : q};
    for (int i = 0; i < 21; ++i) if (want[i] != o[i]) { printf("%d: %d %llx %llx\n", t, i, want[i], o[i]); wrong++; }
  }
  printf("%d wrong\n", wrong);
}
"""
)


@pytest.mark.parametrize("command", ["run", "check"])
def test_integer_instructions_give_what_wider_integers_give(simt, command):
    """Do products, carries over several words, bit fields and permutations follow the PTX ISA?"""
    done = simt(command, "a.cu", files={"a.cu": INTEGERS})
    assert (done.stdout, done.returncode) == ("0 wrong\n", 0), done.stdout + done.stderr
