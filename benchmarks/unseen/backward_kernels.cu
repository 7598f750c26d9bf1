// Gradients as students write them: of bias, pooling, group normalisation, sigmoid, log-sum-exp, convolution, product.
// sizes: 16 256 (images of 64 channels of 32 x 32 pixels; a sixteenth as many for convolutions)
#include "../micro/micro.h"

constexpr int CHANNELS = 64, SIDE = 32, PLANE = SIDE * SIDE, GROUPS = 16, GROUP_SIZE = CHANNELS / GROUPS * PLANE;
constexpr int FEATURES = 1024, INNER = 256, OUTER = 512;
constexpr int CONV_IN = 16, CONV_OUT = 32, CONV_SIDE = 28;

// Of a linear layer's bias: a block has 32 columns, and eight threads share a column.
__global__ void bias_gradient(const float* grad, float* bias_grad, int rows, int features) {
  __shared__ float part[8][32];
  int col = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int row = threadIdx.y; row < rows; row += 8) sum += grad[row * features + col];
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int k = 1; k < 8; k++) sum += part[k][threadIdx.x];
    bias_grad[col] = sum;
  }
}

// Of max-pooling of 2 x 2: each element asks whether its window's index is its own.
__global__ void maxpool_backward(const float* grad, const int* indices, float* input_grad, int height, int width,
                                 int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int w = i % width, h = i / width % height, plane = i / (width * height);
  int window = (plane * (height / 2) + h / 2) * (width / 2) + w / 2;
  input_grad[i] = indices[window] == i ? grad[window] : 0.0f;
}

// Of group normalisation's input: a block a group, two sums, then each element.
__global__ void groupnorm_backward(const float* grad, const float* x, const float* mean, const float* rstd,
                                   const float* gamma, float* dx) {
  __shared__ float s1[256], s2[256];
  int tid = threadIdx.x, group = blockIdx.x, start = group * GROUP_SIZE;
  float m = mean[group], r = rstd[group];
  float sum = 0.0f, sum_x = 0.0f;
  for (int i = tid; i < GROUP_SIZE; i += blockDim.x) {
    int c = (start + i) / PLANE % CHANNELS;
    float d = grad[start + i] * gamma[c];
    sum += d;
    sum_x += d * (x[start + i] - m) * r;
  }
  s1[tid] = sum;
  s2[tid] = sum_x;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) {
      s1[tid] += s1[tid + s];
      s2[tid] += s2[tid + s];
    }
    __syncthreads();
  }
  float a = s1[0] / GROUP_SIZE, b = s2[0] / GROUP_SIZE;
  for (int i = tid; i < GROUP_SIZE; i += blockDim.x) {
    int c = (start + i) / PLANE % CHANNELS;
    float xhat = (x[start + i] - m) * r;
    dx[start + i] = r * (grad[start + i] * gamma[c] - a - xhat * b);
  }
}

// Of y = sigmoid(scale * x): for x, and for each channel's scale with an atomic a plane.
__global__ void sigmoid_scale_backward(const float* grad, const float* x, const float* scale, float* dx,
                                       float* scale_grad) {
  __shared__ float warps[8];
  const int c = blockIdx.x % CHANNELS;
  const float s = scale[c];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < PLANE; i += blockDim.x) {
    const int at = blockIdx.x * PLANE + i;
    const float v = x[at], y = 1.0f / (1.0f + __expf(-s * v));
    const float inner = grad[at] * y * (1.0f - y);
    dx[at] = inner * s;
    sum += inner * v;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / 32; w++) sum += warps[w];
    atomicAdd(&scale_grad[c], sum);
  }
}

// Of the log-sum-exp of each row: a thread an element, which reads its row's two numbers.
__global__ void logsumexp_backward(const float* grad, const float* x, const float* lse, float* dx, int features,
                                   int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < total) {
    int row = i / features;
    dx[i] = grad[row] * expf(x[i] - lse[row]);
  }
}

// Of a padded convolution's weights: a thread a weight goes over all pixels of all images.
__global__ void conv_weight_backward(const float* x, const float* grad, float* weight_grad, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= CONV_OUT * CONV_IN * 9) return;
  int s = idx % 3, r = idx / 3 % 3, c = idx / 9 % CONV_IN, k = idx / 9 / CONV_IN;
  float sum = 0.0f;
  for (int n = 0; n < N; n++)
    for (int h = 0; h < CONV_SIDE; h++)
      for (int w = 0; w < CONV_SIDE; w++) {
        int ih = h + r - 1, iw = w + s - 1;
        if (ih >= 0 && ih < CONV_SIDE && iw >= 0 && iw < CONV_SIDE)
          sum += x[((n * CONV_IN + c) * CONV_SIDE + ih) * CONV_SIDE + iw] *
                 grad[((n * CONV_OUT + k) * CONV_SIDE + h) * CONV_SIDE + w];
      }
  weight_grad[idx] = sum;
}

