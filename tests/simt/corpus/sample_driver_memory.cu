// title: Driver API: context, memory, copies, fills, streams and events
// features: driver_api
// flags: -lcuda

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda.h>

#define DRV(call)                                                             \
  do {                                                                        \
    CUresult res = (call);                                                    \
    if (res != CUDA_SUCCESS) {                                                \
      const char* name = "unknown";                                           \
      cuGetErrorName(res, &name);                                             \
      std::fprintf(stderr, "line %d: %s -> %s\n", __LINE__, #call, name);     \
      std::exit(1);                                                           \
    }                                                                         \
  } while (0)

__global__ void scale(float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}

int main() {
  const int n = 5000;
  CUdevice device;
  CUcontext context;
  DRV(cuInit(0));
  int count = 0;
  DRV(cuDeviceGetCount(&count));
  DRV(cuDeviceGet(&device, 0));
  DRV(cuDevicePrimaryCtxRetain(&context, device));  // the context of the runtime's launches, too
  DRV(cuCtxSetCurrent(context));
  CUcontext current = nullptr;
  DRV(cuCtxGetCurrent(&current));
  bool ok = count > 0 && current == context;

  CUdeviceptr a, b;
  DRV(cuMemAlloc(&a, n * sizeof(float)));
  DRV(cuMemAlloc(&b, n * sizeof(float)));
  float* host;
  DRV(cuMemAllocHost((void**)&host, n * sizeof(float)));
  for (int i = 0; i < n; i++) host[i] = (float)(i % 100);
  CUstream stream;
  CUevent start, stop;
  DRV(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRV(cuEventCreate(&start, CU_EVENT_DEFAULT));
  DRV(cuEventCreate(&stop, CU_EVENT_DEFAULT));
  DRV(cuEventRecord(start, stream));
  DRV(cuMemcpyHtoDAsync(a, host, n * sizeof(float), stream));
  scale<<<(n + 255) / 256, 256, 0, stream>>>((float*)a, 3.0f, n);
  DRV(cuMemcpyDtoDAsync(b, a, n * sizeof(float), stream));
  DRV(cuMemsetD32Async(a, 0x3f800000u, n / 2, stream));  // ones in the first half
  DRV(cuEventRecord(stop, stream));
  DRV(cuStreamSynchronize(stream));
  DRV(cuEventQuery(stop));
  float ms = -1;
  DRV(cuEventElapsedTime(&ms, start, stop));
  std::fprintf(stderr, "%.3f ms\n", ms);

  std::vector<float> ga(n), gb(n);
  DRV(cuMemcpyDtoH(ga.data(), a, n * sizeof(float)));
  DRV(cuMemcpyDtoH(gb.data(), b, n * sizeof(float)));
  double sa = 0, sb = 0;
  for (int i = 0; i < n; i++) {
    ok = ok && ga[i] == (i < n / 2 ? 1.0f : 3.0f * (i % 100)) && gb[i] == 3.0f * (i % 100);
    sa += ga[i], sb += gb[i];
  }
  DRV(cuMemsetD8(b, 7, 100));
  unsigned char bytes[104];
  DRV(cuMemcpyDtoH(bytes, b, 104));
  for (int i = 0; i < 100; i++) ok = ok && bytes[i] == 7;
  size_t freeBytes = 0, total = 0;
  DRV(cuMemGetInfo(&freeBytes, &total));
  ok = ok && total >= freeBytes && ms >= 0;
  std::printf("sums %.0f and %.0f\n", sa, sb);

  DRV(cuEventDestroy(start));
  DRV(cuEventDestroy(stop));
  DRV(cuStreamDestroy(stream));
  DRV(cuMemFree(a));
  DRV(cuMemFree(b));
  DRV(cuMemFreeHost(host));
  DRV(cuDevicePrimaryCtxRelease(device));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
