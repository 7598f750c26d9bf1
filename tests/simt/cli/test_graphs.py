"""CUDA graphs in programs: captured from streams, built node by node, updated and launched."""

import pytest

from tests.simt.cli.sources import CHECK

KERNELS = (
    CHECK
    + r"""
template <class T> __global__ void scale(T* p, int n, T f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= f;
}
__global__ void add(float* p, int n, float v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += v;
}
void CUDART_CB note(void* data) { ++*(int*)data; }
"""
)

CAPTURED = (
    KERNELS
    + r"""
int main() {
  const int n = 100;
  float h[n], *d;
  int notes = 0;
  cudaStream_t s, other;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCaptureStatus status;
  size_t count;
  for (int i = 0; i < n; ++i) h[i] = i;
  CHECK(cudaMalloc(&d, sizeof h)); CHECK(cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice));
  CHECK(cudaStreamCreate(&s)); CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreate(&fork)); CHECK(cudaEventCreate(&join));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  add<<<1, 128, 0, s>>>(d, n, 1.f);
  CHECK(cudaEventRecord(fork, s)); CHECK(cudaStreamWaitEvent(other, fork, 0));
  scale<<<1, 128, 0, other>>>(d, n, 2.f);
  CHECK(cudaEventRecord(join, other)); CHECK(cudaStreamWaitEvent(s, join, 0));
  void (*kernels[])(float*, int, float) = {add, scale<float>};
  for (int k = 0; k < 2; ++k) kernels[k]<<<1, 128, 0, s>>>(d, n, k + 2.f);
  CHECK(cudaMemcpyAsync(h, d, sizeof h, cudaMemcpyDeviceToHost, s));
  CHECK(cudaLaunchHostFunc(s, note, &notes));
  CHECK(cudaStreamIsCapturing(other, &status));
  CHECK(cudaStreamEndCapture(s, &graph));
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  printf("%d %zu %g %d\n", status, count, h[5], notes);
  CHECK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, s));
  CHECK(cudaStreamSynchronize(s));
  printf("%g %d\n", h[5], notes);
  add<<<1, 128, 0, other>>>(d, n, 1.f);  // captured no more
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
  printf("%g\n", h[5]);
  CHECK(cudaGraphExecDestroy(exec)); CHECK(cudaGraphDestroy(graph)); CHECK(cudaFree(d));
  CHECK(cudaStreamDestroy(s)); CHECK(cudaStreamDestroy(other));
  CHECK(cudaEventDestroy(fork)); CHECK(cudaEventDestroy(join));
}
"""
)


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_capture_records_and_a_launch_runs(simt, command):
    """Does a capture with a second stream run nothing, and does each launch of the graph run all of it, in order?"""
    done = simt(command, "a.cu", files={"a.cu": CAPTURED})
    value = 5.0
    for _ in range(3):
        value = ((value + 1) * 2 + 2) * 3
    assert (done.stdout, done.returncode) == (f"1 6 5 0\n{value:g} 3\n{value + 1:g}\n", 0), done.stderr


