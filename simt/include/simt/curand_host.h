// cuRAND's host functions: generators that fill an array in device memory, or in host memory.
#pragma once

#include <simt/cuda_api.h>
#include <simt/curand_lanes.h>

#define CURANDAPI
#define CURAND_VER_MAJOR 10
#define CURAND_VER_MINOR 4
#define CURAND_VER_PATCH 0
#define CURAND_VERSION (CURAND_VER_MAJOR * 1000 + CURAND_VER_MINOR * 100 + CURAND_VER_PATCH)

typedef enum curandStatus {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_ALLOCATION_FAILED = 102,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_OUT_OF_RANGE = 104,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE = 202,
  CURAND_STATUS_INITIALIZATION_FAILED = 203,
  CURAND_STATUS_ARCH_MISMATCH = 204,
  CURAND_STATUS_INTERNAL_ERROR = 999,
} curandStatus_t;

// Of the others simt refuses the names (simt/frontend/refuse.py).
typedef enum curandRngType {
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  CURAND_RNG_QUASI_DEFAULT = 200,
  CURAND_RNG_QUASI_SOBOL32 = 201,
  CURAND_RNG_QUASI_SOBOL64 = 203,
} curandRngType_t;

typedef enum curandOrdering {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_LEGACY = 103,
  CURAND_ORDERING_PSEUDO_DYNAMIC = 104,  // any order that suits the device: the default one here
  CURAND_ORDERING_QUASI_DEFAULT = 201,
} curandOrdering_t;

typedef enum curandDirectionVectorSet {
  CURAND_DIRECTION_VECTORS_32_JOEKUO6 = 101,
  CURAND_DIRECTION_VECTORS_64_JOEKUO6 = 103,
} curandDirectionVectorSet_t;

struct curandGenerator_st {
  curandRngType_t type;
  bool on_host;
  curandOrdering_t ordering = CURAND_ORDERING_PSEUDO_DEFAULT;
  unsigned long long seed = 0, offset = 0;
  cudaStream_t stream = nullptr;
  simt::Lanes<curandStateXORWOW> xorwow;
  simt::Lanes<curandStateMRG32k3a> mrg;
  simt::PhiloxLanes philox;
  simt::Mt19937 mt;
  simt::SobolPoints sobol;

  bool is_quasi() const { return type == CURAND_RNG_QUASI_SOBOL32 || type == CURAND_RNG_QUASI_SOBOL64; }
  bool has_pairs() const { return type == CURAND_RNG_PSEUDO_XORWOW || type == CURAND_RNG_PSEUDO_MRG32K3A; }
  // The offset at which a new seed or order begins: the lanes' turns count, of Philox those after the offset, too.
  unsigned long long position() const {
    if (type == CURAND_RNG_PSEUDO_XORWOW) return xorwow.position;
    if (type == CURAND_RNG_PSEUDO_MRG32K3A) return mrg.position;
    if (type == CURAND_RNG_PSEUDO_MT19937) return 0;
    if (is_quasi()) return sobol.position;
    const unsigned long long turns = philox.position - philox.start;
    return turns ? offset + turns : philox.position * simt::philox_group + philox.used;
  }
  void begin(unsigned long long from) {
    offset = from;
    const unsigned few = 4096, many = 81920, philox_lanes = 65536;
    if (type == CURAND_RNG_PSEUDO_XORWOW) {
      xorwow.begin(seed, offset, few);
    } else if (type == CURAND_RNG_PSEUDO_MRG32K3A) {
      mrg.begin(seed, offset, ordering == CURAND_ORDERING_PSEUDO_LEGACY ? few : many);
    } else if (type == CURAND_RNG_PSEUDO_MT19937) {
      mt.begin((unsigned)seed);
    } else if (is_quasi()) {
      sobol.position = offset;
    } else {
      philox.begin(seed, offset / simt::philox_group, philox_lanes);
      philox.used = (unsigned)(offset % simt::philox_group);
    }
  }
  template <class T, class F>
  void fill(T* out, size_t n, const F& make) {
    if (type == CURAND_RNG_PSEUDO_XORWOW)
      simt::fill_from(xorwow, out, n, make);
    else if (type == CURAND_RNG_PSEUDO_MRG32K3A)
      simt::fill_from(mrg, out, n, make);
    else if (type == CURAND_RNG_PSEUDO_MT19937)
      for (size_t i = 0; i < n; ++i) out[i] = make.one(&mt);
    else if (type == CURAND_RNG_QUASI_SOBOL32)
      sobol.fill<unsigned>(out, n, make);
    else if (type == CURAND_RNG_QUASI_SOBOL64)
      sobol.fill<unsigned long long>(out, n, make);
    else
      simt::fill_from(philox, out, n, make);
  }
};
typedef struct curandGenerator_st* curandGenerator_t;

