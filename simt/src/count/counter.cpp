// Counts the blocks of one worker: chooses them, provides buffers for their events, and replays the events.
#include "count/counter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "count/parts.h"
#include "run/schedule.h"

namespace simt {

__thread Recorder recorder;

namespace {

constexpr double budget = 250e6;  // events of a launch that are counted unless the user says how many blocks
constexpr std::size_t words_per_block = 48 * 1024;
constexpr std::size_t fewest_words = 64, most_words = 512;
constexpr std::size_t stagger = 8;  // words between buffers, so that they do not share the same cache sets

std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

}  // namespace

std::shared_ptr<CountObserver> make_counter(Worker& worker) { return std::make_shared<Counter>(worker); }

void Counter::begin(Job& job) {
  job_ = &job;
  counting_ = job.counting;
  if (!module_) {
    module_ = job.module;
    flow_ = counting_->flow;
    probes_ = probes_of(*module_);
    constants_ = constants_of(*module_);
    index_.assign(std::size_t(1) << where_bits, nullptr);
    find_text(*module_, text_low_, text_high_);
  }
  met_array_.clear();
  find_regions();
  const dim3& shape = job.launch->config.block;
  threads_ = shape.x * shape.y * shape.z;
  at_.resize(threads_);
  stop_.resize(threads_);
  limit_.resize(threads_);
  larger_.resize(threads_);
  scratch_.resize(most_words);
  ignored_.resize(threads_);
  ignored_limit_.assign(threads_, scratch_.data() + scratch_.size());
  warps_.resize((threads_ + 31) / 32);
  stratum_end_ = 0;
  weight_ = flushed_weight_ = 1;
  has_before_ = false;
  sampled_ = events_ = 0;
  arrays_.assign(counting_->starts.size() + 1, {});
  std::fill(now_, now_ + totals, 0.0);
  std::fill(sum_, sum_ + totals, 0.0);
  std::fill(variance_, variance_ + totals, 0.0);
  all_touched_.clear();
}

// The next stratum begins where the last one ended; the first and the last block of a grid are strata of their own.
bool Counter::wants(std::uint64_t position, std::uint64_t to) {
  if (position >= stratum_end_ || position < stratum_) {
    const double counted = static_cast<double>(counting_->counted.load(std::memory_order_relaxed));
    const double blocks = static_cast<double>(counting_->blocks);
    double each = 1;
    if (counting_->limit)
      each = std::ceil(blocks / static_cast<double>(counting_->limit));
    else if (counted > 0)
      each = std::max(1.0, std::ceil(static_cast<double>(counting_->events.load(std::memory_order_relaxed)) / counted *
                                     blocks / budget));
    stratum_ = position;
    stratum_end_ = std::min(to, position + static_cast<std::uint64_t>(each));
    if (position == 0) stratum_end_ = 1;
    if (stratum_end_ == counting_->blocks && stratum_end_ - position > 1) --stratum_end_;
    chosen_ = position + scramble(position) % (stratum_end_ - position);
  }
  if (position != chosen_) return false;
  weight_ = static_cast<double>(stratum_end_ - stratum_);
  return true;
}

bool Counter::block_starts(std::uint64_t position, std::uint64_t to) {
  counted_ = wants(position, to);
  if (counted_)
    start();
  else
    recorder = {
        scratch_.data(),      scratch_.data() + scratch_.size(), scratch_.data(), 0, scratch_.size(), ignored_.data(),
        ignored_limit_.data()};
  return counted_ || !counting_->skip;
}

void Counter::start() {
  const std::size_t capacity = std::clamp(words_per_block / threads_ / 8 * 8, fewest_words, most_words);
  if (weight_ != flushed_weight_) {
    flush_all();
    std::fill(now_, now_ + totals, 0.0);
    flushed_weight_ = weight_;
    has_before_ = false;
  }
  const std::size_t stride = capacity + stagger;
  if (buffer_.size() < stride * threads_) buffer_.resize(stride * threads_);
  recorder = {nullptr, nullptr, buffer_.data(), stride, capacity, stop_.data(), limit_.data()};
  for (unsigned t = 0; t < threads_; ++t) {
    at_[t] = stop_[t] = buffer_.data() + t * stride;
    limit_[t] = at_[t] + capacity;
  }
  for (unsigned w = 0; w < warps_.size(); ++w) {
    warps_[w].paths.clear();
    warps_[w].paths.emplace_back();
    const unsigned live = std::min(32u, threads_ - w * 32);
    warps_[w].paths[0].lanes = live == 32 ? ~0u : (1u << live) - 1;
  }
  rounds_ = 0;
  touched_.clear();
  for (Spot& spot : spots_)
    for (auto& pattern : spot.pattern)
      if (pattern) pattern->marked = 0;
  if (fibers_known_ != worker_.fibers.size() && !worker_.stacks) find_regions();
}

// Adds edges from blocks whose successors the machine code doesn't give, before lanes diverge there.
void Counter::learn_edges() {
  for (unsigned t = 0; t < threads_; ++t) {
    const Spot* before = nullptr;
    for (const std::uint64_t* at = at_[t]; at != stop_[t]; ++at) {
      const std::uint64_t address = *at & address_mask;
      if (address != 0 && address < first_address) continue;
      const Spot* const here = &spot_of(*at);
      if (here->block < 0) continue;
      if (before && before->function == here->function && before->open) {
        std::lock_guard lock(flow_->mutex);
        flow_->add(before->block, here->block);
      }
      before = here;
    }
  }
}

// Replays the recorded events. `all`: up to the last event, even if lanes would wait for others.
void Counter::consume(Block& block, bool all) {
  if (stacks_known_ != worker_.stacks) find_regions();  // the stacks are made when a thread waits for the first time
  for (unsigned t = 0; t < threads_; ++t) events_ += static_cast<std::uint64_t>(stop_[t] - at_[t]);
  if (flow_->any_open()) learn_edges();
  for (unsigned w = 0; w < warps_.size(); ++w) {
    replay(block, w);
    if (!all) continue;
    auto left = [&] {
      for (unsigned t = w * 32; t < std::min(threads_, w * 32 + 32); ++t)
        if (at_[t] != stop_[t]) return true;
      return false;
    };
    while (left()) {
      force(warps_[w], w * 32);
      replay(block, w);
    }
  }
  for (unsigned t = 0; t < threads_; ++t) {
    std::uint64_t* const base = recorder.base + t * recorder.stride;
    const auto left = static_cast<std::size_t>(stop_[t] - at_[t]);
    events_ -= left;
    const bool fits = larger_[t].empty() || left <= recorder.capacity / 2;
    std::uint64_t* const to = fits ? base : larger_[t].data();
    if (left && at_[t] != to) std::memmove(to, at_[t], left * sizeof *to);
    if (fits && !larger_[t].empty()) {
      larger_words_ -= larger_[t].size();
      std::vector<std::uint64_t>().swap(larger_[t]);
      limit_[t] = base + recorder.capacity;
    }
    at_[t] = to;
    stop_[t] = to + left;
  }
}

// Doubles the thread's buffer.
void Counter::enlarge(unsigned thread) {
  const auto left = static_cast<std::size_t>(stop_[thread] - at_[thread]);
  std::vector<std::uint64_t> larger(2 * std::max(recorder.capacity, larger_[thread].size()));
  std::copy(at_[thread], stop_[thread], larger.begin());
  larger_words_ += larger.size() - larger_[thread].size();
  larger_[thread] = std::move(larger);
  at_[thread] = larger_[thread].data();
  stop_[thread] = at_[thread] + left;
  limit_[thread] = at_[thread] + larger_[thread].size();
}

// Holds a thread back until its warp has replayed its events, so that its buffer stays small; unless no other thread
// can run, or it has been held back so long that others may be waiting for it.
bool Counter::make_room(Block& block) {
  if (!counted_) return false;
  std::vector<unsigned> full;
  for (unsigned t = 0; t < block.count; ++t)
    if (block.wait[t] == Wait::full) full.push_back(t);
  if (full.empty()) return false;
  constexpr unsigned patience = 64;
  constexpr std::size_t most = std::size_t(1) << 26;  // words
  consume(block, larger_words_ > most);
  std::vector<unsigned> held;
  for (unsigned t : full) {
    if (stop_[t] - at_[t] <= (limit_[t] - at_[t]) / 2)
      block.make_ready(t);
    else
      held.push_back(t);
  }
  if (held.size() == full.size() || (!held.empty() && ++rounds_ > patience)) {
    for (unsigned t : held) {
      enlarge(t);
      block.make_ready(t);
    }
    rounds_ = 0;
  }
  return true;
}

void Counter::note_touched() {
  touched_.count_parts(counting_->starts, 0, parts_);
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    arrays_[a].reach += flushed_weight_ * static_cast<double>(parts_[a].extent(0));
    for (unsigned i = 0; i < 2; ++i) {
      const auto sectors = static_cast<double>(parts_[a].sectors[i]);
      now_[i ? block_unique_written : block_unique_read] += sectors;
      arrays_[a].counted[i] += sectors;
      arrays_[a].estimated[i] += flushed_weight_ * sectors;
    }
  }
  all_touched_.add_block(touched_);
  touched_.clear();
}

