// Records which bytes of memory were touched: one bit per byte, in pieces of 1 KiB that are made on first use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace simt {

class TouchedBytes {
 public:
  // Sectors of 32 bytes, granules of 64.
  struct Count {
    std::uint64_t bytes = 0, sectors = 0, granules = 0;
  };

  // The sectors of one array, and where they lie: read, then written. common: those that more than half of the blocks
  // touched, and by how many blocks, summed.
  struct Part {
    std::uint64_t sectors[2] = {}, first[2] = {~std::uint64_t(0), ~std::uint64_t(0)}, last[2] = {};
    std::uint64_t common[2] = {}, common_times[2] = {};
    std::uint64_t extent(unsigned i) const { return sectors[i] ? last[i] - first[i] + 1 : 0; }  // in sectors
  };

  void mark(std::uint64_t from, std::uint64_t to, bool read, bool written);
  void add_block(const TouchedBytes& block);
  void add_blocks(const TouchedBytes& blocks);  // what such calls collected
  void clear();
  Count read() const;
  Count written() const;
  // Part i begins at starts[i - 1] and ends before starts[i]; starts ascend. `parts` has one more element than `starts`.
  // blocks: how many add_block() has added; 0 for a single block's bytes.
  void count_parts(const std::vector<std::uint64_t>& starts, std::uint64_t blocks, std::vector<Part>& parts) const;
  bool full() const { return pieces_.size() >= most; }      // beyond this, bytes are no longer distinguished

 private:
  static constexpr unsigned shift = 10, words = (1 << shift) / 64;
  static constexpr std::size_t most = 3 << 20;
  struct Piece {
    std::uint64_t key;
    std::uint32_t used;                  // a bit for each word that isn't 0: first those of `bit`'s first half
    std::uint64_t bit[2 * words];        // read, then written
  };
  using Times = std::array<std::uint16_t, 4 * words>;      // of each sector that is read, then of each written one
  Count count(unsigned first) const;
  Piece* piece(std::uint64_t key);
  void merge(const TouchedBytes& other);

  std::vector<Piece> pieces_;
  std::vector<Times> times_;              // of the first pieces: how many blocks touched each sector
  std::vector<std::uint32_t> table_;      // open addressing: number of a piece, plus 1
  std::size_t last_ = 0;
};

}  // namespace simt
