// Records and counts touched bytes.
#include "count/touched_bytes.h"

#include <algorithm>
#include <cstring>

namespace simt {
namespace {

std::size_t spread(std::uint64_t key) { return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 20); }

}  // namespace

TouchedBytes::Piece* TouchedBytes::piece(std::uint64_t key) {
  if (last_ < pieces_.size() && pieces_[last_].key == key) return &pieces_[last_];
  if (pieces_.size() * 2 >= table_.size()) {
    table_.assign(std::max<std::size_t>(256, table_.size() * 2), 0);
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      std::size_t at = spread(pieces_[i].key) & (table_.size() - 1);
      while (table_[at]) at = (at + 1) & (table_.size() - 1);
      table_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }
  std::size_t at = spread(key) & (table_.size() - 1);
  while (table_[at]) {
    if (pieces_[table_[at] - 1].key == key) return &pieces_[last_ = table_[at] - 1];
    at = (at + 1) & (table_.size() - 1);
  }
  if (full()) return nullptr;
  pieces_.emplace_back();
  pieces_.back().key = key;
  table_[at] = static_cast<std::uint32_t>(pieces_.size());
  return &pieces_[last_ = pieces_.size() - 1];
}

void TouchedBytes::mark(std::uint64_t from, std::uint64_t to, bool read, bool written) {
  while (from < to) {
    const std::uint64_t key = from >> shift, end = std::min(to, (key + 1) << shift);
    Piece* const at = piece(key);
    for (; from < end; from = (from / 64 + 1) * 64) {
      const auto word = static_cast<unsigned>(from / 64 % words), low = static_cast<unsigned>(from % 64);
      const std::uint64_t count = std::min<std::uint64_t>(64 - low, end - from);
      const std::uint64_t bits = (count == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << count) - 1) << low;
      if (!at) continue;
      if (read) at->bit[word] |= bits, at->used |= 1u << word;
      if (written) at->bit[words + word] |= bits, at->used |= 1u << (words + word);
    }
    from = end;
  }
}

void TouchedBytes::merge(const TouchedBytes& other) {
  for (const Piece& from : other.pieces_) {
    Piece* const to = piece(from.key);
    if (!to) continue;
    to->used |= from.used;
    for (std::uint32_t left = from.used; left; left &= left - 1) {
      const auto word = static_cast<unsigned>(__builtin_ctz(left));
      to->bit[word] |= from.bit[word];
    }
  }
}

void TouchedBytes::add_block(const TouchedBytes& block) {
  merge(block);
  times_.resize(pieces_.size());
  for (const Piece& from : block.pieces_) {
    if (!piece(from.key)) continue;
    Times& times = times_[last_];
    for (std::uint32_t left = from.used; left; left &= left - 1) {
      const auto word = static_cast<unsigned>(__builtin_ctz(left));
      for (unsigned half = 0; half < 2; ++half)
        if (from.bit[word] << (32 - 32 * half) >> 32 && times[2 * word + half] < 0xFFFF) ++times[2 * word + half];
    }
  }
}

void TouchedBytes::add_blocks(const TouchedBytes& blocks) {
  merge(blocks);
  times_.resize(pieces_.size());
  for (std::size_t i = 0; i < blocks.times_.size(); ++i) {
    if (!piece(blocks.pieces_[i].key)) continue;
    for (std::size_t sector = 0; sector < times_[last_].size(); ++sector)
      times_[last_][sector] =
          static_cast<std::uint16_t>(std::min(0xFFFF, times_[last_][sector] + blocks.times_[i][sector]));
  }
}

void TouchedBytes::clear() {
  // The table is small for a block's bytes; forget the entries one by one where it isn't.
  if (table_.size() <= pieces_.size() * 16) {
    std::fill(table_.begin(), table_.end(), 0);
  } else {
    for (const Piece& each : pieces_) {
      std::size_t at = spread(each.key) & (table_.size() - 1);
      while (table_[at]) {
        table_[at] = 0;
        at = (at + 1) & (table_.size() - 1);
      }
    }
  }
  pieces_.clear();
  times_.clear();
  last_ = 0;
}

TouchedBytes::Count TouchedBytes::count(unsigned first) const {
  Count count;
  for (const Piece& each : pieces_)
    for (std::uint32_t left = each.used & (((1u << words) - 1) << first); left; left &= left - 1) {
      const std::uint64_t bits = each.bit[__builtin_ctz(left)];
      count.bytes += static_cast<std::uint64_t>(__builtin_popcountll(bits));
      ++count.granules;
      count.sectors += (static_cast<std::uint32_t>(bits) != 0) + (bits >> 32 != 0);
    }
  return count;
}

void TouchedBytes::count_parts(const std::vector<std::uint64_t>& starts, std::uint64_t blocks,
                               std::vector<Part>& parts) const {
  parts.assign(starts.size() + 1, Part{});
  std::size_t part = 0;
  for (std::size_t number = 0; number < pieces_.size(); ++number) {
    const Piece& each = pieces_[number];
    for (std::uint32_t left = each.used; left; left &= left - 1) {
      const auto at = static_cast<unsigned>(__builtin_ctz(left)), i = at / words;
      const std::uint64_t address = (each.key << shift) + at % words * 64;
      const auto is_in = [&](std::size_t p) {
        return (p == 0 || starts[p - 1] <= address) && (p == starts.size() || address < starts[p]);
      };
      if (!is_in(part))
        part = static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), address) - starts.begin());
      const bool halves[] = {static_cast<std::uint32_t>(each.bit[at]) != 0, each.bit[at] >> 32 != 0};
      for (unsigned half = 0; half < 2; ++half) {
        if (!halves[half]) continue;
        const std::uint64_t sector = address / 32 + half;
        ++parts[part].sectors[i];
        parts[part].first[i] = std::min(parts[part].first[i], sector);
        parts[part].last[i] = std::max(parts[part].last[i], sector);
        const unsigned times = blocks && number < times_.size() ? times_[number][2 * at + half] : 0;
        if (2 * times <= blocks) continue;
        ++parts[part].common[i];
        parts[part].common_times[i] += times;
      }
    }
  }
}

TouchedBytes::Count TouchedBytes::read() const { return count(0); }
TouchedBytes::Count TouchedBytes::written() const { return count(words); }

}  // namespace simt
