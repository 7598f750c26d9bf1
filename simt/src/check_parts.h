// What the parts of the checker share.
#pragma once

#include <mutex>

#include "check.h"

namespace simt {

extern std::mutex check_mutex;      // of everything that workers share
extern CheckedLaunch checked;       // one launch runs at a time
inline constexpr Slot empty_slot{std::uintptr_t(1) << 63, 16, nullptr, 0, Slot::unknown};

uint3 thread_at(unsigned linear, const dim3& block);
const char* verb(unsigned access);
void note_atomic(const void* code, unsigned kind, const char* kernel);

}  // namespace simt
