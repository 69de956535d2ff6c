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
// copies the bytes first.
class Input {
 public:
  virtual ~Input() = default;

  // The name in messages.
  virtual const std::string& name() const = 0;
  // The size in bytes, when the input was opened.
  virtual uint64_t size() const = 0;
  // Copies up to into.size() bytes from `offset` and returns how many: fewer only at the
  // end of the input.
  virtual absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) = 0;
  // If the input is a buffer: how many bytes of it a process has pinned even if nobody
  // collects. The number is that process' own account, which may be wrong.
  virtual uint64_t pinned_bytes_untrusted() const { return 0; }
};

// A regular file, read by pread. Errors: it cannot be opened, or is not a regular file.
absl::StatusOr<std::unique_ptr<Input>> open_file(const std::string& path);

// Returns `input` with `bytes` at the offset kAppendedOffset, which its size() does not
// include.
inline constexpr uint64_t kAppendedOffset = uint64_t{1} << 62;
std::unique_ptr<Input> append_to_input(std::unique_ptr<Input> input,
                                       std::vector<std::byte> bytes);

// Returns an input of bytes in memory. It never fails.
std::unique_ptr<Input> memory_input(std::string name, std::vector<std::byte> bytes);

// Opens a file, or a buffer in kernel memory, for reading at any offset. Returns a
// descriptor for pread: of the file, or of a private copy if `path` is the pinned map of
// a buffer that the kernel writes. Does not wait for the writer of a FIFO. Error: the
// file cannot be opened, or the map cannot be copied.
absl::StatusOr<int> open_readable(const std::string& path);

}  // namespace arctrace::reader
