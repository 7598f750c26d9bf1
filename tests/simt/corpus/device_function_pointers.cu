// title: image filters chosen through pointers to device functions, tables of them, and functors
// features: device_function_pointers, templates, device_variables

#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace std;

typedef unsigned char (*blockFunction_t)(unsigned char, unsigned char, unsigned char, unsigned char, unsigned char,
                                         unsigned char, unsigned char, unsigned char, unsigned char, float);
typedef float (*pointFunction_t)(float);
using BinaryOp = int (*)(int, int);

#define GO(x)                                                  \
  if (cudaError_t e = (x)) {                                   \
    cerr << __LINE__ << ": " << cudaGetErrorString(e) << endl; \
    exit(1);                                                   \
  }

__device__ unsigned char ComputeSobel(unsigned char ul, unsigned char um, unsigned char ur, unsigned char ml,
                                      unsigned char mm, unsigned char mr, unsigned char ll, unsigned char lm,
                                      unsigned char lr, float fScale) {
  short Horz = ur + 2 * mr + lr - ul - 2 * ml - ll;
  short Vert = ul + 2 * um + ur - ll - 2 * lm - lr;
  short Sum = (short)(fScale * (abs((int)Horz) + abs((int)Vert)));
  return (unsigned char)((Sum < 0) ? 0 : ((Sum > 255) ? 255 : Sum));
}

__device__ unsigned char ComputeBox(unsigned char ul, unsigned char um, unsigned char ur, unsigned char ml,
                                    unsigned char mm, unsigned char mr, unsigned char ll, unsigned char lm,
                                    unsigned char lr, float fscale) {
  short Sum = (short)(fscale * (ul + um + ur + ml + mm + mr + ll + lm + lr) / 9);
  return (unsigned char)((Sum < 0) ? 0 : ((Sum > 255) ? 255 : Sum));
}

__device__ float Threshold(float in) { return in > 150.0f ? 255.0f : 0.0f; }
__device__ float Invert(float in) { return 255.0f - in; }

__device__ blockFunction_t blockFunction_table[2];
__device__ blockFunction_t pComputeSobel = ComputeSobel;
__device__ blockFunction_t pComputeBox = ComputeBox;
__device__ pointFunction_t pointFunctions[3] = {nullptr, Threshold, Invert};

__device__ int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
__device__ int powmod(int a, int b) {
  int r = 1;
  for (int i = 0; i < b; i++) r = r * a % 1009;
  return r;
}
template <int K>
__device__ int shifted(int a, int b) {
  return (a << K) + b;
}

__device__ BinaryOp operations[] = {gcd, powmod, shifted<3>, shifted<5>};

__global__ void filter(const unsigned char* in, unsigned char* out, int w, int h, float scale, int which, int point) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  auto at = [=](int u, int v) { return in[min(max(v, 0), h - 1) * w + min(max(u, 0), w - 1)]; };
  unsigned char value =
      (*(blockFunction_table[which]))(at(x - 1, y - 1), at(x, y - 1), at(x + 1, y - 1), at(x - 1, y), at(x, y),
                                      at(x + 1, y), at(x - 1, y + 1), at(x, y + 1), at(x + 1, y + 1), scale);
  if (pointFunctions[point] != nullptr) value = (unsigned char)(*(pointFunctions[point]))(value);
  out[y * w + x] = value;
}

__global__ void apply(BinaryOp op, const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = op(a[i], b[i]);
}

// Each thread calls another function.
__global__ void apply_mixed(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = operations[i % 4](a[i], b[i]);
}

static int reference(int op, int a, int b) {
  if (op == 0) {
    int g = a > b ? a : b;
    while (g > 0 && (a % g || b % g)) g--;
    return g;
  }
  if (op == 1) {
    long r = 1;
    while (b-- > 0) r = r * a % 1009;
    return (int)r;
  }
  return a * (op == 2 ? 8 : 32) + b;
}

