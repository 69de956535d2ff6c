#include "reader/cli/live_choice.hpp"

#include <absl/container/btree_set.h>
#include <absl/strings/str_cat.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "reader/cli/function_pattern.hpp"
#include "reader/cli/near_names.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/live_choice.hpp"

namespace arctrace::cli {
namespace {

// A function of the session's programs.
struct Function : FunctionNames {
  bool operator<(const Function& other) const { return linked < other.linked; }
};

using Functions = absl::btree_set<Function>;

void add_functions(const std::string& path, Functions& functions) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return;
  for (const reader::ElfSymbolTable& table : file->function_symbols()) {
    for (const reader::ElfSymbol& symbol : table.symbols) {
      Function function{FunctionNames(table.names.c_str() + symbol.name)};
      if (!function.linked.empty()) functions.insert(std::move(function));
    }
  }
}

absl::StatusOr<Functions> functions_of_session(const std::string& path) {
  const absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return trace.status();
  absl::btree_set<std::string> files;
  for (const reader::Process& process : trace->definitions().processes()) {
    for (const reader::Module& module : process.modules) files.insert(module.path);
  }
  Functions functions;
  for (const std::string& file : files) add_functions(file, functions);
  return functions;
}

// The glob that stands for this name only.
std::string exactly(const std::string& name) {
  std::string glob;
  for (const char c : name) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob;
}

class Maker {
 public:
  explicit Maker(Functions functions) : functions_(std::move(functions)) {}

  // Error: it does not fit any more.
  absl::Status add(char mark, const std::string& option, const FunctionPattern& pattern) {
    size_t found = 0;
    // A glob of linker's names holds in programs and libraries that come later, too. What
    // stands for nothing yet is nobody's name.
    if (!pattern.is_regex()) put(mark, pattern.text());
    std::string names;
    for (const Function& function : functions_) {
      const bool is_linked = pattern.matches(function.linked);
      if (!pattern.matches_any(function)) continue;
      ++found;
      if (!is_linked || pattern.is_regex()) put(mark, exactly(function.linked));
    }
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
    for (const Function& function : functions_) names.push_back(function.plain);
    choice_.warnings.push_back(
        functions_.empty()
            ? absl::StrCat("no process has joined: what ", option, " ",
                           reader::escaped(pattern.text()), " matches is not known yet")
            : absl::StrCat("no function matches ", option, " ",
                           reader::escaped(pattern.text()),
                           near_names(plain_part(pattern.text()), names)));
  }

  Functions functions_;
  LiveChoice choice_;
};

}  // namespace

absl::StatusOr<LiveChoice> make_live_choice(const CallFilterOptions& options,
                                            const std::string& path) {
  if (options.chosen.empty() && options.left_out.empty()) return LiveChoice{};
  absl::StatusOr<Functions> functions = functions_of_session(path);
  if (!functions.ok()) return functions.status();
  Maker maker(*std::move(functions));
  for (const std::string& text : options.chosen) {
    absl::Status added = maker.add(kTraceMark, "-F", FunctionPattern(text));
    if (!added.ok()) return added;
  }
  for (const std::string& text : options.left_out) {
    absl::Status added = maker.add(kLeaveOutMark, "-N", FunctionPattern(text));
    if (!added.ok()) return added;
  }
  return maker.take();
}

absl::Status publish(const LiveChoice& choice, const Buffer& buffer) {
  std::array<uint64_t, kChoiceWords> words{};
  std::memcpy(words.data(), choice.text.data(), choice.text.size());
  const bool is_done = publish_choice(choice_area(buffer.view()), words.data(),
                                      static_cast<uint32_t>(choice.text.size()));
  return is_done
             ? absl::OkStatus()
             : absl::AbortedError("another arctrace ctl chooses functions: try again");
}

}  // namespace arctrace::cli
