// Texts of many lanes that grow at the same time and are read back lane by lane. They are
// in a temporary file, except for what was added last, so that memory is bounded.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/streams/spools.hpp"

namespace arctrace::reader {

class LaneSpool {
 public:
  // Lanes are numbered from 0, and are made by the first text.
  void add(size_t lane, std::string_view text);

  // Calls `take` with the pieces of a lane's text in turn, until it returns false. Error:
  // the text could not be stored.
  absl::Status read(size_t lane, absl::FunctionRef<bool(std::string_view)> take);

  // The texts in memory, of all lanes together, are less than this, in bytes.
  static constexpr size_t kMemoryMax = size_t{16} << 20;
  size_t memory() const { return memory_; }

 private:
  // The text in memory of one lane is less than this, in bytes.
  static constexpr size_t kPieceMax = size_t{8} << 10;

  struct Piece {
    uint64_t offset;
    size_t size;
  };
  struct Lane {
    std::vector<Piece> on_disk;
    std::string recent;
  };

  void spill(Lane& lane);
  void spill_all();

  std::vector<Lane> lanes_;
  size_t memory_ = 0;  // what all `recent` have allocated
  uint64_t size_ = 0;  // of the file
  NamelessFile file_;
};

}  // namespace arctrace::reader
