// Creates, fills and pins the files of buffers, and opens and copies existing ones.
#include "src/recorder/buffer/buffer.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/open_buffer.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/buffer/map_memory.hpp"

namespace arctrace::recorder {
namespace {

// The meanings of header.pinned.
constexpr uint32_t kAllPinned = 1;
constexpr uint64_t kPinnedUnit = 1024;  // bytes; the unit of a greater value

absl::Status error_status(int error, const std::string& what) {
  return absl::ErrnoToStatus(error, what);
}

// Drops the blocks that begin after the buffer's first `size` bytes, because an untrusted
// header may claim any number of them.
void keep_blocks_within(uint64_t size, Geometry& geometry) {
  const uint64_t available =
      size > geometry.blocks_offset ? size - geometry.blocks_offset : 0;
  const uint64_t blocks = (available + geometry.block_size - 1) / geometry.block_size;
  if (blocks >= geometry.block_count) return;
  geometry.block_count = static_cast<uint32_t>(blocks);
  geometry.total_size =
      geometry.blocks_offset + (blocks * geometry.block_size + 4095) / 4096 * 4096;
}

// Whether at least a sixteenth of this part of a file is stored data. A buffer has no
// holes where its blocks are; but a file that anybody can make may claim terabytes.
bool has_data_for(int fd, uint64_t offset, uint64_t size) {
  constexpr uint64_t kSmall = uint64_t{64} << 20;
  constexpr int kPartsMax = 1 << 20;
  if (size <= kSmall) return true;
  const uint64_t end = offset + size;
  uint64_t data = 0;
  uint64_t at = offset;
  for (int part = 0; part < kPartsMax && at < end; ++part) {
    const off_t from = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (from < 0 || static_cast<uint64_t>(from) >= end) break;
    const off_t until = lseek(fd, from, SEEK_HOLE);
    if (until <= from) break;
    at = std::min(static_cast<uint64_t>(until), end);
    data += at - static_cast<uint64_t>(from);
    if (data >= size / 16) return true;
  }
  return false;
}

// The status for `path`, which open_buffer_untrusted() refused with `error`.
absl::Status open_status(int error, const std::string& path, const OpenedBuffer& opened) {
  if (error == -EACCES) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": neither our own nor shared with a group"));
  }
  if (error != -EPROTO) return error_status(-error, absl::StrCat("opening ", path));
  return absl::InvalidArgumentError(
      opened.error == GeometryError::kNone
          ? absl::StrCat(path, ": not a trace buffer")
          : absl::StrCat(path, ": ", describe(opened.error)));
}

void set_random(void* to, size_t size) {
  if (getrandom(to, size, 0) != static_cast<ssize_t>(size)) std::memset(to, 0, size);
}

}  // namespace

absl::StatusOr<Buffer> Buffer::create(const BufferOptions& options) {
  const absl::StatusOr<Geometry> plan = plan_buffer(options);
  if (!plan.ok()) return plan.status();
  const Geometry& geometry = *plan;
  Buffer buffer;
  int fd = -1;
  const uint64_t size = geometry.total_size;
  absl::Status made = options.in_kernel ? buffer.make_map(options, size, fd)
                                        : buffer.make_file(options, fd);
  if (!made.ok()) return made;
  // A map's descriptor belongs to the buffer and stays open.
  const absl::Cleanup closer = [&] {
    if (!options.in_kernel) close(fd);
  };
  if (!options.in_kernel && ftruncate(fd, static_cast<off_t>(size)) != 0) {
    return explain_directory(errno, size, options.directory);
  }
  long error = 0;
  std::byte* base = map_for_huge_pages(fd, size, error);
  if (base == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room for a buffer of ", size,
        " bytes in the address space: ", std::strerror(static_cast<int>(-error))));
  }
  buffer.view_ = BufferView(base, geometry);
  if (!options.in_kernel) buffer.guard();
  made = buffer.allocate(options, fd, base, size);
  if (!made.ok()) return made;
  buffer.fill();
  if (!options.in_kernel) {
    if (absl::Status status = buffer.pin(options.pin); !status.ok()) return status;
  }
  buffer.write_header(options);
  if (absl::Status status = buffer.name_file(fd); !status.ok()) return status;
  return buffer;
}

