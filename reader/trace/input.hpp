// The bytes of a trace: of a file, or in memory.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace arctrace::reader {

// Random access to bytes that may change or vanish while they are read. So a parser
// copies them first.
class Input {
 public:
  virtual ~Input() = default;

  // Its name in messages.
  virtual const std::string& name() const = 0;
  // In bytes, when it was opened.
  virtual uint64_t size() const = 0;
  // Copies up to into.size() bytes from `offset` and returns how many: fewer only at the
  // end of the input.
  virtual absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) = 0;
  // How many bytes of it a process keeps pinned for nobody else, if it is a buffer: by
  // that process' own account, which may be any number.
  virtual uint64_t kept_bytes_untrusted() const { return 0; }
};

// A regular file, read by pread. Errors: it cannot be opened, or is not a regular file.
absl::StatusOr<std::unique_ptr<Input>> open_file(const std::string& path);

// `input`, and at the offset kAppendedOffset `bytes`, which are not among its size().
inline constexpr uint64_t kAppendedOffset = uint64_t{1} << 62;
std::unique_ptr<Input> append_to_input(std::unique_ptr<Input> input,
                                       std::vector<std::byte> bytes);

// An input of bytes in memory. It never fails.
std::unique_ptr<Input> memory_input(std::string name, std::vector<std::byte> bytes);

}  // namespace arctrace::reader
