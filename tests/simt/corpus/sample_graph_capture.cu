// title: CUDA graph captured from two streams that fork and join, launched many times
// features: graphs, streams, events, warp_shuffles
// args: 20

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDACHECK(cmd)                                                                     \
  do {                                                                                     \
    cudaError_t err = cmd;                                                                 \
    if (err != cudaSuccess) {                                                              \
      printf("Failed: Cuda error %s:%d '%s'\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
      exit(EXIT_FAILURE);                                                                  \
    }                                                                                      \
  } while (0)

const int N = 4096, BLOCKS = 16, THREADS = 256;

__global__ void fill(int* x, const int* step, int factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = factor * i + *step;
}

__global__ void reduceBlocks(const int* x, long long* partial) {
  __shared__ long long warps[THREADS / 32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  long long v = x[i];
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < THREADS / 32; w++) v += warps[w];
    partial[blockIdx.x] = v;
  }
}

__global__ void combine(const long long* a, const long long* b, long long* result, int* step) {
  long long sum = 0;
  for (int i = 0; i < BLOCKS; i++) sum += a[i] - b[i];
  *result += sum * (*step % 3 + 1);
  *step += 1;
}

int main(int argc, char** argv) {
  int launches = argc > 1 ? atoi(argv[1]) : 20;
  int *a, *b, *step;
  long long *pa, *pb, *result, got;
  CUDACHECK(cudaMalloc(&a, N * sizeof(int)));
  CUDACHECK(cudaMalloc(&b, N * sizeof(int)));
  CUDACHECK(cudaMalloc(&step, sizeof(int)));
  CUDACHECK(cudaMalloc(&pa, BLOCKS * sizeof(long long)));
  CUDACHECK(cudaMalloc(&pb, BLOCKS * sizeof(long long)));
  CUDACHECK(cudaMalloc(&result, sizeof(long long)));
  CUDACHECK(cudaMemset(step, 0, sizeof(int)));
  CUDACHECK(cudaMemset(result, 0, sizeof(long long)));

  cudaStream_t main_stream, side;
  cudaEvent_t fork, join;
  CUDACHECK(cudaStreamCreate(&main_stream));
  CUDACHECK(cudaStreamCreate(&side));
  CUDACHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDACHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));

  cudaGraph_t graph;
  CUDACHECK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
  CUDACHECK(cudaEventRecord(fork, main_stream));
  CUDACHECK(cudaStreamWaitEvent(side, fork, 0));
  fill<<<N / THREADS, THREADS, 0, main_stream>>>(a, step, 3);
  reduceBlocks<<<BLOCKS, THREADS, 0, main_stream>>>(a, pa);
  fill<<<N / THREADS, THREADS, 0, side>>>(b, step, 1);
  reduceBlocks<<<BLOCKS, THREADS, 0, side>>>(b, pb);
  CUDACHECK(cudaEventRecord(join, side));
  CUDACHECK(cudaStreamWaitEvent(main_stream, join, 0));
  combine<<<1, 1, 0, main_stream>>>(pa, pb, result, step);
  cudaStreamCaptureStatus status;
  CUDACHECK(cudaStreamIsCapturing(main_stream, &status));
  bool ok = status == cudaStreamCaptureStatusActive;
  CUDACHECK(cudaStreamEndCapture(main_stream, &graph));
  CUDACHECK(cudaGetLastError());

  size_t nodes = 0;
  CUDACHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  CUDACHECK(cudaMemcpy(&got, result, sizeof got, cudaMemcpyDeviceToHost));
  printf("captured %zu nodes, nothing has run yet: %lld\n", nodes, got);
  ok = ok && nodes == 5 && got == 0;
  cudaGraphExec_t exec;
  CUDACHECK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
  for (int i = 0; i < launches; i++) CUDACHECK(cudaGraphLaunch(exec, main_stream));
  CUDACHECK(cudaStreamSynchronize(main_stream));
  CUDACHECK(cudaMemcpy(&got, result, sizeof got, cudaMemcpyDeviceToHost));

  long long want = 0, base = 0;
  for (int i = 0; i < N; i++) base += 2 * i;  // the step cancels out of the difference
  for (int s = 0; s < launches; s++) want += base * (s % 3 + 1);
  printf("%d launches: %lld\n", launches, got);
  ok = ok && got == want;

  CUDACHECK(cudaGraphExecDestroy(exec));
  CUDACHECK(cudaGraphDestroy(graph));
  CUDACHECK(cudaEventDestroy(fork));
  CUDACHECK(cudaEventDestroy(join));
  CUDACHECK(cudaStreamDestroy(main_stream));
  CUDACHECK(cudaStreamDestroy(side));
  void* all[] = {a, b, step, pa, pb, result};
  for (void* p : all) CUDACHECK(cudaFree(p));
  printf(ok ? "PASSED\n" : "FAILED\n");
  return ok ? 0 : 1;
}
