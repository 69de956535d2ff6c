// Texts that are added once and read back by their offset. There may be more of them than
// memory should hold: the older ones are in a temporary file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reader/streams/nameless_file.hpp"

namespace arctrace::reader {

class TextSpool {
 public:
  // The newest `bytes_in_memory` at most are in memory.
  explicit TextSpool(size_t bytes_in_memory = size_t{16} << 20)
      : bytes_in_memory_(bytes_in_memory) {}

  // Returns the offset of `text`; 0 if it is empty.
  uint64_t add(std::string_view text);

  // The text of `size` bytes at `offset`; shorter if it could not be kept.
  std::string read(uint64_t offset, size_t size);

  const absl::Status& status() const { return file_.status(); }

 private:
  const size_t bytes_in_memory_;
  std::string recent_;  // what comes after the part on disk
  uint64_t on_disk_ = 0;
  NamelessFile file_;
};

}  // namespace arctrace::reader
