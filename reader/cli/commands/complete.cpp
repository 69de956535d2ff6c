// arctrace complete: prints the words that completions of shells ask for, one a line:
// names of sessions, and functions of a trace. The help does not show it.
#include <absl/container/btree_set.h>
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/output.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

// A shell waits for the answer, so the rest of a long trace is not read.
constexpr std::chrono::milliseconds kAnswerTimeMax(1500);

enum class Kind : uint8_t { kSessions, kFunctions };

absl::btree_set<std::string> sessions() {
  absl::btree_set<std::string> names;
  for (const recorder::FoundSession& session : recorder::find_sessions())
    names.insert(session.name);
  return names;
}

absl::StatusOr<absl::btree_set<std::string>> functions(const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + kAnswerTimeMax;
  absl::StatusOr<reader::Trace> trace =
      reader::Trace::open(recorder::file_or_session(path));
  if (!trace.ok()) return trace.status();
  reader::Symbolizer symbolizer;
  reader::Replay replay(trace->definitions(), &symbolizer);
  reader::ReplayWatch watch;
  watch.goes = [&](const reader::ReadSoFar& /*so_far*/) {
    return std::chrono::steady_clock::now() < end;
  };
  if (const auto read = run_replay(*trace, replay, watch); !read.ok()) {
    return read.status();
  }
  absl::btree_set<std::string> names;
  const reader::Functions& found = replay.resolver().functions();
  for (reader::FunctionId id = reader::kUnknownFunction + 1; id < found.size(); ++id) {
    names.insert(reader::escaped(found[id].name));
  }
  return names;
}

absl::StatusOr<int> complete(Kind kind, const std::string& path) {
  const absl::StatusOr<absl::btree_set<std::string>> words =
      kind == Kind::kSessions ? sessions() : functions(path);
  if (!words.ok()) return words.status();
  reader::Output output;
  for (const std::string& word : *words) output.write(absl::StrCat(word, "\n"));
  if (absl::Status status = output.finish(); !status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_complete(CLI::App& root) {
  struct Options {
    Kind kind = Kind::kSessions;
    std::string path;
  };
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("complete", "print words for completions");
  app->group("");
  add_choice<Kind>(*app, "kind", options->kind,
                   {{"sessions", Kind::kSessions}, {"functions", Kind::kFunctions}},
                   "what to print")
      ->required();
  add_file_option(*app, options->path);
  return [options] { return complete(options->kind, options->path); };
}

}  // namespace arctrace::cli
