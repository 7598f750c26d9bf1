// Texts: words searched and counted, letters counted, bytes written as hexadecimal and base 64, numbers read, runs.
// sizes: 16 25 (log2 of the bytes)
#include "../micro/micro.h"

__constant__ char alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Is the pattern at this place? Most threads stop at the first letter.
__global__ void find_pattern(const char* text, const char* pattern, int length, int* found, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > n - length) return;
  int k = 0;
  while (k < length && text[i + k] == pattern[k]) k++;
  if (k == length) atomicAdd(found, 1);
}

// A word starts where a letter follows something else; each thread has 16 letters in a row.
__global__ void count_words(const char* text, int* words, int n) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 16, own = 0;
  bool inside = first > 0 && first <= n && text[first - 1] > ' ';
  for (int i = first; i < first + 16 && i < n; i++) {
    bool letter = text[i] > ' ';
    if (letter && !inside) own++;
    inside = letter;
  }
  if (own) atomicAdd(&count, own);
  __syncthreads();
  if (threadIdx.x == 0 && count) atomicAdd(words, count);
}

// How often each of 26 letters is there; every warp counts for itself before all add up.
__global__ void count_letters(const uchar4* __restrict__ text, unsigned* __restrict__ letters, int n) {
  __shared__ unsigned counts[8][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  counts[warp][lane] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uchar4 v = text[i];
    const unsigned char bytes[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const unsigned letter = (bytes[k] | 32) - 'a';
      if (letter < 26) atomicAdd(&counts[warp][letter], 1u);
    }
  }
  __syncthreads();
  if (warp == 0 && lane < 26) {
    unsigned sum = 0;
    for (int w = 0; w < 8; w++) sum += counts[w][lane];
    atomicAdd(&letters[lane], sum);
  }
}

// Two characters for each byte.
__global__ void to_hexadecimal(const unsigned char* in, char* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int high = in[i] >> 4, low = in[i] & 15;
  out[2 * i] = high < 10 ? '0' + high : 'a' + high - 10;
  out[2 * i + 1] = low < 10 ? '0' + low : 'a' + low - 10;
}

// Four characters for three bytes, from a table in constant memory at places that differ from lane to lane.
__global__ void to_base_64(const unsigned char* in, char4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
  out[i] = make_char4(alphabet[v >> 18], alphabet[v >> 12 & 63], alphabet[v >> 6 & 63], alphabet[v & 63]);
}

// Numbers of up to seven digits, one in every eight bytes: it ends at the first that is none.
__global__ void read_numbers(const char* text, int* numbers, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int value = 0;
  for (int k = 0; k < 8; k++) {
    char c = text[8 * i + k];
    if (c < '0' || c > '9') break;
    value = value * 10 + (c - '0');
  }
  numbers[i] = value;
}

// From each place, how far a text reads the same in both directions, up to 16 letters.
__global__ void palindromes(const char* text, unsigned char* reach, int n) {
  __shared__ char part[256 + 32];
  int first = blockIdx.x * 256 - 16;
  for (int k = threadIdx.x; k < 288; k += 256) part[k] = first + k >= 0 && first + k < n ? text[first + k] : 0;
  __syncthreads();
  int at = threadIdx.x + 16, k = 1;
  while (k < 16 && part[at - k] == part[at + k]) k++;
  reach[blockIdx.x * 256 + threadIdx.x] = k - 1;
}

// Runs of the same byte: the thread at the start of one walks to its end.
__global__ void run_lengths(const char* text, int* lengths, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i > 0 && text[i - 1] == text[i]) {
    lengths[i] = 0;
    return;
  }
  int end = i + 1;
  while (end < n && text[end] == text[i]) end++;
  lengths[i] = end - i;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 16), numbers = n / 8;
  char *text = memory<char>(n), *out = memory<char>(2 * n), *digits = memory<char>(n), *pattern = memory<char>(8);
  int *lengths = memory<int>(n / 4), *counts = memory<int>(32);
  std::vector<char> letters(n), columns(n);
  unsigned state = 21;
  auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  for (char& c : letters) {
    const unsigned r = random() % 64;
    c = r < 10 ? ' ' : r < 11 ? '\n' : r < 30 ? "etaoinshr"[r % 9] : 'a' + r % 26;
  }
  for (int i = 0; i < n; i += 8) {
    const int length = 1 + random() % 7;
    for (int k = 0; k < 8; k++) columns[i + k] = k < length ? '0' + random() % 10 : ' ';
  }
  CHECK(cudaMemcpy(text, letters.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(digits, columns.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(pattern, "the nose", 8, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(counts, 0, 32 * sizeof(int)));
  measure("pattern", [&] { find_pattern<<<n / 256, 256>>>(text, pattern, 8, counts, n); });
  measure("words", [&] { count_words<<<n / 16 / 256, 256>>>(text, counts, n); });
  measure("letters", [&] { count_letters<<<528, 256>>>((uchar4*)text, (unsigned*)counts, n / 4); });
  measure("hexadecimal", [&] { to_hexadecimal<<<n / 256, 256>>>((unsigned char*)text, out, n); });
  measure("base 64", [&] { to_base_64<<<(n / 3 + 127) / 128, 128>>>((unsigned char*)text, (char4*)out, n / 3); });
  measure("numbers", [&] { read_numbers<<<numbers / 256, 256>>>(digits, (int*)out, numbers); });
  measure("palindromes", [&] { palindromes<<<n / 256, 256>>>(text, (unsigned char*)out, n); });
  measure("runs", [&] { run_lengths<<<n / 4 / 128, 128>>>(digits, lengths, n / 4); });
}