absl::StatusOr<Buffer> Buffer::open(const std::string& path, BufferAccess access) {
  OpenedBuffer opened;
  if (const int error = open_buffer_untrusted(path.c_str(), access, opened); error != 0) {
    return open_status(error, path, opened);
  }
  // A map's descriptor belongs to the buffer and stays open.
  absl::Cleanup closer = [&] { close(opened.fd); };
  const int protection =
      access == BufferAccess::kReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void* base =
      mmap(nullptr, opened.geometry.total_size, protection, MAP_SHARED, opened.fd, 0);
  if (base == MAP_FAILED) return error_status(errno, absl::StrCat("mapping ", path));
  Buffer buffer;
  buffer.view_ = BufferView(static_cast<std::byte*>(base), opened.geometry);
  if (opened.is_map) {
    std::move(closer).Cancel();
    buffer.map_ = opened.fd;
  } else {
    buffer.guard();
  }
  buffer.header_ = opened.header;
  buffer.path_ = path;
  buffer.is_kept_ = true;
  return buffer;
}

absl::StatusOr<Buffer> Buffer::copy_untrusted(int fd, uint64_t offset, uint64_t size,
                                              const std::string& name) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return error_status(errno, name);
  const auto end = static_cast<uint64_t>(status.st_size);
  size = std::min(size, end > offset ? end - offset : 0);
  arctrace_session_header header{};
  Geometry geometry;
  if (size < ARCTRACE_CPUS_OFFSET ||
      pread(fd, &header, sizeof header, static_cast<off_t>(offset)) !=
          static_cast<ssize_t>(sizeof header)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": no trace buffer in it"));
  }
  if (const GeometryError error =
          read_geometry_untrusted(header, ARCTRACE_SESSION_MAGIC, UINT64_MAX, geometry);
      error != GeometryError::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", describe(error)));
  }
  keep_blocks_within(size, geometry);
  const uint64_t wanted = std::min(size, geometry.total_size);
  if (!has_data_for(fd, offset, wanted)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": nearly all of its ", wanted, " bytes are a hole"));
  }
  void* base = mmap(nullptr, geometry.total_size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return error_status(errno, absl::StrCat("copying ", name));
  Buffer buffer;
  buffer.view_ = BufferView(static_cast<std::byte*>(base), geometry);
  buffer.guard();
  buffer.header_ = header;
  // The file is mapped and not read, because it may be larger than memory. The missing
  // part stays zero. Zeros are not a valid block.
  if (mmap(base, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
           static_cast<off_t>(offset)) == MAP_FAILED) {
    return error_status(errno, absl::StrCat("mapping ", name));
  }
  return buffer;
}

absl::Status Buffer::make_file(const BufferOptions& options, int& fd) {
  uint64_t number = 0;
  set_random(&number, sizeof number);
  std::string path = options.file;
  if (path.empty()) {
    path = absl::StrCat(options.directory, "/arctrace-", getuid(), "-", getpid(), "-",
                        absl::Hex(number));
  }
  if (access(path.c_str(), F_OK) == 0) {
    return error_status(EEXIST, absl::StrCat("creating ", path));
  }
  // The file gets its name when it is a complete buffer (name_file()), so that nothing
  // stays behind if this process ends before.
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  fd = ::open(directory.empty() ? "." : directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC,
              0600);
  nameless_ = fd >= 0 ? path : "";
  if (fd < 0) {
    // O_EXCL and an unpredictable name keep others from planting a link or a file there.
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
      return errno == EEXIST ? error_status(errno, absl::StrCat("creating ", path))
                             : explain_directory(errno, 0, options.directory);
    }
    path_ = path;
  }
  if ((options.group >= 0 &&
       (fchown(fd, static_cast<uid_t>(-1), static_cast<gid_t>(options.group)) != 0 ||
        fchmod(fd, 0660) != 0)) ||
      (options.owner >= 0 &&
       fchown(fd, static_cast<uid_t>(options.owner), static_cast<gid_t>(-1)) != 0)) {
    const int error = errno;
    close(fd);
    return error_status(error, absl::StrCat("sharing ", path));
  }
  return absl::OkStatus();
}

