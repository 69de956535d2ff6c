// The view "errors": which calls failed, with which errno.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "reader/analysis/failed_calls.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/views.hpp"
#include "reader/trace/call_args.hpp"

namespace arctrace::reader {
namespace {

constexpr std::string_view kNoResults =
    "\nno results of calls are recorded: record -a has those of common functions of "
    "libc, "
    "-R those of the functions that it names, --kernel --syscalls those of system calls";

class ErrorsView : public View {
 public:
  explicit ErrorsView(const ViewSettings& settings) : options_(settings.options) {}

  ReplayListener* call_listener() override { return &counts_; }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    if (counts_.results() == 0) {
      write(absl::StrCat(wrap_line(std::string(kNoResults), 2, options_.style), "\n"));
      return absl::OkStatus();
    }
    std::string head = "\n";
    append_tinted(head, options_.style, Tint::kHead,
                  "    Errors  of Calls      Total    Longest  Error         Function");
    if (!write(head + "\n")) return absl::OkStatus();
    const std::vector<FailedCalls> all = sorted(labels);
    const size_t shown = shown_of(all);
    uint64_t errors = 0;
    for (const FailedCalls& calls : all) errors += calls.errors;
    for (size_t i = 0; i < shown; ++i) {
      if (!write(row_text(all[i], labels))) return absl::OkStatus();
    }
    if (!write(hidden_rows_text(all.size() - shown))) return absl::OkStatus();
    write(absl::StrCat("\n", count_text(errors, "error"), " in ",
                       count_text(counts_.results(), "call"),
                       " whose results are recorded\n"));
    return absl::OkStatus();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
    FunctionLabels labels(replay, options_.lines);
    json.member("results", counts_.results());
    json.key("errors").begin_array();
    const std::vector<FailedCalls> all = sorted(labels);
    const size_t shown = shown_of(all);
    for (size_t i = 0; i < shown && json.good(); ++i) {
      const FailedCalls& calls = all[i];
      json.begin_object();
      write_function_json(calls.function, labels, json);
      json.member("errno", errno_word(calls.error));
      json.member("number", calls.error);
      json.member("errors", calls.errors);
      json.member("calls", calls.results);
      json.member("total_ns", calls.total_ns);
      json.member("max_ns", calls.longest_ns);
      json.member("first_ns", calls.first_ns);
      json.end();
    }
    json.end();
    return absl::OkStatus();
  }

 private:
  // The key comes first, then the name and the errno, so that the order is always the
  // same.
  std::vector<FailedCalls> sorted(FunctionLabels& labels) const {
    std::vector<FailedCalls> all = counts_.failed();
    std::sort(all.begin(), all.end(), [&](const FailedCalls& a, const FailedCalls& b) {
      const auto key = [&](const FailedCalls& calls) {
        if (options_.sort == SortKey::kTotal) return calls.total_ns;
        return options_.sort == SortKey::kCalls ? calls.errors : 0;
      };
      if (key(a) != key(b)) return key(a) > key(b);
      if (a.function != b.function) {
        const int names = labels[a.function].name.compare(labels[b.function].name);
        return names != 0 ? names < 0 : a.function < b.function;
      }
      return a.error < b.error;
    });
    return all;
  }

  size_t shown_of(const std::vector<FailedCalls>& all) const {
    return static_cast<size_t>(std::min<uint64_t>(all.size(), options_.limit));
  }

  std::string row_text(const FailedCalls& calls, FunctionLabels& labels) const {
    std::string row;
    append_right(row, grouped_text(calls.errors), 10);
    append_right(row, grouped_text(calls.results), 10);
    append_right(row, duration_text(calls.total_ns), 11);
    append_right(row, duration_text(calls.longest_ns), 11);
    row += "  ";
    append_left(row, errno_word(calls.error), 14);
    append_name(row, labels.text(calls.function), "", false, options_.style);
    return row;
  }

  const ViewOptions options_;
  ErrorCounts counts_;
};

}  // namespace

std::unique_ptr<View> make_errors_view(const ViewSettings& settings) {
  return std::make_unique<ErrorsView>(settings);
}

}  // namespace arctrace::reader
