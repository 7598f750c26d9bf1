// title: CUDA graph of explicit copy, memset, kernel and host nodes
// features: graphs, callbacks, pinned_memory

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <cuda_runtime.h>

using std::cerr;
using std::cout;
using std::endl;

#define checkCudaErrors(x)                                                              \
  if (cudaError_t status = (x); status != cudaSuccess) {                                \
    cerr << __FILE__ << ':' << __LINE__ << ' ' << cudaGetErrorString(status) << endl;   \
    exit(1);                                                                            \
  }

const size_t SIZE = 1 << 13;
const unsigned BLOCK = 128, MAX_BLOCKS = 16;

__global__ void reduce(float* in, double* out, size_t n, unsigned blocks) {
  __shared__ double tmp[BLOCK];
  double sum = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blocks * BLOCK) sum += in[i];
  tmp[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned s = BLOCK / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) tmp[threadIdx.x] += tmp[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tmp[0];
}

__global__ void reduceFinal(double* in, double* result, unsigned n) {
  double sum = 0;
  for (unsigned i = 0; i < n; i++) sum += in[i];
  result[0] += sum;
}

struct CallBackData {
  const char* name;
  double* value;
  int calls;
  std::vector<double> seen;
};

void CUDART_CB hostNode(void* data) {
  CallBackData* d = static_cast<CallBackData*>(data);
  d->calls++;
  d->seen.push_back(*d->value);
  *d->value = 0;
}

int main() {
  float *h_in, *d_in;
  double *d_partial, *d_result, h_result = 0;
  checkCudaErrors(cudaMallocHost(&h_in, SIZE * sizeof(float)));
  checkCudaErrors(cudaMalloc(&d_in, SIZE * sizeof(float)));
  checkCudaErrors(cudaMalloc(&d_partial, MAX_BLOCKS * sizeof(double)));
  checkCudaErrors(cudaMalloc(&d_result, sizeof(double)));
  for (size_t i = 0; i < SIZE; i++) h_in[i] = (float)((i * 2654435761u >> 8) & 255) / 256.0f;
  CallBackData data{"reduction", &h_result, 0, {}};

  cudaGraph_t graph;
  cudaGraphNode_t copyIn, clearPartial, clearResult, kernel, final, copyOut, host;
  std::vector<cudaGraphNode_t> before;
  checkCudaErrors(cudaGraphCreate(&graph, 0));

  cudaMemcpy3DParms in = {};
  in.srcPtr = make_cudaPitchedPtr(h_in, SIZE * sizeof(float), SIZE, 1);
  in.dstPtr = make_cudaPitchedPtr(d_in, SIZE * sizeof(float), SIZE, 1);
  in.extent = make_cudaExtent(SIZE * sizeof(float), 1, 1);
  in.kind = cudaMemcpyHostToDevice;
  checkCudaErrors(cudaGraphAddMemcpyNode(&copyIn, graph, nullptr, 0, &in));

  cudaMemsetParams zero = {};
  zero.dst = d_partial;
  zero.value = 0;
  zero.elementSize = 4;
  zero.width = MAX_BLOCKS * 2;  // a double has two words
  zero.height = 1;
  checkCudaErrors(cudaGraphAddMemsetNode(&clearPartial, graph, nullptr, 0, &zero));
  zero.dst = d_result;
  zero.width = 2;
  checkCudaErrors(cudaGraphAddMemsetNode(&clearResult, graph, nullptr, 0, &zero));

  size_t n = SIZE;
  unsigned blocks = MAX_BLOCKS;
  void* reduceArgs[] = {&d_in, &d_partial, &n, &blocks};
  cudaKernelNodeParams node = {};
  node.func = (void*)reduce;
  node.gridDim = dim3(MAX_BLOCKS);
  node.blockDim = dim3(BLOCK);
  node.kernelParams = reduceArgs;
  before = {copyIn, clearPartial};
  checkCudaErrors(cudaGraphAddKernelNode(&kernel, graph, before.data(), before.size(), &node));

  void* finalArgs[] = {&d_partial, &d_result, &blocks};
  node.func = (void*)reduceFinal;
  node.gridDim = dim3(1);
  node.blockDim = dim3(1);
  node.kernelParams = finalArgs;
  before = {kernel, clearResult};
  checkCudaErrors(cudaGraphAddKernelNode(&final, graph, before.data(), before.size(), &node));
  checkCudaErrors(
      cudaGraphAddMemcpyNode1D(&copyOut, graph, &final, 1, &h_result, d_result, sizeof(double), cudaMemcpyDeviceToHost));
  cudaHostNodeParams call = {};
  call.fn = hostNode;
  call.userData = &data;
  checkCudaErrors(cudaGraphAddHostNode(&host, graph, &copyOut, 1, &call));

  size_t count = 0;
  checkCudaErrors(cudaGraphGetNodes(graph, nullptr, &count));
  cudaGraphNodeType type;
  checkCudaErrors(cudaGraphNodeGetType(host, &type));
  cout << count << " nodes, the last one is a host node: " << (type == cudaGraphNodeTypeHost) << endl;

  cudaGraphExec_t exec;
  cudaStream_t stream;
  checkCudaErrors(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  checkCudaErrors(cudaGraphInstantiate(&exec, graph, 0));
  double want = 0;
  for (size_t i = 0; i < SIZE; i++) want += h_in[i];
  for (int i = 0; i < 3; i++) {
    checkCudaErrors(cudaGraphLaunch(exec, stream));
    checkCudaErrors(cudaStreamSynchronize(stream));
  }
  checkCudaErrors(cudaGraphExecDestroy(exec));
  checkCudaErrors(cudaGraphDestroy(graph));
  checkCudaErrors(cudaStreamDestroy(stream));
  checkCudaErrors(cudaFreeHost(h_in));
  checkCudaErrors(cudaFree(d_in));
  checkCudaErrors(cudaFree(d_partial));
  checkCudaErrors(cudaFree(d_result));

  bool ok = data.calls == 3 && count == 7;
  for (double v : data.seen) ok = ok && v == want;  // multiples of 1/256: every order gives the same sum
  cout << data.name << ": called " << data.calls << " times, sum " << data.seen.at(0) << endl;
  cout << (ok ? "PASSED" : "FAILED") << endl;
  return ok ? 0 : 1;
}
