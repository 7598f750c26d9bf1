// Orders accesses without a barrier: through values that an atomic operation publishes after a fence.
#include <algorithm>

#include "check/checker.h"

namespace simt {

void Handovers::clear() {
  variables_.clear();
  taken_.clear();
  fenced_.clear();
  own_.clear();
}

void Handovers::fence(const Moment& now) {
  fenced_[now.block] = now.phase + 1;
  own_[{now.block, now.thread}] = now.phase + 1;
}

void Handovers::atomic(std::uintptr_t address, const Moment& now, bool reads, bool writes) {
  Variable& variable = variables_[address];
  if (reads && !variable.given.empty()) {
    auto& all = taken_[now.block];
    auto same = std::find_if(all.rbegin(), all.rend(), [&](const Taken& t) {
      return t.from == &variable && t.when.thread == now.thread && t.when.phase == now.phase;
    });
    if (same != all.rend())
      same->count = variable.given.size();
    else
      all.push_back({now, &variable, variable.given.size()});
  }
  if (!writes) return;
  const auto block = fenced_.find(now.block);
  if (block == fenced_.end()) return;
  const auto own = own_.find({now.block, now.thread});
  const bool now_fenced = own != own_.end() && own->second == now.phase + 1;
  // A fence of this thread in this phase publishes all earlier phases; a fence of any thread before a barrier publishes
  // the phases up to it.
  const std::uint64_t all_before = now_fenced ? now.phase : std::min(block->second, now.phase);
  if (!now_fenced && all_before == 0) return;
  variable.of_block.emplace(now.block, variable.given.size());
  variable.given.push_back({now, all_before, now_fenced});
}

bool Handovers::ordered(const Moment& before, const Moment& after, int depth) const {
  if (before.block == after.block && before.phase < after.phase) return true;
  if (depth > 4) return false;
  const auto all = taken_.find(after.block);
  if (all == taken_.end()) return false;
  for (const Taken& taken : all->second) {
    if (!(taken.when.phase < after.phase || (taken.when.phase == after.phase && taken.when.thread == after.thread)))
      continue;
    auto [from, to] = taken.from->of_block.equal_range(before.block);
    for (auto it = from; it != to; ++it) {
      if (it->second >= taken.count) continue;
      const Given& given = taken.from->given[it->second];
      if (before.phase < given.all_before) return true;
      // The publishing operation itself: it comes before whatever follows the operation that read its result.
      const auto word = variables_.find(before.word);
      if (word != variables_.end() && &word->second == taken.from && given.by.thread == before.thread &&
          given.by.phase == before.phase)
        return true;
      const bool earlier =
          before.phase < given.by.phase || (before.phase == given.by.phase && before.epoch <= given.by.epoch);
      if (given.own && given.by.thread == before.thread && earlier) return true;
    }
    if (depth == 4) continue;
    // Transitive: the publishing thread may have acquired the access from another thread.
    for (std::size_t i = 0; i < taken.count && i < 64; ++i) {
      const Moment& by = taken.from->given[i].by;
      if (by.block != before.block && by.block != after.block && ordered(before, by, depth + 1)) return true;
    }
  }
  return false;
}

void BlockHandovers::clear() {
  given_.clear();
  for (const unsigned thread : knowing_) known_[thread].clear();
  for (const unsigned thread : fences_) fenced_[thread] = false;
  knowing_.clear();
  fences_.clear();
}

void BlockHandovers::join(Epochs& into, const Epochs& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

BlockHandovers::Epochs& BlockHandovers::known(unsigned thread) {
  Epochs& own = known_[thread];
  if (own.empty()) knowing_.push_back(thread);
  return own;
}

void BlockHandovers::atomic(std::uintptr_t address, unsigned thread, unsigned epoch, const std::uint16_t* synced,
                            bool reads, bool writes) {
  if (reads) {
    const auto found = given_.find(address);
    if (found != given_.end()) join(known(thread), found->second);
  }
  if (!writes || !fenced_[thread]) return;
  Epochs& given = given_[address];
  join(given, known_[thread]);
  const unsigned first = thread / 32 * 32;
  if (given.size() < first + 32) given.resize(first + 32);
  for (unsigned lane = 0; lane < 32; ++lane) given[first + lane] = std::max(given[first + lane], synced[lane]);
  given[thread] = std::max(given[thread], static_cast<std::uint16_t>(epoch + 1));
}

void BlockHandovers::warp_synced(unsigned warp, unsigned lanes) {
  Epochs all;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1) join(all, known_[warp * 32 + lane]);
  if (all.empty()) return;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1) join(known(warp * 32 + lane), all);
}

}  // namespace simt
