// The trace buffer as the recorder owns it: it is created as a file in shared memory or
// as the value of a BPF map, filled, pinned and given its header. The recorder and the
// control commands also open existing buffers here, and copy buffers out of files and
// cores.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "src/buffer/buffer_view.hpp"
#include "src/buffer/open_buffer.hpp"
#include "src/recorder/buffer/available_memory.hpp"
#include "src/recorder/buffer/clock_source.hpp"

namespace arctrace::recorder {

// kAuto: as much from the buffer's beginning as is permitted, without a warning. kTry:
// the same, with a warning if not all of it is.
enum class PinPolicy : uint8_t { kNo, kAuto, kTry, kRequire };

// The block size of a buffer that is not small.
constexpr uint32_t kUsualBlockSize = 64u << 10;

// A higher mark is never reached: data fills 15/16 of the blocks (SPEC.md WRT-10).
inline constexpr uint32_t kHighWaterPercentMax = 93;

struct BufferOptions {
  uint64_t buffer_size = uint64_t{64} << 20;  // bytes of blocks
  bool is_size_asked = false;                 // else fit_to_memory() may reduce it
  std::optional<uint32_t> block_size = {};    // bytes; by default by the buffer's size
  std::optional<uint32_t> slot_count = {};    // by default by the number of blocks
  uint32_t cpu_count = 0;
  arctrace_mode mode = ARCTRACE_MODE_DROP;
  arctrace_scope scope = ARCTRACE_SCOPE_ADAPTIVE;
  arctrace_clock clock = choose_clock();
  arctrace_stamps stamps = ARCTRACE_STAMPS_EXACT;
  uint64_t resolution_ns = 0;  // of the clock word, if the stamps need it
  PinPolicy pin = PinPolicy::kAuto;
  std::optional<bool> huge_pages;  // nullopt: if possible, without a warning if not
  // The percentage of the blocks, at most kHighWaterPercentMax; 0: never wake.
  uint32_t high_water_percent = 50;
  std::string directory = kBufferDirectory;
  bool is_directory_asked = false;  // else it is not to be on a disk
  std::string file = {};   // the buffer's own path; empty: a new name in `directory`
  int64_t group = -1;      // its members may write and read too; -1: only this user
  int64_t owner = -1;      // the user whose processes write; -1: this one
  uint64_t features = 0;   // optional ones: ARCTRACE_FEATURE_*
  bool in_kernel = false;  // the value of a BPF map; `directory` and `file` are ignored
};

// The sizes and offsets of a buffer with these options. kInvalidArgument: they are
// impossible.
absl::StatusOr<Geometry> plan_buffer(const BufferOptions& options);

// Owns the mapping and, unless the file is kept, its name: the destructor unmaps and
// removes the file.
class Buffer {
 public:
  // kInvalidArgument: an impossible geometry. kResourceExhausted: no memory for it, or
  // pinning refused under PinPolicy::kRequire. Other codes come from the file system.
  static absl::StatusOr<Buffer> create(const BufferOptions& options);

  // Maps an existing buffer; its file stays. With kRead the mapping is read-only, which
  // suffices for a Snapshot. kPermissionDenied: the buffer is neither the user's own nor
  // shared with one of the user's groups. kInvalidArgument: not a buffer.
  static absl::StatusOr<Buffer> open(const std::string& path,
                                     BufferAccess access = BufferAccess::kReadWrite);

  // A private mapping of the buffer image that begins at `offset` of a buffer's file or
  // of a core and is at most `size` bytes long. The view of the copy has only those
  // blocks of which the file has at least a part.
  static absl::StatusOr<Buffer> copy_untrusted(int fd, uint64_t offset, uint64_t size,
                                               const std::string& name);

  // From now on the destructor does not remove the file.
  void keep_file() { is_kept_ = true; }

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  const BufferView& view() const { return view_; }
  const std::string& path() const { return path_; }
  // Whether this is private memory (copy_untrusted()), which no other process changes.
  bool is_copy() const { return path_.empty(); }
  // The map's descriptor if the buffer is in kernel memory, else -1. The buffer keeps it
  // open.
  int map() const { return map_; }
  // A private copy of the header, made when the buffer was created or opened.
  const arctrace_session_header& header() const { return header_; }
  // Whether another process has cut off the buffer's file, so that its contents are gone.
  // The buffer reads as zeros since then.
  bool is_cut_off() const;
  // Locks the memory until the mapping ends, as `policy` says. Returns how many bytes are
  // locked, from the buffer's beginning. What is refused under kTry is in warning().
  // ResourceExhausted: refused under kRequire.
  absl::StatusOr<uint64_t> lock(PinPolicy policy);
  // As lock(), for a collector, which notes the size in the header as long as it lives.
  absl::Status pin(PinPolicy policy);
  // Optional features that could not be provided; empty if there are none.
  const std::string& warning() const { return warning_; }

 private:
  Buffer() = default;
  absl::Status make_file(const BufferOptions& options, int& fd);
  absl::Status name_file(int fd);
  absl::Status allocate(const BufferOptions& options, int fd, std::byte* base,
                        uint64_t size);
  absl::Status make_map(const BufferOptions& options, uint64_t size, int& fd);
  void fill();
  void guard();
  void warn(const std::string& what);
  void write_header(const BufferOptions& options);
  void give_up_blocks() const;

  BufferView view_;
  arctrace_session_header header_{};
  std::string path_;
  std::string nameless_;  // the path that a new file gets when it is filled
  std::string warning_;
  bool is_kept_ = false;
  int map_ = -1;
};

}  // namespace arctrace::recorder
