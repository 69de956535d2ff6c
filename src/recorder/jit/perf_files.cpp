// Parses perf maps and jitdumps.
#include "src/recorder/jit/perf_files.hpp"

#include <absl/container/flat_hash_map.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "src/buffer/clock.hpp"

namespace arctrace::recorder {

CodeStream::CodeStream(int fd, uint64_t limit)
    : fd_(fd), limit_(limit), bytes_(kPeekMax) {}

std::string_view CodeStream::peek(size_t size) {
  if (offset_ < start_ || offset_ - start_ + size > filled_) fill();
  const uint64_t from = offset_ - start_;
  if (from >= filled_) return {};
  return {bytes_.data() + from, std::min<size_t>(size, filled_ - from)};
}

void CodeStream::skip(uint64_t size) {
  offset_ = size > UINT64_MAX - offset_ ? UINT64_MAX : offset_ + size;
}

void CodeStream::fill() {
  start_ = offset_;
  filled_ = 0;
  is_cut_ = offset_ >= limit_;
  if (is_cut_) return;
  const size_t wanted = std::min<uint64_t>(bytes_.size(), limit_ - offset_);
  while (filled_ < wanted) {
    const ssize_t got = pread(fd_, bytes_.data() + filled_, wanted - filled_,
                              static_cast<off_t>(start_ + filled_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled_ += static_cast<size_t>(got);
  }
}

namespace {

constexpr uint64_t kMapBytesMax = uint64_t{64} << 20;
// Space for both numbers and the longest name that is used; the rest of a longer line is
// skipped.
constexpr size_t kLineMax = kCodeNameMax + 64;

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
}

// Takes a hexadecimal number, with or without 0x, and the blanks after it.
std::optional<uint64_t> take_number(std::string_view& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty() || (text.front() != ' ' && text.front() != '\t')) return std::nullopt;
  skip_blanks(text);
  return number;
}

std::optional<NamedCode> parse(std::string_view line) {
  skip_blanks(line);
  const std::optional<uint64_t> start = take_number(line);
  if (!start) return std::nullopt;
  const std::optional<uint64_t> size = take_number(line);
  if (!size || line.empty() || !is_code_range(*start, *size)) return std::nullopt;
  return NamedCode{*start, *size, 0, line.substr(0, kCodeNameMax)};
}

// Skips the rest of a line. False: the file ends before the line does.
bool skip_rest_of_line(CodeStream& stream) {
  for (;;) {
    const std::string_view rest = stream.peek(CodeStream::kPeekMax);
    const size_t end = rest.find('\n');
    stream.skip(end == std::string_view::npos ? rest.size() : end + 1);
    if (end != std::string_view::npos) return true;
    if (rest.empty()) return false;
  }
}

}  // namespace

CodeFileSummary read_perf_map_untrusted(int fd, const CodeSink& sink) {
  CodeFileSummary summary;
  CodeStream stream(fd, kMapBytesMax);
  for (;;) {
    const std::string_view bytes = stream.peek(kLineMax);
    if (bytes.empty()) break;
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos && bytes.size() < kLineMax) {
      summary.count(false);
      stream.skip(bytes.size());
      continue;
    }
    const std::optional<NamedCode> code = parse(bytes.substr(0, end));
    summary.count(code.has_value() && sink(*code));
    if (end != std::string_view::npos) {
      stream.skip(end + 1);
    } else if (!skip_rest_of_line(stream)) {
      break;
    }
  }
  summary.is_cut = stream.is_cut();
  return summary;
}

