// Records for a monitor who wrote the bytes in device memory: the host between launches, a kernel, or something else
// while a kernel ran.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "run/monitor.h"
#include "run/worker.h"

namespace simt {
namespace {

constexpr std::size_t most_bytes = 256 << 20;      // that are kept to compare with

std::mutex mutex;
std::map<std::uintptr_t, std::vector<char>> kept;      // the bytes after the last launch, by their address
std::size_t kept_bytes = 0;

// Calls look(base, bytes) for all memory that a kernel of this job may read or write, except for inputs, which lie in
// memory of the monitor's own.
template <class Look>
void visit(const Job& job, Look look) {
  std::vector<Extent> others = noted_arguments();
  if (job.module)
    for (const Variable& variable : job.module->variables)
      if (!variable.name.empty()) others.push_back({job.module->base + variable.offset, variable.bytes});
  visit_live([&](std::uintptr_t base, std::size_t bytes) {
    look(base, bytes);
    std::erase_if(others, [&](const Extent& e) { return e.base >= base && e.base < base + bytes; });
  });
  for (const Extent& each : others)
    if (!in_input(each.base)) look(each.base, each.bytes);
}

// Keeps a copy of what lies there now. Reports that the records are not complete if there are too many bytes.
void keep(std::uintptr_t base, std::size_t bytes) {
  std::vector<char>& copy = kept[base];
  if (kept_bytes - copy.size() + bytes > most_bytes) return report_overflow();
  kept_bytes += bytes - copy.size();
  const auto* from = reinterpret_cast<const char*>(base);
  copy.assign(from, from + bytes);
}

std::size_t element_bytes() { return static_cast<std::size_t>(std::clamp<std::int64_t>(orders().record, 1, 16)); }

// Returns whether all elements are the same: as much of such a block as one element says all about it.
bool is_uniform(const std::vector<char>& data) {
  const std::size_t element = element_bytes();
  return data.size() > element && std::memcmp(data.data(), data.data() + element, data.size() - element) == 0;
}

// Replaces the elements that the host has not changed by poison: a kernel may have written them.
void hide_unchanged(std::vector<char>& now, const std::vector<char>& before) {
  const std::size_t element = element_bytes();
  for (std::size_t at = 0; at + element <= now.size(); at += element) {
    if (std::memcmp(now.data() + at, before.data() + at, element) != 0) continue;
    for (std::size_t i = at; i < at + element; ++i)
      now[i] = reinterpret_cast<const char*>(&global_poison)[i % sizeof global_poison];
  }
}

// Returns whether one of these extents, which are in order, has bytes in common with a piece of memory.
bool touches(const std::vector<Extent>& extents, std::uintptr_t address, std::size_t bytes) {
  const auto after = std::upper_bound(extents.begin(), extents.end(), address + bytes - 1,
                                      [](std::uintptr_t a, const Extent& e) { return a < e.base; });
  return after != extents.begin() && std::prev(after)->base + std::prev(after)->bytes > address;
}

}  // namespace

void forget_records() {
  std::lock_guard lock(mutex);
  kept.clear();
  kept_bytes = 0;
}

void record_before(const Job& job) {
  std::lock_guard lock(mutex);
  const auto least = static_cast<std::size_t>(std::max<std::int64_t>(1, orders().least));
  visit(job, [&](std::uintptr_t base, std::size_t bytes) {
    const auto* now = reinterpret_cast<const char*>(base);
    const auto found = kept.find(base);
    const bool known = found != kept.end() && found->second.size() == bytes;
    if (known && std::memcmp(found->second.data(), now, bytes) == 0) return;
    if (bytes >= least) {
      std::vector<char> changed(now, now + bytes);
      if (known) hide_unchanged(changed, found->second);
      append_record(Writer::host, changed.data(), is_uniform(changed) ? element_bytes() : bytes);
    }
    keep(base, bytes);
  });
}

void record_after(const Job& job, const std::vector<Extent>* probed) {
  std::lock_guard lock(mutex);
  const std::size_t element = element_bytes();
  std::vector<char> by_kernel, meanwhile;
  visit(job, [&](std::uintptr_t base, std::size_t bytes) {
    const auto* now = reinterpret_cast<const char*>(base);
    const auto found = kept.find(base);
    if (found == kept.end() || found->second.size() != bytes) return;
    by_kernel.clear();
    meanwhile.clear();
    for (std::size_t at = 0; at + element <= bytes; at += element) {
      if (std::memcmp(now + at, found->second.data() + at, element) == 0) continue;
      auto& changed = !probed || touches(*probed, base + at, element) ? by_kernel : meanwhile;
      changed.insert(changed.end(), now + at, now + at + element);
    }
    if (!meanwhile.empty()) append_record(Writer::meanwhile, meanwhile.data(), meanwhile.size());
    if (!by_kernel.empty()) append_record(Writer::kernel, by_kernel.data(), by_kernel.size());
    keep(base, bytes);
  });
}

}  // namespace simt
