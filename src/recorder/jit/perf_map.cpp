#include "src/recorder/jit/perf_map.hpp"

#include <charconv>
#include <optional>

namespace arctrace {
namespace {

constexpr uint64_t kMapBytesMax = uint64_t{64} << 20;
// Both numbers and the longest name that is kept; the rest of a longer line is skipped.
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

// False: the file ends before the line does.
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

}  // namespace arctrace