namespace {

constexpr uint32_t kMagic = 0x4A695444;  // as a machine with our byte order writes it
constexpr uint32_t kVersion = 1;
constexpr uint64_t kOtherClock = 1;  // header flag: times are the CPU's counter
constexpr uint64_t kDumpBytesMax = uint64_t{4} << 30;  // code is skipped, not read
constexpr uint64_t kRecordsMax = uint64_t{4} << 20;
constexpr size_t kMovableMax = size_t{1} << 20;

enum RecordId : uint32_t { kLoad = 0, kMove = 1, kClose = 3 };

struct Header {
  uint32_t magic, version, size, machine, padding, pid;
  uint64_t time, flags;
};
static_assert(sizeof(Header) == 40);

struct RecordHead {
  uint32_t id, size;  // size: bytes of the whole record
  uint64_t time;
};
static_assert(sizeof(RecordHead) == 16);

struct Load {  // then the name, ended by a zero byte, then the code
  uint32_t pid, tid;
  uint64_t vma, address, code_size, index;
};
static_assert(sizeof(Load) == 40);

struct Move {
  uint32_t pid, tid;
  uint64_t vma, from, to, code_size, index;
};
static_assert(sizeof(Move) == 48);

// Reads `out`. False: the file ends too early.
template <class T>
bool take(CodeStream& stream, T& out) {
  const std::string_view bytes = stream.peek(sizeof out);
  if (bytes.size() < sizeof out) return false;
  std::memcpy(&out, bytes.data(), sizeof out);
  stream.skip(sizeof out);
  return true;
}

std::string_view up_to_zero(std::string_view bytes) {
  return bytes.substr(0, bytes.find('\0'));
}

class JitDump {
 public:
  JitDump(int fd, const JitDumpOwner& owner, const CodeSink& sink)
      : fd_(fd), owner_(owner), sink_(sink), stream_(fd, kDumpBytesMax) {}

  CodeFileSummary read() {
    if (!read_header()) {
      summary_.count(false);
      return summary_;
    }
    for (uint64_t i = 0; read_record(); ++i) {
      if (i < kRecordsMax) continue;
      summary_.is_cut = true;
      break;
    }
    summary_.is_cut |= stream_.is_cut();
    return summary_;
  }

 private:
  // A runtime is taken to be in the recorder's time namespace, whose clock it writes.
  static uint64_t machine_time(uint64_t ns) { return ns - time_namespace_offset_ns; }

  bool read_header() {
    Header header;
    if (!take(stream_, header) || header.magic != kMagic || header.version != kVersion ||
        header.size < sizeof header || header.pid != owner_.pid) {
      return false;
    }
    has_times_ = (header.flags & kOtherClock) == 0;
    stream_.skip(header.size - sizeof header);
    return !has_times_ || machine_time(header.time) >= owner_.start_ns;
  }

  // Reads a record. False: it was the last one.
  bool read_record() {
    const uint64_t begin = stream_.offset();
    RecordHead head;
    if (!take(stream_, head)) return false;
    if (head.size < sizeof head) {
      summary_.count(false);
      return false;
    }
    if (head.id == kClose) return false;
    const uint64_t time_ns = has_times_ ? machine_time(head.time) : 0;
    if (head.id == kLoad) summary_.count(load(head.size, time_ns));
    if (head.id == kMove) summary_.count(move(head.size, time_ns));
    stream_.skip(begin + head.size - stream_.offset());
    return true;
  }

  bool load(uint32_t size, uint64_t time_ns) {
    Load load;
    constexpr size_t kFixed = sizeof(RecordHead) + sizeof load;
    if (size <= kFixed || !take(stream_, load)) return false;
    const uint64_t name_offset = stream_.offset();
    const std::string_view name =
        up_to_zero(stream_.peek(std::min<size_t>(size - kFixed, kCodeNameMax)));
    if (name.empty() || !is_code_range(load.address, load.code_size)) return false;
    if (names_.size() < kMovableMax) names_[load.index] = name_offset;
    return sink_({load.address, load.code_size, time_ns, name});
  }

  bool move(uint32_t size, uint64_t time_ns) {
    Move move;
    if (size < sizeof(RecordHead) + sizeof move || !take(stream_, move)) return false;
    const auto known = names_.find(move.index);
    if (known == names_.end() || !is_code_range(move.to, move.code_size)) return false;
    std::array<char, kCodeNameMax> bytes;
    const ssize_t got =
        pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(known->second));
    if (got <= 0) return false;
    const std::string_view name = up_to_zero({bytes.data(), static_cast<size_t>(got)});
    return !name.empty() && sink_({move.to, move.code_size, time_ns, name});
  }

  const int fd_;
  const JitDumpOwner owner_;
  const CodeSink& sink_;
  CodeStream stream_;
  CodeFileSummary summary_;
  bool has_times_ = true;
  absl::flat_hash_map<uint64_t, uint64_t> names_;  // offsets of names, by code index
};

}  // namespace

CodeFileSummary read_jit_dump_untrusted(int fd, const JitDumpOwner& owner,
                                        const CodeSink& sink) {
  return JitDump(fd, owner, sink).read();
}

}  // namespace arctrace::recorder
