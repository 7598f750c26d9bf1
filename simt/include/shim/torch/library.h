// torch's registration of operators. A build with probes is loaded next to the plain build, which has registered them.
#pragma once

#include_next <torch/library.h>

#ifdef SIMT_PROBED
#define SIMT_UNREGISTERED(m) \
  [[maybe_unused]] static void C10_CONCATENATE(simt_unregistered_, C10_UID)(torch::Library & m)
#undef TORCH_LIBRARY
#define TORCH_LIBRARY(ns, m) SIMT_UNREGISTERED(m)
#undef TORCH_LIBRARY_FRAGMENT
#define TORCH_LIBRARY_FRAGMENT(ns, m) SIMT_UNREGISTERED(m)
#undef TORCH_LIBRARY_IMPL
#define TORCH_LIBRARY_IMPL(ns, k, m) SIMT_UNREGISTERED(m)
#endif
