// Texts of many lanes that grow at the same time and are read back lane by lane: they are
// in a temporary file, but for what was added last.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/render/nameless_file.hpp"

namespace arctrace::reader {

class LaneSpool {
 public:
  // Lanes are numbered from 0, and are made by the first text.
  void add(size_t lane, std::string_view text);

  // Calls `take` with the pieces of a lane's text in turn, until it returns false. Error:
  // the text could not be kept.
  absl::Status read(size_t lane, absl::FunctionRef<bool(std::string_view)> take);

 private:
  // In memory, of each lane.
  static constexpr size_t kPieceMax = size_t{8} << 10;

  struct Piece {
    uint64_t offset;
    size_t size;
  };
  struct Lane {
    std::vector<Piece> on_disk;
    std::string recent;
  };

  std::vector<Lane> lanes_;
  uint64_t size_ = 0;  // of the file
  NamelessFile file_;
};

}  // namespace arctrace::reader
