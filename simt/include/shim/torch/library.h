// torch's registration of operators. Tensors are on the CPU here, and a kernel that a source registers for CUDA runs on
// them. A build with probes is loaded next to the plain build, which has registered the operators.
#pragma once

#include_next <torch/library.h>

namespace simt {
// Returns the key for which an implementation is registered. One for CUDA serves the CPU's tensors. One for the CPU
// serves them only if the operator has none for CUDA, as CompositeExplicitAutograd gives way to a backend's own key.
constexpr c10::DispatchKey registered_key(c10::DispatchKey key) {
  switch (key) {
    case c10::DispatchKey::CUDA: return c10::DispatchKey::CPU;
    case c10::DispatchKey::CPU: return c10::DispatchKey::CompositeExplicitAutograd;
    case c10::DispatchKey::AutogradCUDA: return c10::DispatchKey::AutogradCPU;
    case c10::DispatchKey::AutogradCPU: return c10::DispatchKey::Autograd;
    default: return key;
  }
}
}  // namespace simt

#undef TORCH_LIBRARY_IMPL
#ifdef SIMT_PROBED
#define SIMT_UNREGISTERED(m) \
  [[maybe_unused]] static void C10_CONCATENATE(simt_unregistered_, C10_UID)(torch::Library & m)
#undef TORCH_LIBRARY
#define TORCH_LIBRARY(ns, m) SIMT_UNREGISTERED(m)
#undef TORCH_LIBRARY_FRAGMENT
#define TORCH_LIBRARY_FRAGMENT(ns, m) SIMT_UNREGISTERED(m)
#define TORCH_LIBRARY_IMPL(ns, k, m) SIMT_UNREGISTERED(m)
#else
#define TORCH_LIBRARY_IMPL(ns, k, m) SIMT_LIBRARY_IMPL(ns, k, m, C10_UID)
#define SIMT_LIBRARY_IMPL(ns, k, m, uid)                                                    \
  static void C10_CONCATENATE(simt_registers_, uid)(torch::Library&);                       \
  static const torch::detail::TorchLibraryInit C10_CONCATENATE(simt_library_, uid)(         \
      torch::Library::IMPL, &C10_CONCATENATE(simt_registers_, uid), C10_STRINGIZE(ns),      \
      std::make_optional(::simt::registered_key(c10::DispatchKey::k)), __FILE__, __LINE__); \
  void C10_CONCATENATE(simt_registers_, uid)(torch::Library & m)
#endif
