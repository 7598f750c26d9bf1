// What host code may ask of the runtime: the device that is played, errors, memory.
#pragma once

#include <cstddef>

#include <simt/runtime.h>

namespace simt {

// Limits of the device that launches are held to; set from Python (simt/devices.py).
struct Device {
  char name[64];
  int major, minor;                 // compute capability
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int registers_per_multiprocessor;
  int clock_khz;
  long long l2_bytes;
  long long global_bytes;
  long long shared_per_block;             // without asking, 48 KiB
  long long shared_per_block_optin;       // with cudaFuncSetAttribute
  long long shared_per_multiprocessor;
};
SIMT_API const Device& device();

// CUDA's error state. Codes are cudaError_t values.
SIMT_API int take_error();                       // cudaGetLastError: returns the error and clears it
SIMT_API int peek_error();                       // cudaPeekAtLastError
SIMT_API int sticky_error();                     // what waiting for the device returns: a kernel's failure, not a refused launch
SIMT_API void set_error(int code, const char* text);   // an API call failed
SIMT_API const char* error_text(int code);       // the newest error's sentence if it has that code, or null

SIMT_API void* allocate(std::size_t bytes);      // null when there is no memory; marked as never written, guarded if asked for
SIMT_API bool release(void* pointer);            // false: not a pointer that allocate returned
SIMT_API void allow_shared(const void* function, int bytes);   // cudaFuncSetAttribute(MaxDynamicSharedMemorySize)

}  // namespace simt
