// title: Update of an instantiated graph: new parameters of a node, then a whole captured graph, and a child graph
// features: graphs, streams, lambdas

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include <cuda_runtime.h>

namespace {

void check(cudaError_t code, int line) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s (%s)\n", line, cudaGetErrorName(code), cudaGetErrorString(code));
  std::exit(1);
}
#define CHECK(call) check((call), __LINE__)

__global__ void axpy(int a, const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

__global__ void negate(int* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = -y[i];
}

constexpr int kCount = 1000;

struct Buffers {
  int *x = nullptr, *y = nullptr;
  std::vector<int> host, model;
  Buffers() : host(kCount), model(kCount, 0) {
    std::iota(host.begin(), host.end(), 1);
    CHECK(cudaMalloc(&x, kCount * sizeof(int)));
    CHECK(cudaMalloc(&y, kCount * sizeof(int)));
    CHECK(cudaMemcpy(x, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(y, 0, kCount * sizeof(int)));
  }
  ~Buffers() {
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
  }
  bool same(const char* what) {
    std::vector<int> got(kCount);
    CHECK(cudaMemcpy(got.data(), y, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    bool equal = got == model;
    std::printf("%-28s y[999] = %d%s\n", what, got.back(), equal ? "" : "  wrong");
    return equal;
  }
  void modelAxpy(int a) {
    for (int i = 0; i < kCount; i++) model[i] += a * (i + 1);
  }
};

cudaGraph_t capture(cudaStream_t stream, const std::function<void()>& work) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

}  // namespace

int main() {
  Buffers b;
  bool ok = true;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));

  // 1. a kernel node whose factor changes between the launches
  cudaGraph_t graph;
  cudaGraphNode_t node;
  CHECK(cudaGraphCreate(&graph, 0));
  int a = 2, n = kCount;
  void* args[] = {&a, &b.x, &b.y, &n};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(axpy);
  params.gridDim = dim3((kCount + 127) / 128);
  params.blockDim = dim3(128);
  params.kernelParams = args;
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int factor : {2, 5, -3}) {
    a = factor;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    b.modelAxpy(factor);
    ok = b.same("node with new parameters:") && ok;
  }
  CHECK(cudaGraphExecDestroy(exec));

  // 2. a captured graph of the same shape replaces the instantiated one
  auto work = [&](int factor) {
    return [&b, stream, factor] {
      axpy<<<(kCount + 127) / 128, 128, 0, stream>>>(factor, b.x, b.y, kCount);
      negate<<<1, 256, 0, stream>>>(b.y, kCount);
    };
  };
  cudaGraph_t first = capture(stream, work(7));
  CHECK(cudaGraphInstantiate(&exec, first, nullptr, nullptr, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  cudaGraph_t second = capture(stream, work(11));
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, second, &info));
  ok = ok && info.result == cudaGraphExecUpdateSuccess;
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int factor : {7, 11}) {
    b.modelAxpy(factor);
    for (int& v : b.model) v = -v;
  }
  ok = b.same("graph updated as a whole:") && ok;
  CHECK(cudaGraphExecDestroy(exec));

  // 3. both graphs as children of a third one, one after the other
  cudaGraph_t parent;
  cudaGraphNode_t child[2];
  CHECK(cudaGraphCreate(&parent, 0));
  CHECK(cudaGraphAddChildGraphNode(&child[0], parent, nullptr, 0, second));
  CHECK(cudaGraphAddChildGraphNode(&child[1], parent, &child[0], 1, first));
  CHECK(cudaGraphInstantiate(&exec, parent, nullptr, nullptr, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int factor : {11, 7}) {
    b.modelAxpy(factor);
    for (int& v : b.model) v = -v;
  }
  ok = b.same("two child graphs:") && ok;

  CHECK(cudaGraphExecDestroy(exec));
  for (cudaGraph_t g : {graph, first, second, parent}) CHECK(cudaGraphDestroy(g));
  CHECK(cudaStreamDestroy(stream));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