void Counter::block_parks(Block& block) {
  if (!counted_) return;
  consume(block, true);
  note_touched();
}

void Counter::block_resumes() {
  counted_ = true;
  start();
}

void Counter::block_ends(Block& block) {
  if (!counted_) return;
  cursor.current = no_thread;  // the last thread has returned too
  consume(block, true);
  note_touched();
  ++sampled_;
  counting_->events.fetch_add(events_, std::memory_order_relaxed);
  counting_->counted.fetch_add(1, std::memory_order_relaxed);
  events_ = 0;
  if (flushed_weight_ == 1) return;
  // The variance within a stratum, from its neighbour: Wolter, "Introduction to Variance Estimation", on one unit a
  // stratum.
  flush_all();
  for (unsigned i = 0; i < totals; ++i) {
    const double difference = now_[i] - before_[i];
    if (has_before_) variance_[i] += flushed_weight_ * (flushed_weight_ - 1) * difference * difference / 2;
    before_[i] = now_[i];
    now_[i] = 0;
  }
  has_before_ = true;
}

void Counter::end() {
  recorder = {};
  flush_all();
  std::lock_guard lock(counting_->mutex);
  for (Spot& spot : spots_) {
    Counting::Found* found = nullptr;
    for (std::size_t s = 0; s <= spaces; ++s) {
      if (spot.tally[s].executions == 0 && spot.tally[s].diverged == 0 && spot.tally[s].arrivals == 0) continue;
      if (!found)
        found = spot.event == Event::together ? &counting_->met[{spot.what ? spot.what : "", spot.line}]
                                              : &counting_->code[spot.offset];
      found->spot = spot;
      found->tally[s].add(spot.tally[s]);
      spot.tally[s] = {};
    }
    if (found && spot.example && (!found->example || spot.example->better(*found->example)))
      found->example = std::move(spot.example);
    spot.example.reset();
    for (auto& pattern : spot.pattern)
      if (pattern) pattern->present = 0;
    spot.lanes = 0;
  }
  for (unsigned i = 0; i < totals; ++i) {
    counting_->sum[i] += sum_[i];
    counting_->variance[i] += variance_[i];
  }
  counting_->met_array.resize(met_array_.size());
  for (std::size_t i = 0; i < met_array_.size(); ++i)
    counting_->met_array[i] = counting_->met_array[i] || met_array_[i];
  counting_->sampled += sampled_;
  counting_->arrays.resize(arrays_.size());
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    counting_->arrays[a].requested += arrays_[a].requested;
    counting_->arrays[a].lanes += arrays_[a].lanes;
    counting_->arrays[a].regular += arrays_[a].regular;
    counting_->arrays[a].atomics += arrays_[a].atomics;
    counting_->arrays[a].reach += arrays_[a].reach;
    for (unsigned i = 0; i < 2; ++i) {
      counting_->arrays[a].counted[i] += arrays_[a].counted[i];
      counting_->arrays[a].estimated[i] += arrays_[a].estimated[i];
    }
  }
  counting_->touched.add_blocks(all_touched_);
  all_touched_.clear();
}

// ---- what probes call ----

extern "C" void simt_event_without_room(std::uint64_t event) {
  if (!recorder.base) return;  // the host's own code
  if (!recorder.stride)
    recorder.next = recorder.base;
  else
    wait_for(Wait::full, 0);
  *recorder.next++ = event;
}

extern "C" void simt_event_site(const void* code, Event event, unsigned bytes, int kind) {
  if (!recorder.base) return;
  const Critical critical(*this_worker);
  static_cast<Counter*>(this_worker->counter)->describe(code, event, bytes, kind);
}

void record_together(Worker& worker, Together kind, const char* what, int line) {
  std::uint64_t event;
  {
    const Critical critical(worker);
    event = static_cast<Counter*>(worker.counter)->together(kind, what, line);
  }
  if (recorder.next == recorder.end) return simt_event_without_room(event);
  *recorder.next++ = event;
}

}  // namespace simt