BUILT = (
    KERNELS
    + r"""
int main() {
  const int n = 100;
  float h[n], *d, v = 1, f = 3;
  int notes = 0, m = n;
  CHECK(cudaMalloc(&d, sizeof h));
  cudaGraph_t graph, changed, captured;
  cudaGraphExec_t exec;
  cudaGraphNode_t set, first, second, copy, host, only;
  cudaMemsetParams zeros = {};
  zeros.dst = d, zeros.value = 0, zeros.elementSize = 4, zeros.width = n, zeros.height = 1;
  void* add_arguments[] = {&d, &m, &v};
  void* scale_arguments[] = {&d, &m, &f};
  cudaKernelNodeParams adding = {};
  adding.func = reinterpret_cast<void*>(add);
  adding.gridDim = dim3(1), adding.blockDim = dim3(128), adding.kernelParams = add_arguments;
  cudaKernelNodeParams scaling = {(void*)scale<float>, dim3(1), dim3(128), 0, scale_arguments, NULL};
  cudaHostNodeParams noting = {note, &notes};
  CHECK(cudaGraphCreate(&graph, 0));
  // The nodes are added in another order than that of their dependencies.
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, h, d, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddKernelNode(&second, graph, NULL, 0, &scaling));
  CHECK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &zeros));
  CHECK(cudaGraphAddKernelNode(&first, graph, &set, 1, &adding));
  CHECK(cudaGraphAddDependencies(graph, &first, &second, 1));
  CHECK(cudaGraphAddDependencies(graph, &second, &copy, 1));
  CHECK(cudaGraphAddHostNode(&host, graph, &copy, 1, &noting));
  v = 100;  // the node has a copy of 1
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, 0));
  printf("%g %d\n", h[99], notes);
  v = 5;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, first, &adding));
  CHECK(cudaGraphLaunch(exec, 0));
  printf("%g %d\n", h[99], notes);
  f = 7;
  CHECK(cudaGraphKernelNodeSetParams(second, &scaling));
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, graph, &info));
  CHECK(cudaGraphLaunch(exec, 0));
  printf("%g %d\n", h[99], info.result);
  CHECK(cudaGraphCreate(&changed, 0)); CHECK(cudaGraphAddEmptyNode(&only, changed, NULL, 0));
  printf("%d ", cudaGraphExecUpdate(exec, changed, &info));
  CHECK(cudaGraphAddDependencies(graph, &copy, &first, 1));
  cudaGraphExec_t none;
  printf("%d ", cudaGraphInstantiate(&none, graph, 0));
  CHECK(cudaGraphExecDestroy(none));
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  printf("%d ", cudaStreamSynchronize(s));
  printf("%d ", cudaStreamEndCapture(s, &captured));
  printf("%d\n", cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
  CHECK(cudaGraphExecDestroy(exec)); CHECK(cudaGraphDestroy(changed)); CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(d)); CHECK(cudaStreamDestroy(s));
}
"""
)


@pytest.mark.parametrize("command", ["run", "check"])
def test_nodes_run_after_those_they_depend_on(simt, command):
    """Do nodes run in the order of their dependencies, with the parameters of the time when they were set, and are an
    update to other nodes, a circle, and a wait during a capture errors?

    (0 + 1) 3 = 3, (0 + 5) 3 = 15; the graph's own first node still adds 1: (0 + 1) 7 = 7.
    """
    done = simt(command, "a.cu", files={"a.cu": BUILT})
    assert done.stdout == "3 1\n15 2\n7 0\n910 1 900 901 900\n", done.stderr


NESTED = (
    KERNELS
    + r"""
int main() {
  float h[6] = {1, 2, 3, 4, 5, 6}, *d;
  int n = 6;
  float v = 10;
  CHECK(cudaMalloc(&d, sizeof h));
  cudaGraph_t outer, inner;
  cudaGraphNode_t in, child, out, node;
  cudaGraphExec_t exec;
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(h, 3 * sizeof(float), 3, 2);
  copy.dstPtr = make_cudaPitchedPtr(d, 3 * sizeof(float), 3, 2);
  copy.extent = make_cudaExtent(3 * sizeof(float), 2, 1);
  copy.kind = cudaMemcpyHostToDevice;
  void* arguments[] = {&d, &n, &v};
  cudaKernelNodeParams adding = {(void*)add, dim3(1), dim3(32), 0, arguments, NULL};
  CHECK(cudaGraphCreate(&outer, 0)); CHECK(cudaGraphCreate(&inner, 0));
  CHECK(cudaGraphAddKernelNode(&node, inner, NULL, 0, &adding));
  CHECK(cudaGraphAddMemcpyNode(&in, outer, NULL, 0, &copy));
  CHECK(cudaGraphAddChildGraphNode(&child, outer, &in, 1, inner));
  CHECK(cudaGraphDestroy(inner));  // the node has a copy
  CHECK(cudaGraphAddMemcpyNode1D(&out, outer, &child, 1, h, d, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphInstantiate(&exec, outer, 0));
  for (int i = 0; i < 2; ++i) CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  for (float one : h) printf("%g ", one);
  CHECK(cudaGraphExecDestroy(exec)); CHECK(cudaGraphDestroy(outer)); CHECK(cudaFree(d));
}
"""
)


def test_a_graph_in_a_graph_and_a_copy_of_rows(simt):
    """Does each launch copy the rows in, run the other graph, and copy out? Two launches add 10 twice."""
    done = simt("run", "a.cu", files={"a.cu": NESTED})
    assert done.stdout == "21 22 23 24 25 26 ", done.stderr
