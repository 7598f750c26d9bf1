// title: Work shared by all devices, at most two, with copies between them; one device does all of it alone
// features: multi_device, streams, device_properties
// args: 6000

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                   \
  do {                                                                                \
    cudaError_t err = call;                                                           \
    if (err != cudaSuccess) {                                                         \
      fprintf(stderr, "%s (%d): %s\n", __FILE__, __LINE__, cudaGetErrorString(err));  \
      exit(EXIT_FAILURE);                                                             \
    }                                                                                 \
  } while (0)

struct Plan {
  int device, first, count;
  float *data, *gathered;
  cudaStream_t stream;
  cudaEvent_t ready;
};

__global__ void smooth(const float* in, float* out, int first, int count, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int g = first + i;
  float left = in[g > 0 ? g - 1 : 0], right = in[g < total - 1 ? g + 1 : total - 1];
  out[g] = 0.25f * left + 0.5f * in[g] + 0.25f * right;
}

int main(int argc, char** argv) {
  const int total = argc > 1 ? atoi(argv[1]) : 6000;
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  const int used = std::min(devices, 2);
  bool peers = used > 1;
  for (int a = 0; a < used; a++)
    for (int b = 0; b < used; b++)
      if (a != b) {
        int can = 0;
        CHECK(cudaDeviceCanAccessPeer(&can, a, b));
        peers = peers && can;
      }
  fprintf(stderr, "%d device(s), %s\n", used, peers ? "peer to peer" : "no peers");
  if (peers)
    for (int a = 0; a < used; a++) {
      CHECK(cudaSetDevice(a));
      CHECK(cudaDeviceEnablePeerAccess(1 - a, 0));
    }

  std::vector<float> host(total), got(total), model(total);
  for (int i = 0; i < total; i++) host[i] = (float)(i * 73 % 128);
  std::vector<Plan> plans(2);  // two parts in any case; without a second device both lie on the first one
  for (int p = 0; p < 2; p++) {
    Plan& plan = plans[p];
    plan.device = p % used;
    plan.first = p * (total / 2);
    plan.count = p ? total - total / 2 : total / 2;
    CHECK(cudaSetDevice(plan.device));
    CHECK(cudaStreamCreate(&plan.stream));
    CHECK(cudaEventCreateWithFlags(&plan.ready, cudaEventDisableTiming));
    CHECK(cudaMalloc(&plan.data, total * sizeof(float)));
    CHECK(cudaMalloc(&plan.gathered, total * sizeof(float)));
    CHECK(cudaMemcpyAsync(plan.data, host.data(), total * sizeof(float), cudaMemcpyHostToDevice, plan.stream));
    CHECK(cudaStreamSynchronize(plan.stream));
  }
  const int steps = 4;
  for (int s = 0; s < steps; s++) {
    for (Plan& plan : plans) {
      CHECK(cudaSetDevice(plan.device));
      smooth<<<(plan.count + 127) / 128, 128, 0, plan.stream>>>(plan.data, plan.gathered, plan.first, plan.count, total);
      CHECK(cudaGetLastError());
      CHECK(cudaEventRecord(plan.ready, plan.stream));
    }
    for (int p = 0; p < 2; p++) {  // each part sends its half to the other one
      Plan &from = plans[p], &to = plans[1 - p];
      CHECK(cudaSetDevice(from.device));
      CHECK(cudaStreamWaitEvent(from.stream, to.ready, 0));
      CHECK(cudaMemcpyPeerAsync(to.gathered + from.first, to.device, from.gathered + from.first, from.device,
                                from.count * sizeof(float), from.stream));
    }
    for (Plan& plan : plans) CHECK(cudaStreamSynchronize(plan.stream));
    for (Plan& plan : plans) std::swap(plan.data, plan.gathered);
  }
  int wrong = 0;
  for (Plan& plan : plans) {
    CHECK(cudaSetDevice(plan.device));
    CHECK(cudaMemcpy(got.data(), plan.data, total * sizeof(float), cudaMemcpyDeviceToHost));
    if (&plan == &plans[0]) {
      model = host;
      for (int s = 0; s < steps; s++) {
        std::vector<float> next(total);
        for (int i = 0; i < total; i++)
          next[i] = (model[std::max(i - 1, 0)] + 2 * model[i] + model[std::min(i + 1, total - 1)]) / 4;
        model = next;
      }
    }
    for (int i = 0; i < total; i++) wrong += got[i] != model[i];  // exact: few bits
  }
  double sum = 0;
  for (float v : got) sum += v;
  for (Plan& plan : plans) {
    CHECK(cudaSetDevice(plan.device));
    CHECK(cudaFree(plan.data));
    CHECK(cudaFree(plan.gathered));
    CHECK(cudaEventDestroy(plan.ready));
    CHECK(cudaStreamDestroy(plan.stream));
  }
  if (peers)
    for (int a = 0; a < used; a++) {
      CHECK(cudaSetDevice(a));
      CHECK(cudaDeviceDisablePeerAccess(1 - a));
    }
  printf("sum after %d steps: %.3f\n", steps, sum);
  printf("%s\n", wrong ? "FAILED" : "PASSED");
  return wrong != 0;
}
