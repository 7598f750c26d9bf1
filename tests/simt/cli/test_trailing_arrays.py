"""Arrays at the end of structs that have more elements in memory than in their type."""

from tests.simt.cli.sources import CHECK

FLEXIBLE = (
    CHECK
    + r"""
struct Row { char tag; int n; double values[]; };
typedef struct { int n; char tag; float values[]; } Tail;
class Sum {
 public:
  int n;
  __host__ __device__ int get(int i) const { return values[i]; }
  int values[];
};
struct Derived : Row {};
__global__ void fill(Row* row, Tail* tail, Sum* sum, Derived* derived) {
  extern __shared__ float s[];
  int i = threadIdx.x;
  Row head;
  head.n = row->n;
  s[i] = i;
  if (i < head.n) row->values[i] = s[i];
  if (i < tail->n) tail->values[i] = i;
  if (i < sum->n) sum->values[i] = sum->n;
  if (i < 2) derived->values[i] = 1;
}
int main() {
  Row* row; Tail* tail; Sum* sum; Derived* derived;
  CHECK(cudaMallocManaged(&row, sizeof(Row) + 80)); CHECK(cudaMallocManaged(&tail, sizeof(Tail) + 40));
  CHECK(cudaMallocManaged(&sum, sizeof(Sum) + 40)); CHECK(cudaMallocManaged(&derived, sizeof(Derived) + 16));
  row->n = tail->n = sum->n = 10;
  fill<<<1, 32, 128>>>(row, tail, sum, derived);
  CHECK(cudaDeviceSynchronize());
  printf("%g %g %d\n", row->values[9], tail->values[9], sum->get(9));
  CHECK(cudaFree(row)); CHECK(cudaFree(tail)); CHECK(cudaFree(sum)); CHECK(cudaFree(derived));
}
"""
)


def test_types_with_an_array_without_length(simt):
    """Does a checked build accept them as kernel arguments and as local variables?"""
    done = simt("check", "a.cu", files={"a.cu": FLEXIBLE})
    assert (done.stdout, done.returncode) == ("9 9 10\n", 0), done.stderr
