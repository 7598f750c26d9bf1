// Records which bytes of memory were touched: one bit per byte, in pieces of 1 KiB that are made on first use.
#pragma once

#include <cstdint>
#include <vector>

namespace simt {

class TouchedBytes {
 public:
  // Sectors of 32 bytes, granules of 64.
  struct Count {
    std::uint64_t bytes = 0, sectors = 0, granules = 0;
  };

  void mark(std::uint64_t from, std::uint64_t to, bool read, bool written);
  void merge(const TouchedBytes& other);
  void clear();
  Count read() const;
  Count written() const;
  bool full() const { return pieces_.size() >= most; }      // beyond this, bytes are no longer distinguished

 private:
  static constexpr unsigned shift = 10, words = (1 << shift) / 64;
  static constexpr std::size_t most = 3 << 20;
  struct Piece {
    std::uint64_t key;
    std::uint32_t used;                  // a bit for each word that isn't 0: first those of `bit`'s first half
    std::uint64_t bit[2 * words];        // read, then written
  };
  Count count(unsigned first) const;
  Piece* piece(std::uint64_t key);

  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> table_;      // open addressing: number of a piece, plus 1
  std::size_t last_ = 0;
};

}  // namespace simt
