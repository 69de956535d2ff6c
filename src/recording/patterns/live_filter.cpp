// Covers the names that a pattern matches by globs, and writes the filter's text.
#include "src/recording/patterns/live_filter.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "reader/trace/text_escape.hpp"
#include "src/base/near_names.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/recording/patterns/function_pattern.hpp"
#include "src/recording/patterns/program_functions.hpp"

namespace arctrace::recording {

namespace {

class Cover {
 public:
  explicit Cover(const std::vector<CoveredName>& names)
      : names_(names),
        wanted_before_(names.size() + 1),
        forbidden_before_(wanted_before_) {
    for (size_t i = 0; i < names.size(); ++i) {
      wanted_before_[i + 1] =
          wanted_before_[i] + (names[i].coverage == Coverage::kWanted ? 1 : 0);
      forbidden_before_[i + 1] =
          forbidden_before_[i] + (names[i].coverage == Coverage::kForbidden ? 1 : 0);
    }
  }

  // Covers names_[begin, end), which have a prefix of `length` bytes that no other name
  // has.
  void add(size_t begin, size_t end, size_t length) {
    if (wanted_before_[begin] == wanted_before_[end]) return;
    const std::string_view first = names_[begin].name;
    if (end - begin == 1) {
      globs_.push_back(exactly(first));
      return;
    }
    if (forbidden_before_[begin] == forbidden_before_[end]) {
      globs_.push_back(exactly(first.substr(0, length)) + "*");
      return;
    }
    const std::string_view last = names_[end - 1].name;
    const auto differ =
        std::mismatch(first.begin(), first.end(), last.begin(), last.end());
    const auto common = static_cast<size_t>(differ.first - first.begin());
    size_t i = begin;
    if (first.size() == common) {
      add(begin, begin + 1, common);
      ++i;
    }
    while (i < end) {
      size_t next = i + 1;
      while (next < end && names_[next].name[common] == names_[i].name[common]) ++next;
      add(i, next, common + 1);
      i = next;
    }
  }

  std::vector<std::string> take() { return std::move(globs_); }

 private:
  const std::vector<CoveredName>& names_;
  std::vector<size_t> wanted_before_, forbidden_before_;
  std::vector<std::string> globs_;
};

}  // namespace

std::string exactly(std::string_view name) {
  std::string glob;
  for (const char c : name) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob;
}

std::vector<std::string> prefix_cover(const std::vector<CoveredName>& names) {
  Cover cover(names);
  if (!names.empty()) cover.add(0, names.size(), 0);
  return cover.take();
}

namespace {

class Maker {
 public:
  explicit Maker(SessionFunctions session) : session_(std::move(session)) {}

  // Adds a pattern. ResourceExhausted: the filter does not fit any more.
  absl::Status add(char mark, const std::string& option, const FunctionPattern& pattern) {
    // The glob itself is put as well, because it may match linker's names in programs and
    // libraries that are loaded later.
    if (!pattern.is_regex()) put(mark, pattern.text());
    size_t found = 0;
    std::map<std::string_view, Coverage> names;
    std::vector<std::string> globs;
    size_t size = filter_.text.size();
    // `is_put`: the glob itself was put.
    const auto cover = [&](const std::string& name, bool is_put, bool is_matched) {
      const bool is_wanted = !is_put && is_matched;
      Coverage& coverage = names.try_emplace(name, Coverage::kForbidden).first->second;
      coverage = std::max(coverage, is_wanted ? Coverage::kWanted
                                    : is_put  ? Coverage::kAllowed
                                              : Coverage::kForbidden);
      if (is_wanted || is_put) ++found;
      if (!is_wanted) return;
      globs.push_back(exactly(name));
      size += globs.back().size() + 2;
    };
    for (const SessionFunction& function : session_.functions) {
      cover(function.linked,
            !pattern.is_regex() &&
                (pattern.matches(function.linked) || pattern.matches(function.base)),
            pattern.matches_any(function));
    }
    for (const std::string& scope : session_.scopes) {
      const bool is_matched = pattern.matches(scope);
      cover(scope, !pattern.is_regex() && is_matched, is_matched);
    }
    if (size > ARCTRACE_LIVE_FILTER_TEXT_MAX) {
      std::vector<CoveredName> covered;
      covered.reserve(names.size());
      for (const auto& [name, coverage] : names) covered.push_back({name, coverage});
      globs = prefix_cover(covered);
    }
    for (const std::string& glob : globs) put(mark, glob);
    if (filter_.text.size() > ARCTRACE_LIVE_FILTER_TEXT_MAX) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "ctl: ", option, " ", reader::escaped(pattern.text()), " matches ", found,
          " functions and scopes, whose names take more than the ",
          ARCTRACE_LIVE_FILTER_TEXT_MAX,
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
    for (const SessionFunction& function : session_.functions) {
      names.push_back(function.brief);
    }
    names.insert(names.end(), session_.scopes.begin(), session_.scopes.end());
    filter_.warnings.push_back(
        session_.functions.empty() && session_.scopes.empty()
            ? absl::StrCat("no process has joined: what ", option, " ",
                           reader::escaped(pattern.text()), " matches is not known yet")
            : absl::StrCat("no function or scope matches ", option, " ",
                           reader::escaped(pattern.text()),
                           near_names(plain_part(pattern.text()), names)));
  }

  SessionFunctions session_;
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

}  // namespace arctrace::recording
