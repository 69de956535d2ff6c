// arctrace archive: copies a trace file, with the names and source lines of its functions
// in it, so that another machine shows them as this one does.
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/export/export_file.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/terminal.hpp"
#include "reader/replay/used_symbols.hpp"
#include "reader/trace/key_scan.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "src/base/checksum.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

struct ArchiveOptions {
  std::string path;
  std::string output;  // empty: the default
  bool force = false;
  bool download = false;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Copies the header, and all chunks but those of SYMBOLS at the end.
absl::Status copy_trace(reader::Input& input, uint64_t end, reader::ExportFile& file) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<std::byte> piece(kPiece);
  for (uint64_t at = 0; at < end && file.good();) {
    const size_t wanted = std::min<uint64_t>(kPiece, end - at);
    const absl::StatusOr<size_t> read = input.read(at, std::span(piece).first(wanted));
    if (!read.ok()) return read.status();
    if (*read < wanted) {
      return absl::DataLossError(
          absl::StrCat(reader::escaped(input.name()), " became shorter meanwhile"));
    }
    if (at == 0) {
      arctrace_session_header header{};
      std::memcpy(&header, piece.data(), sizeof header);
      header.version_minor =
          std::max<uint16_t>(header.version_minor, ARCTRACE_VERSION_MINOR);
      std::memcpy(piece.data(), &header, sizeof header);
    }
    file.write(text_of(std::span(piece).first(wanted)));
    at += wanted;
    if (reader::InterruptWatch::interrupted()) break;
  }
  return absl::OkStatus();
}

void write_symbols(const reader::Trace& trace, const reader::UsedSymbols& used,
                   reader::ExportFile& file) {
  arctrace_chunk_header chunk{};
  chunk.magic = ARCTRACE_CHUNK_MAGIC;
  chunk.kind = ARCTRACE_CHUNK_SYMBOLS;
  chunk.sequence = trace.end().sequence;
  for (const std::vector<std::byte>& payload :
       reader::encode_symbols(used.modules, ARCTRACE_SYMBOLS_LINES)) {
    chunk.size = static_cast<uint32_t>(payload.size());
    chunk.checksum = 0;
    if (trace.session().has_checksums) {
      Checksum checksum;
      checksum.add(std::as_bytes(std::span(&chunk, 1)));
      checksum.add(payload);
      chunk.checksum = checksum.value();
    }
    file.write(text_of(std::as_bytes(std::span(&chunk, 1))));
    file.write(text_of(payload));
    ++chunk.sequence;
  }
}

struct FoundSymbols {
  reader::UsedSymbols used;  // of functions, and of locks
  size_t locks = 0;
};

absl::StatusOr<FoundSymbols> find_symbols(reader::Input& input,
                                          const reader::Trace& trace,
                                          const ArchiveOptions& options) {
  const auto goes_on = [] { return !reader::InterruptWatch::interrupted(); };
  reader::UsedKeys keys, locks;
  const absl::StatusOr<bool> all =
      reader::scan_keys_untrusted(input, trace, goes_on, keys, &locks);
  if (!all.ok()) return all.status();
  if (!*all && goes_on()) {
    reader::print_warning(absl::StrCat("only ", reader::kUsedKeysMax,
                                       " addresses are looked up: there are more"));
  }
  FoundSymbols found;
  found.used =
      reader::find_used_symbols(trace.definitions(), keys, reader::WithSource::kYes,
                                symbol_options(options.download), goes_on);
  found.locks =
      reader::add_lock_symbols(trace.definitions(), locks, reader::WithSource::kYes,
                               symbol_options(options.download), goes_on, found.used);
  return found;
}

void warn_of_modules(const std::vector<std::string>& findings) {
  constexpr size_t kShownMax = 5;
  for (size_t i = 0; i < std::min(findings.size(), kShownMax); ++i) {
    reader::print_warning(reader::escaped(findings[i]));
  }
  if (findings.size() > kShownMax) {
    reader::print_warning(
        absl::StrCat(reader::count_text(findings.size() - kShownMax, "more module"),
                     " could not be used as recorded"));
  }
}