// Of a convolution's input when the stride is two: only some of the weights meet an element.
__global__ void conv_input_backward(const float* grad, const float* weight, float* dx, int N, int H, int W, int stride,
                                    int padding) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N * CONV_IN * H * W) return;
  int w = idx % W, h = idx / W % H, c = idx / (W * H) % CONV_IN, n = idx / (W * H * CONV_IN);
  int outH = H / stride, outW = W / stride;
  float sum = 0.0f;
  for (int k = 0; k < CONV_OUT; k++)
    for (int r = 0; r < 3; r++)
      for (int s = 0; s < 3; s++) {
        int y = h + padding - r, x = w + padding - s;
        if (y < 0 || x < 0 || y % stride != 0 || x % stride != 0) continue;
        y /= stride;
        x /= stride;
        if (y < outH && x < outW)
          sum += grad[((n * CONV_OUT + k) * outH + y) * outW + x] * weight[((k * CONV_IN + c) * 3 + r) * 3 + s];
      }
  dx[idx] = sum;
}

// Of a linear layer's weights, which is a product of X transposed: tiles of 16, added to what is there.
__global__ void matmul_weight_backward(const float* X, const float* grad, float* weight_grad, int rows, int inner,
                                       int outer) {
  __shared__ float xs[16][17], gs[16][17];
  int tx = threadIdx.x, ty = threadIdx.y;
  int i = blockIdx.y * 16 + ty, j = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int first = 0; first < rows; first += 16) {
    xs[ty][tx] = first + ty < rows ? X[(first + ty) * inner + blockIdx.y * 16 + tx] : 0.0f;
    gs[ty][tx] = first + ty < rows ? grad[(first + ty) * outer + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += xs[k][ty] * gs[k][tx];
    __syncthreads();
  }
  weight_grad[i * outer + j] += sum;
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 16), planes = images * CHANNELS, n = planes * PLANE;
  const int groups = images * GROUPS, rows = n / FEATURES, batch = images / 16;
  float *x = memory<float>(n), *grad = memory<float>(n), *dx = memory<float>(n);
  float *mean = memory<float>(rows), *rstd = memory<float>(rows);
  float *weight = memory<float>(INNER * OUTER), *weight_grad = memory<float>(INNER * OUTER);
  int* indices = memory<int>(n / 4);
  std::vector<float> values(n);
  std::vector<int> places(n / 4);
  unsigned state = 29;
  for (int i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (state >> 8) / 8388608.0f - 1.0f;
    const int half = SIDE / 2, row = i / half * 2 + (state >> 31), column = i % half * 2 + (state >> 30) % 2;
    if (i < n / 4) places[i] = row * SIDE + column;
  }
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(grad, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(weight, values.data(), INNER * OUTER * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(indices, places.data(), n / 4 * sizeof(int), cudaMemcpyHostToDevice));
  measure("bias", [&] { bias_gradient<<<FEATURES / 32, dim3(32, 8)>>>(grad, weight_grad, rows, FEATURES); });
  measure("max-pool", [&] { maxpool_backward<<<(n + 255) / 256, 256>>>(grad, indices, dx, SIDE, SIDE, n); });
  measure("group norm's input", [&] { groupnorm_backward<<<groups, 256>>>(grad, x, mean, rstd, weight, dx); });
  measure("sigmoid and scale", [&] { sigmoid_scale_backward<<<planes, 256>>>(grad, x, weight, dx, weight_grad); });
  measure("log-sum-exp", [&] { logsumexp_backward<<<(n + 511) / 512, 512>>>(grad, x, mean, dx, FEATURES, n); });
  measure("convolution's weights",
          [&] { conv_weight_backward<<<(CONV_OUT * CONV_IN * 9 + 127) / 128, 128>>>(x, grad, weight_grad, batch); });
  const int elements = batch * CONV_IN * 4 * CONV_SIDE * CONV_SIDE;
  measure("convolution's input", [&] {
    conv_input_backward<<<(elements + 255) / 256, 256>>>(grad, weight, dx, batch, 2 * CONV_SIDE, 2 * CONV_SIDE, 2, 1);
  });
  measure("product's weights", [&] {
    dim3 grid(OUTER / 16, INNER / 16);
    matmul_weight_backward<<<grid, dim3(16, 16)>>>(x, grad, weight_grad, rows / 16, INNER, OUTER);
  });
}