absl::Status Buffer::name_file(int fd) {
  if (nameless_.empty()) return absl::OkStatus();
  const std::string open_file = absl::StrCat("/proc/self/fd/", fd);
  if (linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, nameless_.c_str(),
             AT_SYMLINK_FOLLOW) != 0) {
    return error_status(errno, absl::StrCat("creating ", nameless_));
  }
  path_ = std::exchange(nameless_, std::string());
  return absl::OkStatus();
}

absl::Status Buffer::make_map(const BufferOptions& options, uint64_t size, int& fd) {
  const absl::StatusOr<int> map = create_map(size);
  if (!map.ok()) return map.status();
  map_ = fd = *map;
  absl::StatusOr<std::string> path = pin_map(fd, options.owner, options.group);
  if (!path.ok()) return path.status();
  path_ = *std::move(path);
  header_.pinned = kAllPinned;
  return absl::OkStatus();
}

// Allocates all pages now, because a page that can't be allocated later would kill a
// writer (SIGBUS).
absl::Status Buffer::allocate(const BufferOptions& options, int fd, std::byte* base,
                              uint64_t size) {
  if (options.in_kernel) {
    if (options.huge_pages.value_or(false)) {
      warn("no huge pages for a buffer that the kernel writes into");
    }
    return absl::OkStatus();
  }
  if (options.huge_pages.value_or(true)) {
    const int error = allocate_huge_pages(fd, base, size);
    if (error != 0 && options.huge_pages) {
      warn(absl::StrCat("huge pages refused (", std::strerror(error),
                        "), going on without"));
    }
  }
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(size)); error != 0) {
    return explain_directory(error, size, options.directory);
  }
  return absl::OkStatus();
}

void Buffer::warn(const std::string& what) {
  absl::StrAppend(&warning_, warning_.empty() ? "" : "; ", what);
}

void Buffer::fill() {
  const Geometry& geometry = view_.geometry();
  std::memset(view_.base() + geometry.blocks_offset, 0xFF,
              geometry.total_size - geometry.blocks_offset);
  const uint64_t free_state = BlockState{0, 0, ARCTRACE_PHASE_FREE}.pack();
  for (uint32_t i = 0; i < geometry.block_count; ++i) {
    arctrace_block_header& header = view_.block_header(i);
    header.state = free_state;
    header.next = geometry.block_size;
  }
}

absl::StatusOr<uint64_t> Buffer::lock(PinPolicy policy) {
  if (policy == PinPolicy::kNo) return 0;
  const auto is_locked = [this](uint64_t part) { return mlock(view_.base(), part) == 0; };
  const uint64_t size = view_.geometry().total_size;
  if (is_locked(size)) return size;
  const int error = errno;
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string reason = absl::StrCat(
      "the buffer of ", size, " bytes can't be pinned: ", std::strerror(error),
      " (RLIMIT_MEMLOCK is ", limit.rlim_cur, ")");
  if (policy == PinPolicy::kRequire) return absl::ResourceExhaustedError(reason);
  // The kernel may permit less than the limit, because it counts other locked memory,
  // too.
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t part = std::min<uint64_t>(limit.rlim_cur, size - 1) / page * page;
  while (part >= page && !is_locked(part)) part = part / 2 / page * page;
  if (policy == PinPolicy::kTry) {
    warn(absl::StrCat(reason, "; going on with ", part, " bytes pinned"));
  }
  return part;
}

absl::Status Buffer::pin(PinPolicy policy) {
  const absl::StatusOr<uint64_t> locked = lock(policy);
  if (!locked.ok()) return locked.status();
  header_.pinned = *locked == view_.geometry().total_size
                       ? kAllPinned
                       : static_cast<uint32_t>(*locked / kPinnedUnit);
  // Relaxed: no other data in the buffer depends on it.
  IpcAtomics::store_relaxed(
      reinterpret_cast<arctrace_session_header*>(view_.base())->pinned, header_.pinned);
  return absl::OkStatus();
}

