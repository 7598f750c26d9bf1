"""Kernel parameters that are objects of classes with constructors and destructors."""

import pytest

from tests.simt.cli.sources import CHECK

# A copy of an Owner allocates memory of its own, as the strings of NVIDIA's article on unified memory do.
OWNER = (
    CHECK
    + r"""
int copies = 0, ends = 0;
struct Owner {
  int* p;
  int n, tag = 7;
  Owner(int n) : n(n) {
    CHECK(cudaMallocManaged(&p, n * sizeof(int)));
    for (int i = 0; i < n; ++i) p[i] = i;
  }
  Owner(const Owner& other) : Owner(other.n) { copies++; }
  ~Owner() { ends++; CHECK(cudaFree(p)); }
};
struct __align__(64) Wide {
  int x[16];
  ~Wide() {}
};
__global__ void one(Owner a, int* out, char more) {
  a.tag += threadIdx.x + more;
  __syncthreads();
  out[threadIdx.x] = a.p[threadIdx.x] + a.tag;
}
__global__ void other(Owner a, int* out) { out[threadIdx.x] = a.p[threadIdx.x]; }
__global__ void other(int a, int* out) { out[threadIdx.x] = a; }
template <class T>
__global__ void deduced(T a, int* out) { out[threadIdx.x] = a.p[threadIdx.x] + a.tag; }
template <int N, class T>
__global__ void partly(T a, int* out) { out[threadIdx.x] = a.p[threadIdx.x] + N; }
__global__ void aligned(Wide w, int* out) { out[threadIdx.x] = (int)((size_t)&w % 64) + w.x[3]; }
#define RUN(kernel, ...) kernel<<<1, 64>>>(__VA_ARGS__)

int* out;
void show(const char* name) {
  CHECK(cudaDeviceSynchronize());
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += out[i];
  printf("%s %d %d %d\n", name, sum, copies, ends);
  copies = ends = 0;
}
int main() {
  CHECK(cudaMallocManaged(&out, 64 * sizeof(int)));
  {
    Owner a(64);
    one<<<1, 64>>>(a, out, 1); show("one");
    one<<<1, 64>>>(64, out, 1); show("converted");
    other<<<1, 64>>>(a, out); show("overloaded");
    deduced<<<1, 64>>>(a, out); show("deduced");
    deduced<Owner><<<1, 64>>>(a, out); show("given");
    partly<3><<<1, 64>>>(a, out); show("partly");
    RUN(one, a, out, 1); show("macro");
    RUN(deduced, a, out); show("deduced");
    char more = 1;
    void* arguments[] = {&a, &out, &more};
    CHECK(cudaLaunchKernel((void*)one, dim3(1), dim3(64), arguments, 0, 0)); show("pointer");
    cudaStream_t stream; cudaGraph_t graph; cudaGraphExec_t ready;
    Wide w;
    w.x[3] = 5;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    aligned<<<1, 64, 0, stream>>>(w, out);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphLaunch(ready, stream)); show("captured");
    CHECK(cudaGraphExecDestroy(ready)); CHECK(cudaGraphDestroy(graph)); CHECK(cudaStreamDestroy(stream));
  }
  CHECK(cudaFree(out));
}
"""
)
PRINTED = """one 4544 1 1
converted 4544 0 1
overloaded 2016 1 1
deduced 2464 1 1
given 2464 1 1
partly 2208 1 1
macro 4544 1 1
deduced 2464 1 1
pointer 4544 0 0
captured 320 0 0
"""


@pytest.mark.parametrize("command", ["run", "check", "count"])
def test_threads_construct_and_destroy_no_parameter(simt, command):
    """Does a launch copy an object once, on the host, and does each thread get its own copy of the bytes?"""
    done = simt(command, "a.cu", files={"a.cu": OWNER})
    assert (done.stdout, done.returncode) == (PRINTED, 0), done.stderr