int main() {
  const int w = 50, h = 33, n = 500;
  blockFunction_t table[2];
  GO(cudaMemcpyFromSymbol(&table[0], pComputeSobel, sizeof(blockFunction_t)));
  GO(cudaMemcpyFromSymbol(&table[1], pComputeBox, sizeof(blockFunction_t)));
  GO(cudaMemcpyToSymbol(blockFunction_table, table, sizeof(table)));

  vector<unsigned char> image(w * h), got(w * h);
  for (int i = 0; i < w * h; i++) image[i] = (i % w) * 5 ^ (i / w) * 3;
  unsigned char *d_in, *d_out;
  GO(cudaMalloc(&d_in, w * h));
  GO(cudaMalloc(&d_out, w * h));
  GO(cudaMemcpy(d_in, image.data(), w * h, cudaMemcpyHostToDevice));
  map<pair<int, int>, string> names = {
      {{0, 0}, "sobel"}, {{0, 1}, "sobel, threshold"}, {{1, 0}, "box"}, {{1, 2}, "box, inverted"}};
  int wrong = 0;
  for (auto& [key, name] : names) {
    filter<<<dim3((w + 15) / 16, (h + 7) / 8), dim3(16, 8)>>>(d_in, d_out, w, h, 1.0f, key.first, key.second);
    GO(cudaMemcpy(got.data(), d_out, w * h, cudaMemcpyDeviceToHost));
    long sum = 0;
    for (int y = 0; y < h; y++)
      for (int x = 0; x < w; x++) {
        int p[9], e;
        for (int k = 0; k < 9; k++) {
          int u = x + k % 3 - 1, v = y + k / 3 - 1;
          p[k] = image[(v < 0 ? 0 : v >= h ? h - 1 : v) * w + (u < 0 ? 0 : u >= w ? w - 1 : u)];
        }
        if (key.first == 0)
          e = abs(p[2] + 2 * p[5] + p[8] - p[0] - 2 * p[3] - p[6]) +
              abs(p[0] + 2 * p[1] + p[2] - p[6] - 2 * p[7] - p[8]);
        else
          e = (p[0] + p[1] + p[2] + p[3] + p[4] + p[5] + p[6] + p[7] + p[8]) / 9;
        e = e > 255 ? 255 : e;
        if (key.second == 1) e = e > 150 ? 255 : 0;
        if (key.second == 2) e = 255 - e;
        wrong += abs(e - got[y * w + x]) > (key.first == 1 ? 1 : 0);
        sum += got[y * w + x] / 8;
      }
    cout << name << ": " << wrong << " wrong" << endl;
  }

  vector<int> a(n), b(n), out(n);
  for (int i = 0; i < n; i++) a[i] = 12 * (i % 40 + 1), b[i] = i % 30 + 1;
  int *d_a, *d_b, *d_c;
  GO(cudaMalloc(&d_a, n * sizeof(int)));
  GO(cudaMalloc(&d_b, n * sizeof(int)));
  GO(cudaMalloc(&d_c, n * sizeof(int)));
  GO(cudaMemcpy(d_a, a.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  GO(cudaMemcpy(d_b, b.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int op = 0; op < 5; op++) {
    if (op < 4) {
      BinaryOp f;
      GO(cudaMemcpyFromSymbol(&f, operations, sizeof(f), op * sizeof(f)));
      apply<<<(n + 127) / 128, 128>>>(f, d_a, d_b, d_c, n);
    } else {
      apply_mixed<<<(n + 127) / 128, 128>>>(d_a, d_b, d_c, n);
    }
    GO(cudaGetLastError());
    GO(cudaMemcpy(out.data(), d_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    long sum = 0;
    for (int i = 0; i < n; i++) {
      wrong += out[i] != reference(op < 4 ? op : i % 4, a[i], b[i]);
      sum += out[i];
    }
    cout << "operation " << op << ": sum " << sum << endl;
  }
  for (void* p : {(void*)d_in, (void*)d_out, (void*)d_a, (void*)d_b, (void*)d_c}) cudaFree(p);
  cout << (wrong ? "FAILED" : "PASSED") << endl;
  return wrong ? 1 : 0;
}
