// A trace file whose chunks are in memory, each at the address to which it was copied.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/trace/input.hpp"

namespace arctrace::reader {

class ChunkInput : public Input {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  // `header`: that of a trace file.
  ChunkInput(std::string name, const arctrace_session_header& header);

  // Appends a chunk. Its sequence is the number of chunks before it.
  void add(arctrace_chunk_kind kind, uint16_t flags, uint32_t index, Bytes payload);

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override;

 private:
  struct Part {
    uint64_t offset;
    Bytes bytes;
  };
  void append(Bytes bytes);

  std::string name_;
  std::vector<Part> parts_;  // none is empty
  uint64_t size_ = 0;
  uint32_t chunks_ = 0;
};

}  // namespace arctrace::reader
