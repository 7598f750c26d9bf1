// The part of the runtime that host code uses: the simulated device, errors, memory.
#pragma once

#include <cstddef>

#include <simt/runtime.h>

namespace simt {

// The limits of the device, which launches must not exceed. Set from Python (simt/devices.py).
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
  long long shared_per_block;             // without opt-in, 48 KiB
  long long shared_per_block_optin;       // with cudaFuncSetAttribute
  long long shared_per_multiprocessor;
  int memory_khz, memory_bus_bits;
  int copy_engines;
  bool has_ecc;
};
SIMT_API const Device& device();

// CUDA's error state. Codes are cudaError_t values.
SIMT_API int take_error();                       // cudaGetLastError: returns the error and clears it
SIMT_API int peek_error();                       // cudaPeekAtLastError
SIMT_API int sticky_error();                     // a kernel's failure, not a refused launch
SIMT_API int synchronize();  // waits for the device: shows what kernels printed; returns sticky_error()
SIMT_API void set_error(int code, const char* text);  // an API call failed
SIMT_API void note_returned();  // the call that launches a kernel returns the error
SIMT_API void drop_error(const char* call, int code, const char* name, const char* file,
                         int line);  // a call failed and its result is not used
SIMT_API const char* error_text(int code);  // the newest error's sentence if it has that code, or null

SIMT_API void* allocate(
    std::size_t bytes);  // null when there is no memory; poisoned as never written, guarded on request
SIMT_API void* allocate_at(std::size_t bytes,
                           const void* code);  // the same; code: of the program's call, null if no program frees it
// Why cudaMalloc cannot give so many bytes; null if it may.
SIMT_API const char* no_room(std::size_t bytes);
SIMT_API bool release(void* pointer);  // false: not a pointer that allocate returned
SIMT_API void close_to_host(void* pointer);  // from now on only kernels and the two below reach it
SIMT_API void register_host(void* pointer, std::size_t bytes);  // from now on kernels reach this memory of the host
SIMT_API void unregister_host(void* pointer);
SIMT_API void move_bytes(void* target, const void* source, std::size_t bytes);
SIMT_API void set_bytes(void* target, int byte, std::size_t bytes);
// Returns why memory cannot be copied or set, or null. target_device, source_device: whether each must be device
// memory. target_object, source_object: bytes to the end of a variable, as far as the compiler knows. source_bytes: where
// they are not `bytes`, as for rows with another pitch. Works in a program only, in which all device memory is known.
// `call` names the function.
SIMT_API const char* transfer_problem(const char* call, const void* target, bool target_device, const void* source,
                                      bool source_device, std::size_t bytes, std::size_t target_object = -1,
                                      std::size_t source_object = -1, std::size_t source_bytes = 0);
SIMT_API void note_symbol(const void* variable,
                          std::size_t bytes);  // the host has got the address of a __device__ variable
SIMT_API long long static_shared(const void* function);  // bytes of a kernel's __shared__ arrays, 0 if not known
SIMT_API int most_threads(const void* function);  // of a block, by __launch_bounds__
// Blocks of so many threads and bytes of shared memory, static and dynamic, that a multiprocessor holds at once.
// Registers are not known here.
SIMT_API int resident_blocks(unsigned long long threads, unsigned long long shared);
SIMT_API void allow_shared(const void* function, int bytes);  // cudaFuncSetAttribute(MaxDynamicSharedMemorySize)

}  // namespace simt
