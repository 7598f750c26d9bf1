// title: histogram of letters: global atomics, private copies in shared memory, coarsened, aggregated runs
// features: histogram, atomics, shared_memory

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define NUM_BINS 7 /* a-d, e-h, i-l, m-p, q-t, u-x, y-z */
#define CFACTOR 3

#define cudaCheckErrors(msg)                                                                                  \
  do {                                                                                                        \
    cudaError_t __err = cudaGetLastError();                                                                   \
    if (__err != cudaSuccess) {                                                                               \
      fprintf(stderr, "Fatal error: %s (%s at %s:%d)\n", msg, cudaGetErrorString(__err), __FILE__, __LINE__); \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)

__global__ void histo_kernel(const char* data, unsigned int length, unsigned int* histo) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) {
    int alphabet_position = data[i] - 'a';
    if (alphabet_position >= 0 && alphabet_position < 26) atomicAdd(&(histo[alphabet_position / 4]), 1);
  }
}

__global__ void histo_private_kernel(const char* data, unsigned int length, unsigned int* histo) {
  __shared__ unsigned int histo_s[NUM_BINS];
  for (unsigned int bin = threadIdx.x; bin < NUM_BINS; bin += blockDim.x) histo_s[bin] = 0u;
  __syncthreads();
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) {
    int alphabet_position = data[i] - 'a';
    if (alphabet_position >= 0 && alphabet_position < 26) atomicAdd(&(histo_s[alphabet_position / 4]), 1);
  }
  __syncthreads();
  for (unsigned int bin = threadIdx.x; bin < NUM_BINS; bin += blockDim.x) {
    unsigned int binValue = histo_s[bin];
    if (binValue > 0) atomicAdd(&(histo[bin]), binValue);
  }
}

// Contiguous parts per thread; a run of equal bins is added at once.
__global__ void histo_aggregated_kernel(const char* data, unsigned int length, unsigned int* histo) {
  __shared__ unsigned int histo_s[NUM_BINS];
  if (threadIdx.x < NUM_BINS) histo_s[threadIdx.x] = 0u;
  __syncthreads();
  unsigned int accumulator = 0;
  int prevBinIdx = -1;
  unsigned int tid = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned int i = tid * CFACTOR; i < min((tid + 1) * CFACTOR, length); ++i) {
    int alphabet_position = data[i] - 'a';
    if (alphabet_position >= 0 && alphabet_position < 26) {
      int bin = alphabet_position / 4;
      if (bin == prevBinIdx) {
        ++accumulator;
      } else {
        if (accumulator > 0) atomicAdd(&(histo_s[prevBinIdx]), accumulator);
        accumulator = 1;
        prevBinIdx = bin;
      }
    }
  }
  if (accumulator > 0) atomicAdd(&(histo_s[prevBinIdx]), accumulator);
  __syncthreads();
  if (threadIdx.x < NUM_BINS) atomicAdd(&histo[threadIdx.x], histo_s[threadIdx.x]);
}

// 256 bins of bytes, grid-stride, two private copies per block
__global__ void histo256_kernel(const unsigned char* buffer, long size, unsigned int* histo) {
  __shared__ unsigned int temp[2][256];
  temp[0][threadIdx.x] = temp[1][threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < size; i += blockDim.x * gridDim.x)
    atomicAdd(&temp[threadIdx.x & 1][buffer[i]], 1);
  __syncthreads();
  atomicAdd(&(histo[threadIdx.x]), temp[0][threadIdx.x] + temp[1][threadIdx.x]);
}

static std::string make_text(size_t length) {
  const char* words[] = {"programming", "massively", "parallel", "processors", "zebra", "quick", "aaaaaaaa"};
  std::string text;
  for (size_t i = 0; text.size() < length; i++) {
    text += words[(i * i + 3 * i) % 7];
    text += i % 9 ? " " : ".\n";
  }
  text.resize(length);
  return text;
}

int main(int argc, char** argv) {
  size_t length = argc > 1 ? strtoul(argv[1], 0, 0) : 6000;
  std::string text = make_text(length);
  unsigned int expected[NUM_BINS] = {0}, all[256] = {0}, result[256];
  for (unsigned char c : text) {
    if (islower(c)) expected[(c - 'a') / 4]++;
    all[c]++;
  }

  char* d_text;
  unsigned int* d_histo;
  cudaMalloc((void**)&d_text, length);
  cudaMalloc((void**)&d_histo, 256 * sizeof(unsigned int));
  cudaCheckErrors("cudaMalloc fail");
  cudaMemcpy(d_text, text.data(), length, cudaMemcpyHostToDevice);
  cudaCheckErrors("cudaMemcpy fail");

  bool ok = true;
  for (int version = 0; version < 4; version++) {
    cudaMemset(d_histo, 0, 256 * sizeof(unsigned int));
    unsigned int blocks = (length + 255) / 256;
    if (version == 0) histo_kernel<<<blocks, 256>>>(d_text, length, d_histo);
    if (version == 1) histo_private_kernel<<<blocks, 256>>>(d_text, length, d_histo);
    if (version == 2) histo_aggregated_kernel<<<(blocks + CFACTOR - 1) / CFACTOR, 256>>>(d_text, length, d_histo);
    if (version == 3) histo256_kernel<<<4, 256>>>((unsigned char*)d_text, length, d_histo);
    cudaCheckErrors("kernel fail");
    cudaMemcpy(result, d_histo, sizeof(result), cudaMemcpyDeviceToHost);
    cudaCheckErrors("copy back fail");
    bool same = version < 3 ? !memcmp(result, expected, sizeof(expected)) : !memcmp(result, all, sizeof(all));
    printf("version %d: %s\n", version, same ? "same" : "different");
    ok = ok && same;
    if (version == 2)
      for (int i = 0; i < NUM_BINS; i++)
        printf("  %c-%c: %u\n", 'a' + 4 * i, i == 6 ? 'z' : 'a' + 4 * i + 3, result[i]);
    if (version == 3) printf("  spaces: %u, full stops: %u\n", result[' '], result['.']);
  }
  cudaFree(d_text);
  cudaFree(d_histo);
  printf(ok ? "PASSED\n" : "FAILED\n");
  return ok ? 0 : 1;
}
