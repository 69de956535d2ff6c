// Prints what a file has of a buffer in which the oldest records were overwritten.
#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "reader/cli/record/record_session.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/trace/kept_span.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {
namespace {

// The size of a buffer that would have held `keep_ns`: with a quarter to spare, because
// programs do not write evenly.
std::string advice_for(uint64_t buffer_bytes, uint64_t held_ns, uint64_t keep_ns) {
  if (buffer_bytes == 0 || held_ns == 0) return {};
  const double wanted = static_cast<double>(buffer_bytes) * static_cast<double>(keep_ns) /
                        static_cast<double>(held_ns) * 1.25;
  constexpr double kMost = 64e9;
  if (wanted > kMost) return {};
  const uint64_t mib = std::bit_ceil(static_cast<uint64_t>(wanted) >> 20);
  return absl::StrCat(": a buffer of -b ", mib, "M might");
}

}  // namespace

void tell_kept(const std::string& path, uint64_t keep_ns) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return;
  const std::optional<reader::KeptSpan> kept =
      reader::kept_span(trace->session(), trace->definitions());
  if (!kept.has_value()) return;
  reader::print_message(reader::kept_span_text(*kept));
  const uint64_t held_ns = std::min(kept->ns(), kept->kernel_ns());
  if (held_ns >= keep_ns) return;
  reader::print_warning(
      absl::StrCat("the buffer did not hold the last ", reader::duration_text(keep_ns),
                   " for which --keep asks",
                   advice_for(trace->session().buffer_size, held_ns, keep_ns)));
}

}  // namespace arctrace::cli
