// title: Driver API: the primary context pushed and popped, pitched and managed memory, host functions
// features: driver_api, callbacks, pitched_memory
// flags: -lcuda

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

static int failed = 0;

static void check(CUresult r, const char *what) {
  if (r == CUDA_SUCCESS) return;
  const char *text = NULL;
  cuGetErrorString(r, &text);
  fprintf(stderr, "%s: %s\n", what, text ? text : "?");
  failed = 1;
}
#define CU(x) check((x), #x)

__global__ void transpose(const short *in, size_t in_pitch, short *out, size_t out_pitch, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    const short *row = (const short *)((const char *)in + y * in_pitch);
    ((short *)((char *)out + x * out_pitch))[y] = row[x];
  }
}

static void count_call(void *data) { ++*(int *)data; }

int main(void) {
  const int w = 45, h = 30;
  CUdevice dev;
  CUcontext primary, back;
  CUdeviceptr a, b, shared;
  CUstream low, high;
  CUevent done;
  size_t pitch_a, pitch_b;
  int i, j, calls = 0, wrong = 0;
  CU(cuInit(0));
  CU(cuDeviceGet(&dev, 0));
  CU(cuDevicePrimaryCtxRetain(&primary, dev));
  CU(cuCtxPushCurrent(primary));
  CUdevice of;
  CU(cuCtxGetDevice(&of));
  wrong += of != dev;

  CU(cuMemAllocPitch(&a, &pitch_a, w * sizeof(short), h, 4));
  CU(cuMemAllocPitch(&b, &pitch_b, h * sizeof(short), w, 4));
  CU(cuMemAllocManaged(&shared, 4096, CU_MEM_ATTACH_GLOBAL));
  memset((void *)shared, 1, 4096); /* the host reaches managed memory, too */
  CU(cuStreamCreate(&low, CU_STREAM_DEFAULT));
  CU(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -1));
  CU(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
  short row[64], column[64];
  for (j = 0; j < h; j++) {
    for (i = 0; i < w; i++) row[i] = (short)(i * 100 + j);
    CU(cuMemcpyHtoD(a + j * pitch_a, row, w * sizeof(short)));
  }
  CU(cuMemsetD16(b, 0xffff, w * pitch_b / sizeof(short)));
  dim3 block(16, 8), grid((w + 15) / 16, (h + 7) / 8);
  transpose<<<grid, block, 0, low>>>((const short *)a, pitch_a, (short *)b, pitch_b, w, h);
  CU(cuLaunchHostFunc(low, count_call, &calls));
  CU(cuEventRecord(done, low));
  CU(cuStreamWaitEvent(high, done, 0));
  CU(cuMemcpyDtoDAsync(shared, b, h * sizeof(short), high));
  CU(cuLaunchHostFunc(high, count_call, &calls));
  CU(cuStreamSynchronize(high));
  CU(cuEventSynchronize(done));
  CU(cuCtxSynchronize());
  for (j = 0; j < h; j++) wrong += ((short *)shared)[j] != (short)j;
  long sum = 0;
  for (i = 0; i < w; i++) {
    CU(cuMemcpyDtoH(column, b + i * pitch_b, h * sizeof(short)));
    for (j = 0; j < h; j++) {
      wrong += column[j] != (short)(i * 100 + j);
      sum += column[j];
    }
  }
  printf("sum %ld, %d host functions called, %d differences\n", sum, calls, wrong);
  CU(cuMemFree(a));
  CU(cuMemFree(b));
  CU(cuMemFree(shared));
  CU(cuStreamDestroy(low));
  CU(cuStreamDestroy(high));
  CU(cuEventDestroy(done));
  CU(cuCtxPopCurrent(&back));
  wrong += back != primary || calls != 2;
  CU(cuDevicePrimaryCtxRelease(dev));
  puts(wrong || failed ? "FAILED" : "PASSED");
  return wrong || failed ? 1 : 0;
}
