// Where the bytes of a trace come from.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace arctrace::reader {

// Random access to bytes that may change or vanish while they are read: whoever parses
// them copies them first.
class Input {
 public:
  virtual ~Input() = default;

  // How messages name it.
  virtual const std::string& name() const = 0;
  // Bytes, as at the time of opening.
  virtual uint64_t size() const = 0;
  // Copies up to into.size() bytes from `offset`; fewer only where the input ends.
  virtual absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) = 0;
};

// A regular file, read by pread. Errors: it cannot be opened, or is not a regular file.
absl::StatusOr<std::unique_ptr<Input>> open_file(const std::string& path);

// Bytes in memory.
std::unique_ptr<Input> memory_input(std::string name, std::vector<std::byte> bytes);

}  // namespace arctrace::reader