void Buffer::write_header(const BufferOptions& options) {
  const Geometry& geometry = view_.geometry();
  arctrace_control& control = view_.control();
  control.process_next = 1;
  control.writer_next = 1;
  // In the other modes no collector frees blocks, so waking it would be useless.
  const uint32_t high_water =
      geometry.mode == ARCTRACE_MODE_DROP ? options.high_water_percent : 0;
  control.high_water_blocks =
      static_cast<uint32_t>(uint64_t{geometry.block_count} * high_water / 100);
  arctrace_session_header& header = header_;
  header.byte_order = ARCTRACE_BYTE_ORDER;
  header.version_major = ARCTRACE_VERSION_MAJOR;
  header.version_minor = ARCTRACE_VERSION_MINOR;
  header.features_optional = options.features;
  header.header_size = ARCTRACE_HEADER_SIZE;
  header.slot_size = ARCTRACE_SLOT_SIZE;
  header.slot_count = geometry.slot_count;
  header.cpu_slot_size = sizeof(arctrace_cpu_slot);
  header.cpu_count = geometry.cpu_count;
  header.block_header_size = ARCTRACE_BLOCK_HEADER_SIZE;
  header.block_size = geometry.block_size;
  header.block_count = geometry.block_count;
  header.slots_offset = geometry.slots_offset;
  header.blocks_offset = geometry.blocks_offset;
  header.total_size = geometry.total_size;
  header.mode = geometry.mode;
  header.scope = geometry.scope;
  header.clock = geometry.clock;
  header.stamps = geometry.stamps;
  if (geometry.has_clock_word()) {
    header.features_required = ARCTRACE_FEATURE_CLOCK_WORD;
    header.resolution_ns = static_cast<uint32_t>(options.resolution_ns);
  }
  header.creator_pid = static_cast<uint32_t>(getpid());
  header.creator_uid = static_cast<uint32_t>(getuid());
  header.ticks_per_second = measure_ticks_per_second(geometry.clock);
  const ClockSync sync = take_clock_sync(geometry.clock);
  header.start_ticks = sync.ticks;
  if (geometry.has_clock_word()) view_.control().time = sync.ticks;
  header.start_monotonic_ns = sync.monotonic_ns;
  header.start_realtime_ns = sync.realtime_ns;
  set_random(header.session_id, sizeof header.session_id);
  auto& shared = *reinterpret_cast<arctrace_session_header*>(view_.base());
  shared = header;
  header.magic = ARCTRACE_SESSION_MAGIC;
  // K1 release: a process that reads the magic also sees all stores above.
  IpcAtomics::store_release(shared.magic, header.magic);
}

Buffer::Buffer(Buffer&& other) noexcept
    : view_(std::exchange(other.view_, BufferView())),
      header_(other.header_),
      path_(std::exchange(other.path_, std::string())),
      warning_(std::move(other.warning_)),
      is_kept_(other.is_kept_),
      map_(std::exchange(other.map_, -1)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(view_, other.view_);
  std::swap(header_, other.header_);
  std::swap(path_, other.path_);
  std::swap(warning_, other.warning_);
  std::swap(is_kept_, other.is_kept_);
  std::swap(map_, other.map_);
  return *this;
}

void Buffer::guard() {
  guard_against_truncation(view_.base(), view_.geometry().total_size, nullptr);
}

bool Buffer::is_cut_off() const { return arctrace::is_cut_off(view_.base()); }

Buffer::~Buffer() {
  if (view_.base() != nullptr) {
    end_truncation_guard(view_.base());
    munmap(view_.base(), view_.geometry().total_size);
  }
  if (!path_.empty() && !is_kept_) {
    give_up_blocks();
    unlink(path_.c_str());
  }
  if (map_ >= 0) close(map_);
}

// Programs that were joined have the file mapped until they are joined again. They keep
// its first pages, with the gate and the locks of their slots; of the blocks they would
// keep memory that nobody reads. A record that one of them is just writing goes to a page
// of its own.
void Buffer::give_up_blocks() const {
  const Geometry& geometry = view_.geometry();
  if (map_ >= 0 || view_.base() == nullptr) return;
  const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(geometry.blocks_offset),
            static_cast<off_t>(geometry.total_size - geometry.blocks_offset));
  close(file);
}

}  // namespace arctrace::recorder