namespace simt {
inline curandStatus_t create(curandGenerator_t* generator, int type, bool on_host) {
  if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
  if (type == CURAND_RNG_QUASI_DEFAULT) type = CURAND_RNG_QUASI_SOBOL32;
  switch (type) {
    case CURAND_RNG_PSEUDO_XORWOW:
    case CURAND_RNG_PSEUDO_MRG32K3A:
    case CURAND_RNG_PSEUDO_MT19937:
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
    case CURAND_RNG_QUASI_SOBOL32:
    case CURAND_RNG_QUASI_SOBOL64: break;
    default: return CURAND_STATUS_TYPE_ERROR;
  }
  *generator = new curandGenerator_st{(curandRngType_t)type, on_host};
  if ((*generator)->is_quasi()) (*generator)->ordering = CURAND_ORDERING_QUASI_DEFAULT;
  (*generator)->begin(0);
  return CURAND_STATUS_SUCCESS;
}

// Generates into a buffer and copies it, since device memory is closed to the host.
template <class T, class F>
void fill_device(curandGenerator_t generator, T* out, size_t n, const F& make) {
  const size_t most = 1 << 14;
  T* buffer = new T[n < most ? n : most];
  generator->sobol.begin_call(n);
  for (size_t done = 0; done < n; done += most) {
    const size_t count = n - done < most ? n - done : most;
    generator->fill(buffer, count, make);
    move_bytes(out + done, buffer, count * sizeof(T));
  }
  generator->sobol.end_call();
  delete[] buffer;
}

// Inline, so that a wrong pointer is reported at the caller's line.
template <class T, class F>
SIMT_INLINE curandStatus_t generate(const char* call, curandGenerator_t generator, T* out, size_t n, const F& make) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (F::is_pair && n % 2 && generator->has_pairs()) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (generator->is_quasi() && n % generator->sobol.dimensions) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  if (n == 0) return CURAND_STATUS_SUCCESS;
  if (generator->on_host) {
    generator->sobol.begin_call(n);
    generator->fill(out, n, make);
    generator->sobol.end_call();
    return CURAND_STATUS_SUCCESS;
  }
  if (sticky_error()) return CURAND_STATUS_PREEXISTING_FAILURE;
  if (refuse_captured(generator->stream)) return CURAND_STATUS_LAUNCH_FAILURE;
  if (const char* why = transfer_problem(call, out, true, nullptr, false, n * sizeof(T))) {
    failed(cudaErrorIllegalAddress, why);
    return CURAND_STATUS_LAUNCH_FAILURE;
  }
  fill_device(generator, out, n, make);
  return CURAND_STATUS_SUCCESS;
}
}  // namespace simt

inline curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return simt::create(generator, type, false);
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return simt::create(generator, type, true);
}
inline curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  delete[] generator->xorwow.states;
  delete[] generator->mrg.states;
  delete[] generator->philox.states;
  delete[] generator->mt.states;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGetVersion(int* version) {
  *version = CURAND_VERSION;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->is_quasi()) return CURAND_STATUS_TYPE_ERROR;
  if (seed == generator->seed) return CURAND_STATUS_SUCCESS;  // which goes on where it was
  generator->seed = seed;
  generator->begin(generator->position());
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->type == CURAND_RNG_PSEUDO_MT19937) return CURAND_STATUS_TYPE_ERROR;
  generator->begin(offset);
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t ordering) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  const bool is_mt = generator->type == CURAND_RNG_PSEUDO_MT19937;
  bool known = ordering == CURAND_ORDERING_PSEUDO_DEFAULT || ordering == CURAND_ORDERING_PSEUDO_LEGACY;
  if (ordering == CURAND_ORDERING_PSEUDO_BEST) known = !is_mt || !generator->on_host;
  if (ordering == CURAND_ORDERING_PSEUDO_DYNAMIC) known = !is_mt && !generator->on_host;
  if (generator->is_quasi()) known = ordering == CURAND_ORDERING_QUASI_DEFAULT;
  if (!known) return CURAND_STATUS_OUT_OF_RANGE;
  generator->ordering = ordering;
  generator->begin(generator->position());
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {  // they are made when they are needed
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}

SIMT_INLINE curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* out, size_t n) {
  if (generator && generator->type == CURAND_RNG_QUASI_SOBOL64) return CURAND_STATUS_TYPE_ERROR;
  return simt::generate("curandGenerate", generator, out, n, simt::MakeBits{});
}
SIMT_INLINE curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* out, size_t n) {
  if (generator && generator->type != CURAND_RNG_QUASI_SOBOL64) return CURAND_STATUS_TYPE_ERROR;
  return simt::generate("curandGenerateLongLong", generator, out, n, simt::MakeLongBits{});
}
SIMT_INLINE curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* out, size_t n) {
  return simt::generate("curandGenerateUniform", generator, out, n, simt::MakeUniform{});
}
SIMT_INLINE curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* out, size_t n) {
  return simt::generate("curandGenerateUniformDouble", generator, out, n, simt::MakeUniformDouble{});
}
#define SIMT_GENERATE_NORMAL(name, T, Make)                                                          \
  SIMT_INLINE curandStatus_t name(curandGenerator_t generator, T* out, size_t n, T mean, T stddev) { \
    return simt::generate(#name, generator, out, n, simt::Make{mean, stddev});                       \
  }
SIMT_GENERATE_NORMAL(curandGenerateNormal, float, MakeNormal<false>)
SIMT_GENERATE_NORMAL(curandGenerateLogNormal, float, MakeNormal<true>)
SIMT_GENERATE_NORMAL(curandGenerateNormalDouble, double, MakeNormalDouble<false>)
SIMT_GENERATE_NORMAL(curandGenerateLogNormalDouble, double, MakeNormalDouble<true>)
#undef SIMT_GENERATE_NORMAL
SIMT_INLINE curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* out, size_t n, double lambda) {
  if (generator && !(lambda > 0)) return CURAND_STATUS_OUT_OF_RANGE;
  return simt::generate("curandGeneratePoisson", generator, out, n, simt::MakePoisson(lambda));
}
