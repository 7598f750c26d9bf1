// title: what launches and calls of the runtime answer when they are wrong, and which error is left behind
#include <cooperative_groups.h>
#include <cstdio>

__global__ void plain(int* p) {
  if (p) *p = 1;
}
__global__ void __launch_bounds__(128) bounded(int* p) {
  if (p) *p = 2;
}
__global__ void with_shared(int* p) {
  __shared__ int values[10000];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (p) *p = values[blockDim.x - 1 - threadIdx.x];
}
__global__ void cooperative(int* p) {
  cooperative_groups::this_grid().sync();
  if (p) *p = 3;
}
__device__ int symbol[4];
__constant__ float constants[4];

static void tell(const char* what, cudaError_t status) {
  const cudaError_t left = cudaGetLastError(), again = cudaGetLastError();
  printf("%s: %s, then %s, %s\n", what, cudaGetErrorName(status), cudaGetErrorName(left), cudaGetErrorName(again));
}

template <class Kernel>
void launch(const char* what, Kernel kernel, dim3 grid, dim3 block, size_t shared = 0) {
  kernel<<<grid, block, shared>>>(nullptr);
  const cudaError_t peeked = cudaPeekAtLastError(), got = cudaGetLastError(), after = cudaDeviceSynchronize();
  printf("%s: %s, %s, %s\n", what, cudaGetErrorName(peeked), cudaGetErrorName(got), cudaGetErrorName(after));
}

static void launches() {
  launch("1024 threads", plain, 1, 1024);
  launch("1025 threads", plain, 1, 1025);
  launch("4096 threads", plain, 1, 4096);
  launch("33 x 32 threads", plain, 1, dim3(33, 32));
  launch("65 threads in z", plain, 1, dim3(1, 1, 65));
  launch("no threads", plain, 1, 0);
  launch("no threads in y", plain, 1, dim3(32, 0));
  launch("no blocks", plain, 0, 32);
  launch("no blocks in z", plain, dim3(1, 1, 0), 32);
  launch("65535 blocks in y", plain, dim3(1, 65535), 32);
  launch("65536 blocks in y", plain, dim3(1, 65536), 32);
  launch("65536 blocks in z", plain, dim3(1, 1, 65536), 32);
  launch("2^31 blocks", plain, 1u << 31, 32);
  launch("48 KiB of dynamic shared memory", plain, 1, 32, 48 << 10);
  launch("one byte more", plain, 1, 32, (48 << 10) + 1);
  launch("300 KiB", plain, 1, 32, 300 << 10);
  launch("static and dynamic beyond 48 KiB together", with_shared, 1, 32, 12 << 10);
  launch("128 threads of 128", bounded, 1, 128);
  launch("129 threads of 128", bounded, 1, 129);
  launch("no blocks and too many threads", plain, 0, 2000);
}