absl::StatusOr<int> archive(const ArchiveOptions& options) {
  const std::string output =
      options.output.empty() ? options.path + ".archive" : options.output;
  // The watch lasts to the end, so that Ctrl-C at any time leaves no temporary file.
  const reader::InterruptWatch watch;
  // The file is opened once, because a pipe cannot be read again.
  absl::StatusOr<std::unique_ptr<reader::Input>> opened = reader::open_file(options.path);
  if (!opened.ok()) return opened.status();
  reader::Input& input = **opened;
  const reader::TraceFiles files = reader::TraceFiles::of(*std::move(opened));
  const absl::StatusOr<reader::Trace> trace = files.trace({}, [] { return false; });
  if (!trace.ok()) return trace.status();
  if (trace->session().raw) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader::escaped(options.path),
                     " is a session's buffer: arctrace snapshot makes a file of it"));
  }
  if (reader::ExportFile::is_same_file(options.path, output)) {
    return absl::InvalidArgumentError(
        absl::StrCat("archive: ", reader::escaped(output), " is the trace itself"));
  }
  // The copy is a trace, and like any other readable for its owner only.
  absl::StatusOr<std::unique_ptr<reader::ExportFile>> file =
      reader::ExportFile::create(output, options.force, 0600);
  if (!file.ok()) return file.status();
  absl::StatusOr<FoundSymbols> found;
  {
    const std::unique_ptr<recorder::ActingWithRights> rights = act_as_owner(options.path);
    found = find_symbols(input, *trace, options);
  }
  if (!found.ok()) return found.status();
  const reader::UsedSymbols& used = found->used;
  if (absl::Status s = copy_trace(input, trace->end().offset, **file); !s.ok()) {
    return s;
  }
  if (reader::InterruptWatch::interrupted()) {
    reader::print_message("interrupted: nothing is written");
    return kStatusInterrupted;
  }
  write_symbols(*trace, used, **file);
  if (absl::Status s = (*file)->publish(); !s.ok()) return s;
  warn_of_modules(used.findings);
  if (output == "-") return 0;
  const std::string locks =
      found->locks == 0 ? ""
                        : absl::StrCat(", ", reader::count_text(found->locks, "lock"));
  const std::string nameless =
      used.nameless == 0
          ? ""
          : absl::StrCat(", ", reader::count_text(used.nameless, "address", "addresses"),
                         " without a name");
  reader::print_message(absl::StrCat(
      reader::count_text(used.functions, "function"), locks, " of ",
      reader::count_text(used.modules.size(), "module"), nameless, ": ",
      reader::escaped(output), " (", reader::bytes_text((*file)->bytes()), ")"));
  return 0;
}

}  // namespace

Runner add_archive(CLI::App& root) {
  auto options = std::make_shared<ArchiveOptions>();
  CLI::App* app = root.add_subcommand(
      "archive", "make a trace file that reads the same on any machine");
  add_file_option(*app, options->path);
  app->add_option("-o,--output", options->output,
                  "the file to write; - is standard output; default: FILE.archive")
      ->check(not_empty())
      ->type_name("OUT");
  app->add_flag("--force", options->force, "replace OUT if it exists");
  app->add_flag("--debuginfod", options->download,
                "download debug files from the servers in DEBUGINFOD_URLS");
  app->footer(
      "OUT is FILE, and at its end the names and source lines of all functions whose\n"
      "addresses are in it, and the names of locks that are variables, as the programs\n"
      "and their debug information on this machine have them. record stores names of\n"
      "functions only, and those of a recording that is very long perhaps not all. OUT\n"
      "appears under its name only when it is complete.");
  return [options] { return archive(*options); };
}

}  // namespace arctrace::cli
