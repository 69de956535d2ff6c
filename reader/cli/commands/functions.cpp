// arctrace functions: which functions of a program or library can be patched with a jump
// at their entry, and why the others are skipped.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/near_names.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "src/recording/patching/patch_choice.hpp"
#include "src/recording/patterns/function_pattern.hpp"
#include "src/recording/patterns/program_functions.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::cli {
namespace {

struct FunctionsOptions {
  std::string path;
  std::vector<std::string> patterns;
  bool list = false;
  bool no_cache = false;
  OutputFormat format = OutputFormat::kText;
  TerminalOptions terminal;
};

reader::PatchVerdictText text_of(size_t verdict) {
  return reader::patch_verdict_text(static_cast<uint32_t>(verdict));
}

// The functions that are asked for, and how many there are of each verdict.
struct Selected {
  std::vector<const recorder::FunctionPlan*> functions;
  std::array<size_t, recorder::kPatchVerdicts> counts{};
  size_t entry_only = 0;

  size_t count(recorder::PatchVerdict verdict) const {
    return counts[static_cast<size_t>(verdict)];
  }
  size_t patchable() const { return count(recorder::PatchVerdict::kPatchable); }
  size_t parts() const { return count(recorder::PatchVerdict::kPart); }
  // The number of functions without the parts, which nothing calls.
  size_t all() const { return functions.size() - parts(); }
};

// Returns the shown name: "redis-server+0x1234" for a function without a name.
std::string shown_name(const recorder::FunctionPlan& function,
                       const std::string& module) {
  return function.name.empty() ? absl::StrFormat("%s+0x%x", module, function.start)
                               : recording::FunctionNames(function.name).copy;
}

absl::StatusOr<Selected> select(const recorder::PatchPlan& plan,
                                const FunctionsOptions& options,
                                const std::string& module) {
  // The choice is that of `record -P`, for functions of any size.
  recording::PatchChoice choice(1, module, "");
  const std::vector<std::string>& patterns = options.patterns;
  if (patterns.size() > shim::kPatternsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", shim::kPatternsMax, " patterns"));
  }
  for (size_t i = 0; i < patterns.size(); ++i) choice.add(patterns[i], i);
  if (!patterns.empty()) choice.read_aliases_untrusted(options.path);
  uint64_t matched = 0;  // one bit for each pattern
  Selected selected;
  for (const recorder::FunctionPlan& function : plan.functions) {
    const uint64_t by = choice.match(function).patterns;
    matched |= by;
    if (by == 0 && !patterns.empty()) continue;
    selected.functions.push_back(&function);
    ++selected.counts[static_cast<size_t>(function.verdict)];
    selected.entry_only += function.entry_only ? 1 : 0;
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if ((matched >> i & 1) != 0) continue;
    std::vector<std::string> names;
    for (const recorder::FunctionPlan& function : plan.functions) {
      if (!function.name.empty())
        names.push_back(recording::FunctionNames(function.name).brief);
    }
    return absl::NotFoundError(
        absl::StrCat("no function of ", module, " matches -P ", patterns[i],
                     near_names(recording::plain_part(patterns[i]), names)));
  }
  return selected;
}

void write_text(const Selected& selected, const FunctionsOptions& options,
                const std::string& module, reader::Output& output) {
  const size_t all = selected.all();
  const auto share = [&](size_t count) {
    return all == 0 ? 0.0 : 100.0 * static_cast<double>(count) / static_cast<double>(all);
  };
  const auto row = [&](size_t count, std::string_view text) {
    output.write(
        absl::StrFormat("%9d  %5.1f  %s\n", count, share(count), std::string(text)));
  };
  output.write(absl::StrCat(reader::escaped(options.path), "\n\nFunctions      %\n"));
  row(all, "in all");
  row(selected.patchable(), "can be patched");
  if (selected.entry_only != 0) {
    row(selected.entry_only,
        "of these only their entries, because they use their return address");
  }
  constexpr auto kPart = static_cast<size_t>(recorder::PatchVerdict::kPart);
  std::vector<size_t> verdicts;
  for (size_t i = 1; i < recorder::kPatchVerdicts; ++i) {
    if (selected.counts[i] != 0 && i != kPart) verdicts.push_back(i);
  }
  std::stable_sort(verdicts.begin(), verdicts.end(), [&](size_t a, size_t b) {
    return selected.counts[a] > selected.counts[b];
  });
  for (const size_t i : verdicts) {
    row(selected.counts[i], absl::StrCat("left: ", text_of(i).reason));
  }
  if (selected.parts() != 0) {
    output.write(absl::StrFormat(
        "%9d         parts of functions that the compiler split off, which jumps enter\n",
        selected.parts()));
  }
  if (!options.list) return;
  output.write("\n         Address      Size  Moved  Verdict          Function\n");
  for (const recorder::FunctionPlan* function : selected.functions) {
    output.write(absl::StrFormat(
        "%#16x  %8d  %5s  %-15s  %s\n", function->start, function->size,
        function->displaced == 0 ? "-" : absl::StrCat(function->displaced),
        function->entry_only ? "entry only"
                             : text_of(static_cast<size_t>(function->verdict)).word,
        reader::escaped(shown_name(*function, module))));
  }
}

void write_json(const recorder::PatchPlan& plan, const Selected& selected,
                const FunctionsOptions& options, const std::string& module,
                reader::JsonWriter& json) {
  json.begin_object();
  json.member("file", options.path);
  json.member("build_id", reader::to_hex(plan.build_id));
  json.member("functions", selected.all());
  json.member("parts", selected.parts());
  json.member("patchable", selected.patchable());
  json.member("entry_only", selected.entry_only);
  json.key("left").begin_object();
  for (size_t i = 1; i < recorder::kPatchVerdicts; ++i) {
    if (i == static_cast<size_t>(recorder::PatchVerdict::kPart)) continue;
    json.member(text_of(i).key, selected.counts[i]);
  }
  json.end();
  json.key("findings").begin_array();
  for (const std::string& finding : plan.findings) json.value(finding);
  json.end();
  if (options.list) {
    json.key("list").begin_array();
    for (const recorder::FunctionPlan* function : selected.functions) {
      json.begin_object();
      json.member("name", shown_name(*function, module));
      json.member("linker_name", function->name);
      json.member("address", function->start);
      json.member("size", function->size);
      json.member("verdict", text_of(static_cast<size_t>(function->verdict)).key);
      json.member("entry_only", function->entry_only);
      json.member("may_last", function->may_last);
      json.member("kept", function->kept);
      json.member("moved", function->displaced);
      json.end();
    }
    json.end();
  }
  json.end();
  json.finish();
}

absl::StatusOr<int> functions(FunctionsOptions options) {
  recording::CallFilterOptions as_filter;
  as_filter.filter = options.patterns;
  if (auto problem = recording::find_problem(as_filter)) {
    problem->option = "-P";
    reader::print_error("functions: " + problem->text());
    return 2;
  }
  std::error_code error;
  if (!std::filesystem::exists(options.path, error)) {
    if (std::string found = recording::find_program(options.path); !found.empty()) {
      options.path = std::move(found);
    }
  }
  const absl::StatusOr<recording::PlannedModule> planned =
      recording::plan_module(options.path, !options.no_cache);
  if (!planned.ok()) return planned.status();
  const recorder::PatchPlan& plan = planned->plan;
  const std::string module = std::filesystem::path(options.path).filename();
  const absl::StatusOr<Selected> selected = select(plan, options, module);
  if (!selected.ok()) return selected.status();
  for (const std::string& finding : plan.findings) {
    reader::print_warning(absl::StrCat(reader::escaped(options.path), ": ", finding));
  }
  reader::Output output;
  if (options.format == OutputFormat::kJson) {
    reader::JsonWriter json(output.writer(), reader::JsonWriter::Layout::kIndented);
    write_json(plan, *selected, options, module, json);
  } else {
    options.terminal.apply_to(output);
    write_text(*selected, options, module, output);
  }
  if (absl::Status status = output.finish(); !status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_functions(CLI::App& root) {
  auto options = std::make_shared<FunctionsOptions>();
  CLI::App* app = root.add_subcommand(
      "functions", "show which functions of a program could be patched");
  app->add_option("binary", options->path, "the program or shared library, for x86-64")
      ->required()
      ->check(not_empty())
      ->type_name("BINARY");
  app->add_option("-P,--patch", options->patterns,
                  "only functions that match PATTERN, a glob or re: and a regular "
                  "expression; \".\" for all; may be repeated")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  app->add_flag("--list", options->list, "show each function with its verdict");
  app->add_flag("--no-cache", options->no_cache,
                "analyse anew, and keep nothing in the cache");
  add_format_option(*app, options->format);
  add_text_options(*app, options->terminal);
  app->footer(
      "Counts the functions at whose entry a jump of 5 bytes could take the place of\n"
      "the first instructions, and by reason those that have to be left alone. Nothing\n"
      "is changed. Functions come from symbols, also of separate debug files, and\n"
      "beside these from the unwind tables: they are called BINARY+0xADDRESS. What was\n"
      "found is kept by build-id in ~/.cache/arctrace/plans.");
  return [options] { return functions(*options); };
}

}  // namespace arctrace::cli
