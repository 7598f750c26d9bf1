// Several elementwise steps in one kernel: gated activations, an optimizer's step, normalisation by channel.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

constexpr int HIDDEN = 1024, CHANNELS = 3, HEIGHT = 48, WIDTH = 40;

// A row of x has the gate's HIDDEN values and then the HIDDEN values that it lets through.
__global__ void swiglu(float* x, float* y, int n, int hidden) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int row = i / hidden;
    int column = i % hidden;
    float gate = x[row * 2 * hidden + column];
    float up = x[row * 2 * hidden + hidden + column];
    y[i] = gate / (1.0f + expf(-gate)) * up;
  }
}

__global__ void adam(float* weight, float* gradient, float* m, float* v, float rate, float beta1, float beta2, int step,
                     int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float g = gradient[i];
    m[i] = beta1 * m[i] + (1.0f - beta1) * g;
    v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
    float m_hat = m[i] / (1.0f - powf(beta1, step));
    float v_hat = v[i] / (1.0f - powf(beta2, step));
    weight[i] -= rate * m_hat / (sqrtf(v_hat) + 1e-8f);
  }
}

// The literals and the functions are of double precision.
__global__ void softplus(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 20.0 ? x[i] : log(1.0 + exp((double)x[i]));
}

__global__ void normalise_channels(const float* x, const float* mean, const float* deviation, float* y, int64_t n,
                                   int64_t channels, int64_t height, int64_t width) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) {
    int64_t channel = i / (height * width) % channels;
    y[i] = (x[i] - mean[channel]) / deviation[channel];
  }
}

// The loss of each element and its gradient.
__global__ void huber(const float* __restrict__ x, const float* __restrict__ target, float* __restrict__ loss,
                      float* __restrict__ gradient, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    float d = x[i] - target[i];
    if (fabsf(d) < 1.0f) {
      loss[i] = 0.5f * d * d;
      gradient[i] = d;
    } else {
      loss[i] = fabsf(d) - 0.5f;
      gradient[i] = d > 0.0f ? 1.0f : -1.0f;
    }
  }
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  float *x = memory<float>(2 * n), *y = memory<float>(n), *m = memory<float>(n), *v = memory<float>(n);
  float* statistics = memory<float>(CHANNELS);
  measure("swiglu", [&] { swiglu<<<n / 256, 256>>>(x, y, n, HIDDEN); });
  measure("adam", [&] { adam<<<n / 256, 256>>>(y, x, m, v, 1e-3f, 0.9f, 0.999f, 10, n); });
  measure("softplus in double", [&] { softplus<<<n / 512, 512>>>(x, y, n); });
  measure("normalise channels",
          [&] { normalise_channels<<<n / 128, 128>>>(x, statistics, statistics, y, n, CHANNELS, HEIGHT, WIDTH); });
  measure("huber", [&] { huber<<<528, 192>>>(x, x + n, m, v, n); });
}
