// Creating a trace buffer: a file in shared memory, filled, pinned, with its header.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "src/buffer/buffer_view.hpp"
#include "src/buffer/open_buffer.hpp"
#include "src/recorder/buffer/clock_source.hpp"

namespace arctrace {

enum class PinPolicy : uint8_t { kNo, kTry, kRequire };

struct BufferOptions {
  uint64_t buffer_size = uint64_t{64} << 20;  // bytes of blocks
  uint32_t block_size = 64u << 10;            // bytes
  uint32_t slot_count = 4096;
  uint32_t cpu_count = 0;
  arctrace_mode mode = ARCTRACE_MODE_DROP;
  arctrace_scope scope = ARCTRACE_SCOPE_THREAD;
  arctrace_clock clock = choose_clock();
  PinPolicy pin = PinPolicy::kTry;
  std::optional<bool> huge_pages;    // nothing: if it can be, else never mind
  uint32_t high_water_percent = 50;  // of the blocks; 0: never wake
  std::string directory = "/dev/shm";
  std::string file = {};   // the buffer's own path; empty: a new name in `directory`
  int64_t group = -1;      // its members may write and read too; -1: nobody else
  uint64_t features = 0;   // optional ones: ARCTRACE_FEATURE_*
  bool in_kernel = false;  // the value of a BPF map; `directory` and `file` say nothing
};

// Owns the mapping and, unless it is to outlive us, the file's name: the destructor
// unmaps and removes the file.
class Buffer {
 public:
  // kInvalidArgument: an impossible geometry. kResourceExhausted: no memory for it, or
  // pinning refused under PinPolicy::kRequire. Others as the file system says.
  static absl::StatusOr<Buffer> create(const BufferOptions& options);

  // Maps a buffer that there is; its file stays. With kRead nothing may be stored there:
  // enough to take a Snapshot. kPermissionDenied: neither our own nor shared with a
  // group. kInvalidArgument: not a buffer.
  static absl::StatusOr<Buffer> open(const std::string& path,
                                     BufferAccess access = BufferAccess::kReadWrite);

  // A private copy of the buffer's image that stands at `offset` of a file, of which
  // there are at most `size` bytes: of a buffer's file, or of a core. Its view has the
  // blocks only of which something is there.
  static absl::StatusOr<Buffer> copy_untrusted(int fd, uint64_t offset, uint64_t size,
                                               const std::string& name);

  // The file is to stay when this object is gone.
  void keep_file() { is_kept_ = true; }

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  const BufferView& view() const { return view_; }
  const std::string& path() const { return path_; }
  // Private memory, which nobody else changes.
  bool is_copy() const { return path_.empty(); }
  // Of a buffer created in_kernel: the map's descriptor, ours to keep. Else -1.
  int map() const { return map_; }
  // As it was when the buffer was made or opened: a private copy.
  const arctrace_session_header& header() const { return header_; }
  // What could not be done but need not stop anybody; empty if nothing.
  const std::string& warning() const { return warning_; }

  // What is recorded: enum arctrace_gate_bit. 0 stops all writers at their next record.
  void set_gate(uint32_t bits);

 private:
  Buffer() = default;
  absl::Status make_file(const BufferOptions& options, int& fd);
  absl::Status allocate(const BufferOptions& options, int fd, std::byte* base,
                        uint64_t size);
  absl::Status make_map(const BufferOptions& options, uint64_t size, int& fd);
  absl::Status pin(const BufferOptions& options);
  void fill();
  void warn(const std::string& what);
  void write_header(const BufferOptions& options);

  BufferView view_;
  arctrace_session_header header_{};
  std::string path_;
  std::string warning_;
  bool pinned_ = false;
  bool is_kept_ = false;
  int map_ = -1;
};

}  // namespace arctrace
