"""Programs that call cub's device-wide functions and thrust in a wrong way, with the messages, and with streams.

Sound ones are in the corpus.
"""

import pytest

from tests.simt.cli.sources import CHECK, line_of

SUM = (
    CHECK
    + r"""
#include <cub/cub.cuh>
int main(int argc, char** argv) {
  const int n = 100, how = atoi(argv[1]);
  float *in, *out, host[n] = {}, *result = host;
  CHECK(cudaMalloc(&in, n * sizeof(float)));
  CHECK(cudaMalloc(&out, sizeof(float)));
  if (how != 2) CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  void* temp = nullptr;
  size_t bytes = 0;
  CHECK(cub::DeviceReduce::Sum(temp, bytes, in, out, n));
  CHECK(cudaMalloc(&temp, bytes));
  if (how == 1) bytes /= 2;
  if (how == 3) bytes += 4096;
  if (how == 5) result = out;
  cudaError_t error = cub::DeviceReduce::Sum(temp, bytes, how == 4 ? host : in, result == out ? in + n : out,  // call
                                             how == 0 ? n + 1 : n);
  printf("%s\n", cudaGetErrorString(error));
  CHECK(cudaFree(in)); CHECK(cudaFree(out)); CHECK(cudaFree(temp));
}
"""
)
WRONG = {
    0: ("out_of_bounds", "The call reads element 100 of `d_in`, which has 100 elements: 1 element past its end. "
        "Check the number of items and the size of the array."),
    2: ("uninitialized", "The call reads element 0 of `d_in`, which was never written."),
    4: ("illegal_address", "The call reads through `d_in`, which points to host memory."),
    5: ("out_of_bounds", "The call writes element 100 of `d_"),
}  # fmt: skip


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_argument_is_reported_at_the_call(simt, how):
    """Does a check name the argument, the function and the line of the call?"""
    check, message = WRONG[how]
    done = simt("check", "a.cu", str(how), files={"a.cu": SUM})
    start = f"{check}: a.cu, line {line_of(SUM, '// call')}, kernel cub::DeviceReduce::Sum: {message}"
    assert start in done.stderr and done.returncode == 1


@pytest.mark.parametrize("how", [1, 3])
def test_temporary_storage_that_is_too_small_is_an_error(simt, how):
    """Does the call return an error for fewer bytes than it needs, and for more than were allocated?"""
    done = simt("run", "a.cu", str(how), files={"a.cu": SUM})
    assert done.stdout == "invalid argument\n"


VECTORS = (
    CHECK
    + r"""
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
struct Pick {
  const int* table;
  __device__ int operator()(int i) const {
    return table[i];  // functor
  }
};
int main(int argc, char** argv) {
  const int how = atoi(argv[1]);
  thrust::device_vector<int> a(10, 2), b(5);
  int* raw;
  CHECK(cudaMalloc(&raw, 10 * sizeof(int)));
  thrust::device_ptr<int> unwritten(raw);
  try {
    if (how == 0) thrust::transform(a.begin(), a.end(), b.begin(), thrust::negate<int>());  // transform
    if (how == 1) printf("%d\n", thrust::reduce(unwritten, unwritten + 10));  // reduce
    if (how == 2) thrust::sort(thrust::device, raw, raw + 11);  // sort
    if (how == 3) thrust::transform(a.begin(), a.end(), a.begin(), Pick{thrust::raw_pointer_cast(b.data()) + 3});
    if (how == 4) printf("%d\n", (int)b[5000]);
    if (how == 5) {
      thrust::fill(b.begin(), b.end(), 1 << 30);
      printf("%d\n", thrust::reduce(b.begin(), b.end()));  // sum
    }
  } catch (const thrust::system_error& error) {
    printf("caught: %s\n", error.what());
  }
  CHECK(cudaFree(raw));
}
"""
)


@pytest.mark.parametrize(
    "how, place, message",
    [
        (0, "// transform", "kernel thrust::transform: The call writes element 5 of `result`, which has 5 elements"),
        (1, "// reduce", "kernel thrust::reduce: The call reads element 0 of `first`, which was never written"),
        (2, "// sort", "kernel thrust::sort: The call reads element 10 of `first`, which has 10 elements"),
        (5, "// sum", "kernel thrust::reduce: The addition in this call overflows its type, `int`"),
        (3, "// functor", "kernel thrust::transform: The call reads element 5 of a tensor"),
    ],
)
def test_wrong_uses_of_thrust_are_reported(simt, how, place, message):
    """Is an access by the library reported at the call, and one by the program's functor in the functor?"""
    done = simt("check", "a.cu", str(how), files={"a.cu": VECTORS})
    assert f"a.cu, line {line_of(VECTORS, place)}, {message}" in done.stderr and done.returncode == 1


def test_an_element_outside_of_a_vector_throws(simt):
    """Does the host's access past a vector's end throw thrust's exception with the reason?"""
    done = simt("run", "a.cu", "4", files={"a.cu": VECTORS})
    assert done.stdout.startswith("caught: ")


CAPTURED = (
    CHECK
    + r"""
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/sort.h>
int main() {
  thrust::device_vector<int> x(4), sum(1);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  void* temp = nullptr;
  size_t bytes;
  int *in = thrust::raw_pointer_cast(x.data()), *out = thrust::raw_pointer_cast(sum.data());
  CHECK(cub::DeviceReduce::Sum(temp, bytes, in, out, 4));
  CHECK(cudaMalloc(&temp, bytes));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cub::DeviceReduce::Sum(temp, bytes, in, out, 4, stream));
  CHECK(cub::DeviceScan::InclusiveSum(temp, bytes, in, in, 4, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  printf("%d ", (int)sum[0]);
  for (int pass = 0; pass < 2; ++pass) {
    x = std::vector<int>{1, 2, 3, 4 + pass};
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("%d %d ", (int)sum[0], (int)x[3]);
  }
  thrust::sort(thrust::cuda::par.on(stream), x.begin(), x.end(), thrust::greater<int>());
  printf("%d\n", (int)x.front());
  CHECK(cudaGraphExecDestroy(exec)); CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream)); CHECK(cudaFree(temp));
}
"""
)


@pytest.mark.parametrize("command", ["run", "check", "count"])
def test_a_stream_orders_the_calls_and_a_capture_keeps_them(simt, command):
    """Does a captured call run at each launch of the graph, not at the capture?"""
    done = simt(command, "a.cu", files={"a.cu": CAPTURED})
    assert done.stdout == "0 10 10 11 11 11\n", done.stderr
