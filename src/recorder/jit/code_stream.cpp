#include "src/recorder/jit/code_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace arctrace {

CodeStream::CodeStream(int fd, uint64_t limit)
    : fd_(fd), limit_(limit), bytes_(kPeekMax) {}

std::string_view CodeStream::peek(size_t size) {
  if (offset_ < start_ || offset_ - start_ + size > held_) fill();
  const uint64_t from = offset_ - start_;
  if (from >= held_) return {};
  return {bytes_.data() + from, std::min<size_t>(size, held_ - from)};
}

void CodeStream::skip(uint64_t size) {
  offset_ = size > UINT64_MAX - offset_ ? UINT64_MAX : offset_ + size;
}

void CodeStream::fill() {
  start_ = offset_;
  held_ = 0;
  is_cut_ = offset_ >= limit_;
  if (is_cut_) return;
  const size_t wanted = std::min<uint64_t>(bytes_.size(), limit_ - offset_);
  while (held_ < wanted) {
    const ssize_t got = pread(fd_, bytes_.data() + held_, wanted - held_,
                              static_cast<off_t>(start_ + held_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    held_ += static_cast<size_t>(got);
  }
}

}  // namespace arctrace
