#include "reader/ui/model/source_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kSourceBytesMax = size_t{8} << 20;
constexpr size_t kSourceWidthMax = 400;

// O_NONBLOCK: a FIFO is not waited for.
std::string content_of_file(const std::string& path) {
  std::string content;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return content;
  struct stat facts {};
  if (::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)) {
    std::array<char, 1 << 16> piece{};
    while (content.size() < kSourceBytesMax) {
      const ssize_t bytes = ::read(fd, piece.data(), piece.size());
      if (bytes <= 0) break;
      content.append(piece.data(), static_cast<size_t>(bytes));
    }
  }
  ::close(fd);
  return content;
}

}  // namespace

std::vector<std::string> source_text(const std::string& path, uint32_t first,
                                     uint32_t count) {
  std::vector<std::string> lines;
  if (!path.starts_with('/')) return lines;
  const std::string content = content_of_file(path);
  std::string_view rest = content;
  for (uint32_t line = 1; !rest.empty() && lines.size() < count; ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (line >= first) {
      std::string shown;
      for (const char c : text.substr(0, kSourceWidthMax)) {
        if (c == '\t') {
          shown += "    ";
        } else {
          shown += c;
        }
      }
      lines.push_back(printable(shown));
    }
  }
  return lines;
}

}  // namespace arctrace::reader