static void attributes() {
  int optin = 0, value = 0;
  cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  tell("attribute: as much as there is", cudaFuncSetAttribute(plain, attribute, optin));
  launch("as much as there is", plain, 1, 32, optin);
  launch("one byte more than there is", plain, 1, 32, optin + 1);
  tell("attribute: one byte more", cudaFuncSetAttribute(plain, attribute, optin + 1));
  tell("attribute: beside static memory", cudaFuncSetAttribute(with_shared, attribute, optin));
  tell("attribute: negative", cudaFuncSetAttribute(plain, attribute, -1));
  tell("attribute of the device: unknown", cudaDeviceGetAttribute(&value, (cudaDeviceAttr)100000, 0));
  tell("attribute of the device: no such device", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
  tell("attribute of the device: null", cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  tell("occupancy: no threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, plain, 0, 0));
  tell("occupancy: 2000 threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, plain, 2000, 0));
  printf("%d blocks\n", value);
  cudaDeviceProp properties;
  tell("properties: no such device", cudaGetDeviceProperties(&properties, 99));
  tell("device: no such", cudaSetDevice(99));
}

static void cooperation() {
  int* none = nullptr;
  void* arguments[] = {&none};
  tell("cooperative: one block", cudaLaunchCooperativeKernel((void*)cooperative, 1, 32, arguments));
  tell("cooperative: too many", cudaLaunchCooperativeKernel((void*)cooperative, 1 << 20, 32, arguments));
  tell("cooperative: no blocks", cudaLaunchCooperativeKernel((void*)cooperative, 0, 32, arguments));
  tell("launch: too many threads", cudaLaunchKernel((void*)plain, 1, 2000, arguments, 0, 0));
  tell("synchronize", cudaDeviceSynchronize());
}

static void memory() {
  int host[8] = {}, *a = nullptr, *b = nullptr;
  size_t pitch = 0;
  tell("malloc: nothing", cudaMalloc(&a, 0));
  printf("%s\n", a ? "a pointer" : "null");
  tell("malloc: null", cudaMalloc((void**)nullptr, 4));
  tell("malloc: too much", cudaMalloc(&a, (size_t)1 << 50));
  tell("pitch: nothing", cudaMallocPitch(&b, &pitch, 0, 4));
  tell("free: null", cudaFree(nullptr));
  tell("free: the host's", cudaFree(host));
  cudaMalloc(&a, sizeof host);
  cudaMalloc(&b, sizeof host);
  tell("free: inside", cudaFree(a + 1));
  tell("copy: nothing to null", cudaMemcpy(nullptr, host, 0, cudaMemcpyHostToDevice));
  tell("copy: to null", cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice));
  tell("copy: from null", cudaMemcpy(a, nullptr, 4, cudaMemcpyHostToDevice));
  tell("copy: unknown kind", cudaMemcpy(a, host, 4, (cudaMemcpyKind)9));
  tell("copy: host memory as the device's", cudaMemcpy(a, host, 4, cudaMemcpyDeviceToDevice));
  tell("copy: device memory as the host's", cudaMemcpy(a, b, 4, cudaMemcpyHostToDevice));
  tell("copy: too long", cudaMemcpy(a, b, (size_t)1 << 40, cudaMemcpyDeviceToDevice));
  tell("copy 2d: wider than the pitch", cudaMemcpy2D(a, 8, b, 4, 8, 2, cudaMemcpyDeviceToDevice));
  tell("copy 2d: no rows", cudaMemcpy2D(a, 8, b, 8, 8, 0, cudaMemcpyDeviceToDevice));
  tell("set: null", cudaMemset(nullptr, 0, 4));
  tell("set: nothing", cudaMemset(nullptr, 0, 0));
  tell("set: too long", cudaMemset(a, 0, (size_t)1 << 40));
  tell("symbol: all", cudaMemcpyToSymbol(symbol, host, 16));
  tell("symbol: past its end", cudaMemcpyToSymbol(symbol, host, 16, 4));
  tell("symbol: from past its end", cudaMemcpyFromSymbol(host, symbol, 4, 16));
  tell("symbol: wrong kind", cudaMemcpyToSymbol(constants, host, 4, 0, cudaMemcpyDeviceToHost));
  cudaFree(a);
  tell("free: twice", cudaFree(a));
  cudaFree(b);
}

static void pinned() {
  int host[64], *p = nullptr;
  tell("host: nothing", cudaMallocHost(&p, 0));
  tell("host: null", cudaFreeHost(nullptr));
  tell("host: not its own", cudaFreeHost(host));
  tell("register", cudaHostRegister(host, sizeof host, 0));
  tell("register: twice", cudaHostRegister(host, sizeof host, 0));
  tell("register: nothing", cudaHostRegister(host, 0, 0));
  tell("unregister", cudaHostUnregister(host));
  tell("unregister: twice", cudaHostUnregister(host));
  tell("device pointer: not registered", cudaHostGetDevicePointer((void**)&p, host, 0));
  cudaPointerAttributes facts;
  tell("pointer: null", cudaPointerGetAttributes(&facts, nullptr));
  printf("type %d\n", (int)facts.type);
  tell("pointer: the host's", cudaPointerGetAttributes(&facts, host));
  printf("type %d\n", (int)facts.type);
}

static void streams_and_events() {
  cudaEvent_t a, b, quick;
  cudaStream_t stream;
  float ms = 0;
  cudaEventCreate(&a), cudaEventCreate(&b), cudaStreamCreate(&stream);
  cudaEventCreateWithFlags(&quick, cudaEventDisableTiming);
  tell("elapsed: not recorded", cudaEventElapsedTime(&ms, a, b));
  tell("query: not recorded", cudaEventQuery(a));
  tell("synchronize: not recorded", cudaEventSynchronize(a));
  cudaEventRecord(a), cudaEventRecord(quick), cudaDeviceSynchronize();
  tell("elapsed: second not recorded", cudaEventElapsedTime(&ms, a, b));
  tell("elapsed: no timing", cudaEventElapsedTime(&ms, a, quick));
  tell("elapsed: null", cudaEventElapsedTime(nullptr, a, a));
  tell("create: unknown flags", cudaEventCreateWithFlags(&b, 0x100));
  tell("stream: unknown flags", cudaStreamCreateWithFlags(&stream, 0x100));
  cudaStreamCreate(&stream);
  cudaGraph_t graph = nullptr;
  tell("capture: not begun", cudaStreamEndCapture(stream, &graph));
  tell("capture: the default stream", cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
  tell("capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  tell("capture: twice", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  plain<<<1, 2000, 0, stream>>>(nullptr);
  tell("capture: too many threads", cudaPeekAtLastError());
  tell("capture: synchronize", cudaStreamSynchronize(stream));
  tell("capture: query", cudaStreamQuery(stream));
  tell("capture: end", cudaStreamEndCapture(stream, &graph));
  printf("%s\n", graph ? "a graph" : "no graph");
  cudaGraphExec_t ready;
  tell("graph: null", cudaGraphInstantiate(&ready, nullptr, 0));
  tell("graph: launch null", cudaGraphLaunch(nullptr, stream));
  tell("graph: destroy null", cudaGraphDestroy(nullptr));
  tell("stream: destroy", cudaStreamDestroy(stream));
  tell("event: destroy null", cudaEventDestroy(nullptr));
  tell("wait: null event", cudaStreamWaitEvent(0, nullptr, 0));
}

int main() {
  launches();
  attributes();
  cooperation();
  memory();
  pinned();
  streams_and_events();
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
