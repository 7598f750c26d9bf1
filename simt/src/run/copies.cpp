// Keeps asynchronous copies into shared memory from the call that starts them until a thread has waited for them.
#include <algorithm>

#include "run/worker.h"

namespace simt {
namespace {

Copies& own() { return this_worker->block->copies[cursor.current]; }

bool none() { return this_worker->block->copies.empty(); }

void begins(Worker& worker, const void* target, std::size_t bytes, CopyBits bits, const void* code) {
  if (worker.checker) worker.checker->copy_begins(reinterpret_cast<std::uintptr_t>(target), bytes, bits, code);
}

void arrives(const void* target, std::size_t bytes) {
  if (Worker& worker = *this_worker; worker.checker)
    worker.checker->copy_arrives(reinterpret_cast<std::uintptr_t>(target), bytes);
}

}  // namespace

void copy_later(void* target, std::size_t bytes, CopyBits bits) {
  Worker& worker = *this_worker;
  const Critical critical(worker);
  if (none()) worker.block->copies.resize(worker.block->count);
  Copies& copies = own();
  begins(worker, target, bytes, bits, __builtin_return_address(0));
  copies.waiting.push_back({target, bits, static_cast<unsigned>(bytes), copies.committed + 1});
}

bool copies_bring(const char* piece, std::size_t bytes, const char* these) {
  const Block& block = *this_worker->block;
  auto differs = [&](const void* target, std::size_t copied, const CopyBits& bits) {
    const auto* to = static_cast<const char*>(target);
    for (std::size_t i = 0; i < bytes; ++i) {
      const char* at = piece + i;
      if (at >= to && at < to + copied && reinterpret_cast<const char*>(&bits)[at - to] != these[i]) return true;
    }
    return false;
  };
  for (const Copies& own : block.copies)
    for (std::size_t i = own.first; i < own.waiting.size(); ++i)
      if (differs(own.waiting[i].target, own.waiting[i].bytes, own.waiting[i].bits)) return false;
  for (std::size_t i = block.placed_from; i < block.placed_copies.size(); ++i) {
    const PlacedCopy& copy = block.placed_copies[i];
    if (copy.place && differs(copy.target, copy.bytes, copy.bits)) return false;
  }
  return true;
}

unsigned commit_copies() {
  Worker& worker = *this_worker;
  const Critical critical(worker);
  if (none()) worker.block->copies.resize(worker.block->count);
  return ++own().committed;
}

unsigned committed_copies() { return none() ? 0 : own().committed; }

Arrival next_arrival(unsigned batch) {
  if (none()) return {nullptr, 0};
  Copies& copies = own();
  if (copies.first == copies.waiting.size() || copies.waiting[copies.first].batch > batch) return {nullptr, 0};
  const Copies::Copy copy = copies.waiting[copies.first++];
  this_worker->block->copied = copy.bits;
  if (copies.first * 2 >= copies.waiting.size()) {      // a pipeline may never become empty
    copies.waiting.erase(copies.waiting.begin(), copies.waiting.begin() + static_cast<std::ptrdiff_t>(copies.first));
    copies.first = 0;
  }
  arrives(copy.target, copy.bytes);
  return {copy.target, copy.bytes};
}

void copy_later_at(const volatile void* place, void* target, std::size_t bytes, CopyBits bits) {
  Worker& worker = *this_worker;
  const Critical critical(worker);
  begins(worker, target, bytes, bits, __builtin_return_address(0));
  worker.block->placed_copies.push_back({place, target, bits, bytes});
}

Arrival next_arrival_at(const volatile void* place) {
  Block& block = *this_worker->block;
  auto& all = block.placed_copies;
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(block.placed_from);
  const auto found = std::find_if(from, all.end(), [&](const PlacedCopy& copy) { return copy.place == place; });
  if (found == all.end()) return {nullptr, 0};
  const PlacedCopy copy = *found;
  block.copied = copy.bits;
  found->place = nullptr;
  while (block.placed_from < all.size() && !all[block.placed_from].place) ++block.placed_from;
  if (block.placed_from == all.size()) {
    all.clear();
    block.placed_from = 0;
  }
  arrives(copy.target, copy.bytes);
  return {copy.target, copy.bytes};
}

CopyBits arrived_bits() { return this_worker->block->copied; }

bool in_shared(const void* address) {
  const Worker& worker = *this_worker;
  const auto* at = static_cast<const char*>(address);
  if (at >= worker.dynamic_base && at < worker.dynamic_base + worker.job->launch->config.shared) return true;
  const Module* module = worker.job->module;
  if (!module) return true;      // nothing is known
  for (const auto& array : module->shared) {
    const char* from = module->address_of(array);
    if (at >= from && at < from + array.bytes) return true;
  }
  return false;
}

}  // namespace simt
