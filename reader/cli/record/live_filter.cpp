#include "reader/cli/record/live_filter.hpp"

#include <absl/strings/str_cat.h>

#include <array>
#include <cstring>
#include <utility>

#include "reader/cli/options/function_pattern.hpp"
#include "reader/cli/options/near_names.hpp"
#include "reader/cli/options/session_functions.hpp"
#include "reader/cli/record/prefix_cover.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace::cli {
namespace {

class Maker {
 public:
  explicit Maker(SessionFunctions session) : functions_(std::move(session.functions)) {}

  // Error: it does not fit any more.
  absl::Status add(char mark, const std::string& option, const FunctionPattern& pattern) {
    // A glob of linker's names holds in programs and libraries that come later, too. What
    // stands for nothing yet is nobody's name.
    if (!pattern.is_regex()) put(mark, pattern.text());
    size_t found = 0;
    std::vector<CoveredName> names;
    std::vector<std::string> globs;
    size_t size = choice_.text.size();
    for (const SessionFunction& function : functions_) {
      const bool is_put = !pattern.is_regex() && pattern.matches(function.linked);
      const bool is_wanted = !is_put && pattern.matches_any(function);
      names.push_back({function.linked, is_wanted ? Coverage::kWanted
                                        : is_put  ? Coverage::kAllowed
                                                  : Coverage::kForbidden});
      if (is_wanted || is_put) ++found;
      if (!is_wanted) continue;
      globs.push_back(exactly(function.linked));
      size += globs.back().size() + 2;
    }
    if (size > ARCTRACE_CHOICE_TEXT_MAX) globs = prefix_cover(names);
    for (const std::string& glob : globs) put(mark, glob);
    if (choice_.text.size() > ARCTRACE_CHOICE_TEXT_MAX) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "ctl: ", option, " ", reader::escaped(pattern.text()), " matches ", found,
          " functions, whose names take more than the ", ARCTRACE_CHOICE_TEXT_MAX,
          " bytes that a live session has for them; a glob of linker's names takes few"));
    }
    if (found == 0) {
      if (pattern.is_regex()) put(mark, "");
      warn(option, pattern);
    }
    return absl::OkStatus();
  }

  LiveChoice take() { return std::move(choice_); }

 private:
  void put(char mark, const std::string& glob) {
    choice_.text += mark;
    choice_.text += glob;
    choice_.text += '\0';
  }

  void warn(const std::string& option, const FunctionPattern& pattern) {
    std::vector<std::string> names;
    for (const SessionFunction& function : functions_) names.push_back(function.plain);
    choice_.warnings.push_back(
        functions_.empty()
            ? absl::StrCat("no process has joined: what ", option, " ",
                           reader::escaped(pattern.text()), " matches is not known yet")
            : absl::StrCat("no function matches ", option, " ",
                           reader::escaped(pattern.text()),
                           near_names(plain_part(pattern.text()), names)));
  }

  absl::btree_set<SessionFunction> functions_;
  LiveChoice choice_;
};

}  // namespace

absl::StatusOr<LiveChoice> make_live_choice(const CallFilterOptions& options,
                                            const std::string& path) {
  if (options.chosen.empty() && options.left_out.empty()) return LiveChoice{};
  absl::StatusOr<SessionFunctions> functions = functions_of_session(path);
  if (!functions.ok()) return functions.status();
  Maker maker(*std::move(functions));
  for (const std::string& text : options.chosen) {
    absl::Status added = maker.add(kFilterMark, "-F", FunctionPattern(text));
    if (!added.ok()) return added;
  }
  for (const std::string& text : options.left_out) {
    absl::Status added = maker.add(kNotraceMark, "-N", FunctionPattern(text));
    if (!added.ok()) return added;
  }
  return maker.take();
}

absl::Status publish(const LiveChoice& choice, const Buffer& buffer) {
  std::array<uint64_t, kLiveFilterWords> words{};
  std::memcpy(words.data(), choice.text.data(), choice.text.size());
  const bool is_done = publish_live_filter(live_filter_area(buffer.view()), words.data(),
                                           static_cast<uint32_t>(choice.text.size()));
  return is_done
             ? absl::OkStatus()
             : absl::AbortedError("another arctrace ctl chooses functions: try again");
}

}  // namespace arctrace::cli
