// Second names, with a _ at the end, of what rewritten sources call: a source that defines a macro with the usual name
// gets these (simt/frontend/rewrite.py).
#pragma once

#include <simt/cuda_api.h>
#include <simt/graphs.h>
#include <simt/runtime.h>

namespace simt {
using Site_ = Site;
#ifdef SIMT_CHECK
using Dropped_ = Dropped;
constexpr void reach_end_(const char* function) { reach_end(function); }
#endif

SIMT_INLINE Config config_(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) {
  return {grid, block, shared, stream};
}
template <class F, class... P>
TypedLaunch<F, P...> launch_(Site site, void (*kernel)(P...), F call, Config config) {
  return launch(site, kernel, call, config);
}
template <class F>
DeducedLaunch<F, NotFound> launch_(Site site, F call, Config config) {
  return launch(site, call, config);
}
template <class F, class Find>
  requires(!std::is_pointer_v<F>)
DeducedLaunch<F, Find> launch_(Site site, F call, Find find, Config config) {
  return launch(site, call, find, config);
}
template <class F>
F* instance_(F*, std::type_identity_t<F>* kernel) {
  return kernel;
}
template <class... P>
auto instance_(AnyKernel*, void (*kernel)(P...)) {
  return kernel;
}
template <class... P>
NamedKernel<P...> named_(void (*kernel)(P...), const char* name, const char* parameters, int defined, int max_threads) {
  return {kernel, name, parameters, defined, max_threads};
}
template <class... P>
void* erase_(void (*kernel)(P...), const char* name, const char* parameters, int defined, int max_threads,
             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return erase(kernel, name, parameters, defined, max_threads, file, line);
}
template <class... A>
SIMT_INLINE void* dynamic_shared_(A... arguments) {
  return dynamic_shared(arguments...);
}
template <class... A>
SIMT_INLINE int print_(const char* format, A... arguments) {
  return print(format, arguments...);
}
template <class T>
SIMT_INLINE void local_(T& variable, const char* name) {
  local(variable, name);
}
template <class T>
SIMT_INLINE std::remove_cvref_t<T> whole_(std::remove_cvref_t<T> value) {
  return value;
}
template <class T>
SIMT_INLINE T returned_(T value) {
  return value;
}
}  // namespace simt
