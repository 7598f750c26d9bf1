// Prints sums over the results of cuda_fp8.h, which the host computes: of every half, bfloat16 and 8-bit number, and of
// random and midway numbers. The lines to expect (test_fp8_values.py) come from this program with CUDA 13.0's header.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

// FNV-1a of 64 bits.
struct Sum {
  const char* name;
  uint64_t value = 1469598103934665603ull;
  unsigned count = 0;
  explicit Sum(const char* name) : name(name) {}
  ~Sum() { printf("%s %u %016llx\n", name, count, (unsigned long long)value); }
  void add(uint64_t x) {
    for (int i = 0; i < 8; ++i) value = (value ^ (x >> 8 * i & 255)) * 1099511628211ull;
    ++count;
  }
  void add(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    add((uint64_t)(std::isnan(x) ? 1 : bits));
  }
};

uint64_t state = 88172645463325252ull;
uint64_t draw() {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

void narrow(__nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  Sum halves("half"), brains("bfloat16"), floats("float"), doubles("double"), ties("midway");
  for (int i = 0; i < 65536; ++i) {
    __half_raw h;
    __nv_bfloat16_raw b;
    h.x = b.x = i;
    halves.add((uint64_t)__nv_cvt_halfraw_to_fp8(h, saturation, kind));
    brains.add((uint64_t)__nv_cvt_bfloat16raw_to_fp8(b, saturation, kind));
  }
  for (int i = 0; i < 200000; ++i) {
    uint64_t bits = draw();
    uint32_t half = bits >> 32;
    if (i & 1) {  // of a size near those of 8 bits
      half = (half & 0x81ffffff) | (uint32_t)(0x32000000 + (draw() % 20 << 24));
      bits = (bits & 0x800fffffffffffffull) | (uint64_t)(1003 + draw() % 40) << 52;
    }
    float f;
    double d;
    memcpy(&f, &half, sizeof f);
    memcpy(&d, &bits, sizeof d);
    floats.add((uint64_t)__nv_cvt_float_to_fp8(f, saturation, kind));
    doubles.add((uint64_t)__nv_cvt_double_to_fp8(d, saturation, kind));
  }
  for (int i = 0; i < 255; ++i) {
    const __half_raw a = __nv_cvt_fp8_to_halfraw(i, kind), b = __nv_cvt_fp8_to_halfraw(i + 1, kind);
    const double middle = ((double)__half2float(a) + (double)__half2float(b)) / 2;
    for (double factor : {1 - 1e-15, 1.0, 1 + 1e-15})
      ties.add((uint64_t)__nv_cvt_double_to_fp8(middle * factor, saturation, kind));
    const float2 two = {(float)middle, -(float)middle * 1.5f};
    ties.add((uint64_t)__nv_cvt_float2_to_fp8x2(two, saturation, kind));
  }
}

template <class T> void convert(const char* name) {
  Sum from(name), to(name);
  for (int i = 0; i < 256; ++i) {
    T t;
    t.__x = i;
    const float f = float(t);
    from.add(f);
    from.add((float)double(t));
    from.add(__bfloat162float(__nv_bfloat16(t)));
    from.add(__half2float(__half(t)));
    for (uint64_t bits : {(uint64_t)bool(t), (uint64_t)(uint8_t)(signed char)t, (uint64_t)(unsigned char)t,
                          (uint64_t)(uint16_t)(short)t, (uint64_t)(unsigned short)t})
      from.add(bits);
    if (!std::isfinite(f)) continue;
    from.add((uint64_t)(uint32_t)(int)t);
    from.add((uint64_t)(long long)t);
    if (f >= 0) from.add((uint64_t)(unsigned)t);
    if (f >= 0) from.add((uint64_t)(unsigned long long)t);
  }
  for (int i = -70000; i < 70000; i += 7)
    for (T t : {T(i), T((long long)i * 1000), T((short)i), T((unsigned short)i), T((unsigned)i), T((float)i / 17),
                T((double)i / 1700), T(__float2half((float)i / 170)), T(__float2bfloat16((float)i / 1.7f))})
      to.add((uint64_t)t.__x);
}

int main() {
  for (auto kind : {__NV_E4M3, __NV_E5M2})
    for (auto saturation : {__NV_NOSAT, __NV_SATFINITE}) narrow(saturation, kind);
  for (auto kind : {__NV_E4M3, __NV_E5M2}) {
    Sum halves("to half");
    for (int i = 0; i < 65536; ++i) {
      const __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(i, kind);
      halves.add((uint64_t)h.x | (uint64_t)h.y << 16);
    }
  }
  convert<__nv_fp8_e4m3>("e4m3");
  convert<__nv_fp8_e5m2>("e5m2");
  Sum vectors("vectors");
  for (int i = 0; i < 1000; ++i) {
    const float4 f = {i * 0.7f, -i * 0.01f, 1.0f / (i + 1), i * i * 3.0f};
    const __half2 low = __floats2half2_rn(f.x, f.y), high = __floats2half2_rn(f.z, f.w);
    vectors.add((uint64_t)__nv_fp8x4_e4m3(f).__x);
    vectors.add((uint64_t)__nv_fp8x4_e5m2(f).__x);
    vectors.add((uint64_t)__nv_fp8x2_e4m3(float2{f.x, f.w}).__x);
    vectors.add((uint64_t)__nv_fp8x4_e5m2(low, high).__x);
    vectors.add(float4(__nv_fp8x4_e4m3(f)).y);
    vectors.add(float2(__nv_fp8x2_e5m2(double2{f.x, f.y})).y);
  }
}
