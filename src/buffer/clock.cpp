// Reads what /proc says of this process' time namespace, without libc.
#include "src/buffer/clock.hpp"

#include <fcntl.h>

#include <string_view>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"

namespace arctrace {

constinit uint64_t time_namespace_offset_ns = 0;

namespace {

// A link of /proc/self/ns: "time:[INODE]".
struct NamespaceLink {
  char text[64];
  size_t size;

  bool equals(std::string_view other) const {
    if (size != other.size()) return false;
    for (size_t i = 0; i < size; ++i) {
      if (text[i] != other[i]) return false;
    }
    return true;
  }
};

NamespaceLink read_link(const char* path) {
  NamespaceLink link{};
  const long size = sys::readlink(path, link.text, sizeof link.text);
  link.size = size > 0 ? static_cast<size_t>(size) : 0;
  return link;
}

// Reads a number, which may be negative, after blanks, and moves `at` behind it.
int64_t read_number(const char*& at, const char* end) {
  while (at != end && *at == ' ') ++at;
  const bool is_negative = at != end && *at == '-';
  if (is_negative) ++at;
  int64_t number = 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) number = number * 10 + (*at - '0');
  return is_negative ? -number : number;
}

}  // namespace

bool read_time_namespace_offset(std::string_view text, uint64_t& offset_ns) {
  // "monotonic SECONDS NANOSECONDS", then a line for another clock. Nanoseconds count
  // upwards.
  constexpr std::string_view kKey = "monotonic";
  constexpr int64_t kSecond = 1'000'000'000;
  if (text.size() < kKey.size()) return false;
  for (size_t i = 0; i < kKey.size(); ++i) {
    if (text.data()[i] != kKey.data()[i]) return false;
  }
  const char* at = text.data() + kKey.size();
  const char* const end = text.data() + text.size();
  const int64_t seconds = read_number(at, end);
  const int64_t ns = read_number(at, end);
  offset_ns = static_cast<uint64_t>(seconds * kSecond + ns);
  return true;
}

bool learn_time_namespace() {
  constexpr std::string_view kFirst = "time:[4026531834]";
  const NamespaceLink own = read_link("/proc/self/ns/time");
  if (own.size == 0 || own.equals(kFirst)) return true;
  // What the file says is of the namespace into which children are born.
  const NamespaceLink of_children = read_link("/proc/self/ns/time_for_children");
  if (!of_children.equals({own.text, own.size})) return false;
  const long fd = sys::open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[256];
  const long size = sys::pread(static_cast<int>(fd), text, sizeof text, 0);
  sys::close(static_cast<int>(fd));
  return size > 0 && read_time_namespace_offset({text, static_cast<size_t>(size)},
                                                time_namespace_offset_ns);
}

}  // namespace arctrace
