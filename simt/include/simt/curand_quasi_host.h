// The host functions of cuRAND's quasi-random generators: their dimensions, and the direction vectors for kernels.
#pragma once

#include <simt/curand_host.h>

namespace simt {
template <class Vectors, class Word>
curandStatus_t get_directions(Vectors** vectors, curandDirectionVectorSet_t set, curandDirectionVectorSet_t known) {
  if (set != known) return CURAND_STATUS_OUT_OF_RANGE;
  *vectors = (Vectors*)directions<Word>();
  return *vectors ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
}
}  // namespace simt

inline curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned dimensions) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (!generator->is_quasi()) return CURAND_STATUS_TYPE_ERROR;
  if (dimensions < 1 || dimensions > simt::library_dimensions) return CURAND_STATUS_OUT_OF_RANGE;
  if (dimensions > simt::sobol_dimensions) {
    fprintf(stderr,
            "simt: curandSetQuasiRandomGeneratorDimensions got %u dimensions. simt has Sobol's first %d, cuRAND has "
            "%u. Use fewer here.\n",
            dimensions, simt::sobol_dimensions, simt::library_dimensions);
    return CURAND_STATUS_OUT_OF_RANGE;
  }
  generator->sobol.dimensions = dimensions;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t* vectors[],
                                                  curandDirectionVectorSet_t set) {
  return simt::get_directions<curandDirectionVectors32_t, unsigned>(vectors, set, CURAND_DIRECTION_VECTORS_32_JOEKUO6);
}
inline curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t* vectors[],
                                                  curandDirectionVectorSet_t set) {
  return simt::get_directions<curandDirectionVectors64_t, unsigned long long>(vectors, set,
                                                                              CURAND_DIRECTION_VECTORS_64_JOEKUO6);
}
