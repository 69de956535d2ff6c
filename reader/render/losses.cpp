#include "reader/render/losses.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include "reader/render/text_style.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::reader {

std::string losses_text(std::span<const uint64_t> by_cause) {
  std::string text;
  for (uint32_t cause = 0; cause < by_cause.size(); ++cause) {
    if (by_cause[cause] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", loss_cause_text(cause), " ",
                    grouped_text(by_cause[cause]));
  }
  return text;
}

std::string other_missing_text(const Summary& summary) {
  std::string text;
  const auto append = [&](uint64_t count, const char* what) {
    if (count != 0) absl::StrAppend(&text, ", ", grouped_text(count), " ", what);
  };
  append(summary.overwritten, "overwritten");
  append(summary.elsewhere, "in another file");
  append(summary.filtered_out, "filtered out");
  append(summary.torn, "torn");
  append(summary.unfinished, "unfinished");
  return text;
}

void write_losses_json(std::string_view name, std::span<const uint64_t> by_cause,
                       JsonWriter& json) {
  json.key(name).begin_object();
  for (uint32_t cause = 0; cause < by_cause.size(); ++cause) {
    json.member(loss_cause_text(cause), by_cause[cause]);
  }
  json.end();
}

}  // namespace arctrace::reader
