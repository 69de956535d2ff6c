// arctrace record: runs a command traced and keeps its exit status.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/cli/commands.hpp"
#include "reader/cli/record_session.hpp"

namespace arctrace::cli {
namespace {

const std::map<std::string, arctrace_mode> kModes = {{"drop", ARCTRACE_MODE_DROP},
                                                     {"stop", ARCTRACE_MODE_STOP}};
const std::map<std::string, arctrace_scope> kScopes = {{"thread", ARCTRACE_SCOPE_THREAD},
                                                       {"shared", ARCTRACE_SCOPE_SHARED}};
const std::map<std::string, PinPolicy> kPins = {
    {"no", PinPolicy::kNo}, {"try", PinPolicy::kTry}, {"require", PinPolicy::kRequire}};

template <class T>
CLI::CheckedTransformer one_of(const std::map<std::string, T>& names) {
  CLI::CheckedTransformer transformer(names, CLI::ignore_case);
  std::string text;
  for (const auto& [name, value] : names) text += (text.empty() ? "" : "|") + name;
  transformer.description(text);
  return transformer;
}

}  // namespace

Runner add_record(CLI::App& root) {
  auto options = std::make_shared<RecordOptions>();
  options->output = kDefaultFile;
  CLI::App* app = root.add_subcommand("record", "run a command traced");
  app->footer(
      "Library calls of COMMAND and of all its descendants, functions that were "
      "compiled\n"
      "with -finstrument-functions, and API events are recorded. The exit status is\n"
      "COMMAND's; 127 if it is not there, 126 if it can't be run, 2 if it could not be\n"
      "recorded. Ctrl-C goes to COMMAND; what was recorded is kept.");
  BufferOptions& buffer = options->buffer;
  app->add_option("-o,--output", options->output,
                  "trace file; an existing one is kept as FILE.old; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("-b,--buffer-size", buffer.buffer_size,
                  "memory for records, in bytes or with k, M, G")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->default_str("64M");
  app->add_option("--block-size", buffer.block_size,
                  "the buffer is cut into blocks of SIZE, a multiple of 64")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->default_str("64k");
  app->add_option("--slots", buffer.slot_count, "threads that can write at the same time")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--mode", buffer.mode,
                  "what a full buffer does: drop = lose and count new records until the "
                  "collector made room; stop = keep the oldest, collect at the end")
      ->transform(one_of(kModes))
      ->default_str("drop");
  app->add_option("--scope", buffer.scope,
                  "thread = each thread writes blocks of its own; shared = all reserve "
                  "in one chain of blocks")
      ->transform(one_of(kScopes))
      ->default_str("thread");
  app->add_option("--high-water", buffer.high_water_percent,
                  "wake the collector when PERCENT of the blocks are used; 0 = never")
      ->check(CLI::Range(0, 100))
      ->type_name("PERCENT")
      ->capture_default_str();
  app->add_option("--pin", buffer.pin, "lock the buffer into memory")
      ->transform(one_of(kPins))
      ->default_str("try");
  app->add_flag("--huge-pages", buffer.huge_pages, "ask for huge pages for the buffer");
  app->add_flag_callback(
      "--libcall", [options] { options->library_calls = LibraryCalls::kProgram; },
      "record the library calls of the program itself (default)");
  app->add_flag_callback(
      "--no-libcall", [options] { options->library_calls = LibraryCalls::kNone; },
      "record no library calls, only functions built for tracing, and events");
  app->add_flag_callback(
      "--nest-libcall", [options] { options->library_calls = LibraryCalls::kAll; },
      "record the calls between libraries too");
  app->add_flag("--wait", options->wait_for_all,
                "record until all that COMMAND started has ended too");
  app->add_option("command", options->command, "the command and its arguments")
      ->type_name("COMMAND [ARGUMENT]...");
  return [options] { return record_command(*options); };
}

void separate_command(const CLI::App& root, std::vector<std::string>& arguments) {
  const auto is = [&](size_t i, const char* text) { return arguments[i] == text; };
  if (arguments.empty() || !is(0, "record")) return;
  const CLI::App* app = root.get_subcommand("record");
  size_t i = 1;
  while (i < arguments.size() && arguments[i].size() > 1 && arguments[i][0] == '-') {
    if (is(i, "--")) return;
    const CLI::Option* option = app->get_option_no_throw(arguments[i]);
    const bool value_follows = option != nullptr && option->get_items_expected_min() > 0;
    i += value_follows ? 2 : 1;
  }
  if (i < arguments.size()) {
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), "--");
  }
}

}  // namespace arctrace::cli
