#include "reader/cli/record/live_filter.hpp"

#include <absl/strings/str_cat.h>

#include <array>
#include <cstring>
#include <utility>

#include "reader/cli/options/function_pattern.hpp"
#include "reader/cli/options/pattern_hints.hpp"
#include "reader/cli/options/session_functions.hpp"
#include "reader/cli/record/prefix_cover.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/near_names.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/protocol/moments.hpp"

namespace arctrace::cli {
namespace {

class Maker {
 public:
  explicit Maker(SessionFunctions session) : functions_(std::move(session.functions)) {}

  // ResourceExhausted: the filter does not fit any more.
  absl::Status add(char mark, const std::string& option, const FunctionPattern& pattern) {
    // The glob itself is put as well, because it may match linker's names in programs and
    // libraries that are loaded later.
    if (!pattern.is_regex()) put(mark, pattern.text());
    size_t found = 0;
    std::vector<CoveredName> names;
    std::vector<std::string> globs;
    size_t size = filter_.text.size();
    for (const SessionFunction& function : functions_) {
      const bool is_put = !pattern.is_regex() && (pattern.matches(function.linked) ||
                                                  pattern.matches(function.base));
      const bool is_wanted = !is_put && pattern.matches_any(function);
      names.push_back({function.linked, is_wanted ? Coverage::kWanted
                                        : is_put  ? Coverage::kAllowed
                                                  : Coverage::kForbidden});
      if (is_wanted || is_put) ++found;
      if (!is_wanted) continue;
      globs.push_back(exactly(function.linked));
      size += globs.back().size() + 2;
    }
    if (size > ARCTRACE_LIVE_FILTER_TEXT_MAX) globs = prefix_cover(names);
    for (const std::string& glob : globs) put(mark, glob);
    if (filter_.text.size() > ARCTRACE_LIVE_FILTER_TEXT_MAX) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "ctl: ", option, " ", reader::escaped(pattern.text()), " matches ", found,
          " functions, whose names take more than the ", ARCTRACE_LIVE_FILTER_TEXT_MAX,
          " bytes that a live session has for them; a glob of linker's names takes few"));
    }
    if (found == 0) {
      if (pattern.is_regex()) put(mark, "");
      warn(option, pattern);
    }
    return absl::OkStatus();
  }

  LiveFilter take() { return std::move(filter_); }

 private:
  void put(char mark, const std::string& glob) {
    filter_.text += mark;
    filter_.text += glob;
    filter_.text += '\0';
  }

  void warn(const std::string& option, const FunctionPattern& pattern) {
    std::vector<std::string> names;
    for (const SessionFunction& function : functions_) names.push_back(function.plain);
    filter_.warnings.push_back(
        functions_.empty()
            ? absl::StrCat("no process has joined: what ", option, " ",
                           reader::escaped(pattern.text()), " matches is not known yet")
            : absl::StrCat("no function matches ", option, " ",
                           reader::escaped(pattern.text()),
                           near_names(plain_part(pattern.text()), names)));
  }

  absl::btree_set<SessionFunction> functions_;
  LiveFilter filter_;
};

}  // namespace

absl::StatusOr<LiveFilter> make_live_filter(const CallFilterOptions& options,
                                            const std::string& path) {
  if (options.filter.empty() && options.notrace.empty()) return LiveFilter{};
  absl::StatusOr<SessionFunctions> functions = functions_of_session(path);
  if (!functions.ok()) return functions.status();
  Maker maker(*std::move(functions));
  for (const std::string& text : options.filter) {
    absl::Status added = maker.add(kFilterMark, "-F", FunctionPattern(text));
    if (!added.ok()) return added;
  }
  for (const std::string& text : options.notrace) {
    absl::Status added = maker.add(kNotraceMark, "-N", FunctionPattern(text));
    if (!added.ok()) return added;
  }
  return maker.take();
}

absl::Status publish(const LiveFilter& filter, const Buffer& buffer) {
  std::array<uint64_t, kLiveFilterWords> words{};
  std::memcpy(words.data(), filter.text.data(), filter.text.size());
  const bool is_done = publish_filter(live_filter_area(buffer.view()), words.data(),
                                      static_cast<uint32_t>(filter.text.size()));
  if (!is_done) {
    return absl::AbortedError("another arctrace ctl sets the filter: try again");
  }
  note_gate_change(buffer.view(), read_ticks(buffer.view().geometry().clock));
  return absl::OkStatus();
}

}  // namespace arctrace::cli
