// title: layouts of data: arrays of structs and structs of arrays, __align__, unions, bit fields, enums, packed words
// features: device_structs, alignment, unions, bit_fields, bit_operations

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define LEN 1024

#define CHECK(call)                                                                \
  {                                                                                \
    const cudaError_t error = call;                                                \
    if (error != cudaSuccess) {                                                    \
      printf("Error: %s:%d, %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(1);                                                                     \
    }                                                                              \
  }

struct innerStruct {
  float x;
  float y;
};
struct __align__(8) alignedStruct {
  float x;
  float y;
};
struct innerArray {
  float x[LEN];
  float y[LEN];
};

__global__ void testInnerStruct(const innerStruct* data, innerStruct* result, const int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    innerStruct tmp = data[i];
    tmp.x += 10.f;
    tmp.y += 20.f;
    result[i] = tmp;
  }
}

__global__ void testInnerArray(const innerArray* data, innerArray* result, const int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float tmpx = data->x[i];
    float tmpy = data->y[i];
    tmpx += 10.f;
    tmpy += 20.f;
    result->x[i] = tmpx;
    result->y[i] = tmpy;
  }
}

__global__ void testAligned(const alignedStruct* data, alignedStruct* result, const int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    alignedStruct t = data[i];
    result[i] = {t.x + 10.f, t.y + 20.f};
  }
}

// A date in 16 bits, a flag register, and a tagged union
struct Date {
  unsigned short day : 5;
  unsigned short month : 4;
  unsigned short year : 7;
};
enum class Kind : uint8_t { integer, real, pair };
struct alignas(16) Variant {
  Kind kind;
  union {
    int i;
    float f;
    struct {
      short first, second;
    };
  };
};
union Color {
  uint32_t rgba;
  struct {
    uint8_t r, g, b, a;
  } part;
  uchar4 vector;
};

__global__ void next_day(Date* dates, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Date d = dates[i];
  const int length = d.month == 2 ? 28 + (d.year % 4 == 0) : 30 + ((d.month + (d.month > 7)) & 1);
  if (d.day < length) {
    d.day++;
  } else {
    d.day = 1;
    if (d.month == 12) d.year++;
    d.month = d.month % 12 + 1;
  }
  dates[i] = d;
}

__global__ void evaluate(const Variant* v, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  switch (v[i].kind) {
    case Kind::integer: out[i] = v[i].i; break;
    case Kind::real: out[i] = v[i].f; break;
    case Kind::pair: out[i] = v[i].first * 1000.0 + v[i].second; break;
  }
}

__global__ void swap_channels(Color* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Color x = c[i], y;
  y.vector = make_uchar4(x.part.b, x.part.g, x.part.r, 255 - x.vector.w);
  y.rgba = __byte_perm(y.rgba, 0, 0x3210) ^ 0x00000100u;
  c[i].rgba = y.rgba;
}

template <typename T>
struct Both {
  T *host, *device;
  int n;
  explicit Both(int n) : host((T*)calloc(n, sizeof(T))), n(n) { CHECK(cudaMalloc((void**)&device, n * sizeof(T))); }
  ~Both() { free(host), cudaFree(device); }
  void up() { CHECK(cudaMemcpy(device, host, n * sizeof(T), cudaMemcpyHostToDevice)); }
  void down() { CHECK(cudaMemcpy(host, device, n * sizeof(T), cudaMemcpyDeviceToHost)); }
};

int main() {
  static_assert(sizeof(Date) == 2 && sizeof(Color) == 4 && sizeof(Variant) == 16 && alignof(alignedStruct) == 8,
                "layout");
  static_assert(offsetof(Variant, i) == offsetof(Variant, f), "a union");
  int wrong = 0;
  Both<innerStruct> aos(LEN);
  Both<alignedStruct> aligned(LEN);
  Both<innerArray> soa(1);
  for (int i = 0; i < LEN; i++) {
    aos.host[i].x = aligned.host[i].x = soa.host->x[i] = i % 37;
    aos.host[i].y = aligned.host[i].y = soa.host->y[i] = i % 11;
  }
  aos.up(), aligned.up(), soa.up();
  testInnerStruct<<<LEN / 128, 128>>>(aos.device, aos.device, LEN);
  testAligned<<<1, 96>>>(aligned.device, aligned.device, LEN);
  testInnerArray<<<LEN / 128, 128>>>(soa.device, soa.device, LEN);
  aos.down(), aligned.down(), soa.down();
  for (int i = 0; i < LEN; i++) {
    float x = i % 37 + 10, y = i % 11 + 20;
    wrong += aos.host[i].x != x || aos.host[i].y != y || aligned.host[i].x != x || aligned.host[i].y != y;
    wrong += soa.host->x[i] != x || soa.host->y[i] != y;
  }
  printf("structs: %d wrong\n", wrong);

  const int days = 400;
  Both<Date> dates(days);
  Date d = {27, 12, 23};  // 27 December 2023, and the days after it
  int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  Date all[days + 1];
  for (int i = 0; i <= days; i++) {
    all[i] = d;
    int length = lengths[d.month - 1] + (d.month == 2 && d.year % 4 == 0);
    int next = d.day + 1;
    d.day = next > length ? 1 : next;
    if (next > length) {
      d.year += d.month == 12;
      d.month = d.month == 12 ? 1 : d.month + 1;
    }
  }
  memcpy(dates.host, all, days * sizeof(Date));
  dates.up();
  next_day<<<4, 100>>>(dates.device, days);
  dates.down();
  for (int i = 0; i < days; i++) {
    Date a = dates.host[i], b = all[i + 1];
    wrong += a.day != b.day || a.month != b.month || a.year != b.year;
  }
  printf("last day: %d.%d.20%d, %d wrong\n", dates.host[days - 1].day, dates.host[days - 1].month,
         dates.host[days - 1].year, wrong);

  const int n = 300;
  Both<Variant> variants(n);
  Both<double> values(n);
  Both<Color> colors(n);
  for (int i = 0; i < n; i++) {
    Variant& v = variants.host[i];
    v.kind = (Kind)(i % 3);
    if (i % 3 == 0) v.i = -i;
    if (i % 3 == 1) v.f = i / 4.0f;
    if (i % 3 == 2) v.first = i, v.second = i + 1;
    colors.host[i].rgba = i * 0x01030507u;
  }
  variants.up(), colors.up();
  evaluate<<<3, 100>>>(variants.device, values.device, n);
  swap_channels<<<3, 100>>>(colors.device, n);
  CHECK(cudaGetLastError());
  values.down(), colors.down();
  double sum = 0;
  for (int i = 0; i < n; i++) {
    double e = i % 3 == 0 ? -i : i % 3 == 1 ? i / 4.0 : i * 1000.0 + i + 1;
    wrong += values.host[i] != e;
    sum += values.host[i];
    uint32_t c = i * 0x01030507u;
    uint32_t t = (c >> 16 & 255) | (c & 0xff00) | (c & 255) << 16 | (255 - (c >> 24)) << 24;
    wrong += colors.host[i].rgba != (t ^ 0x100);
  }
  printf("variants: %.2f, colour %08x, %d wrong\n", sum, colors.host[77].rgba, wrong);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong != 0;
}
