// Finds the shim, and makes the variables for programs.
#include "src/recording/session_variables.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "src/base/memory.hpp"
#include "src/os/program_file.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recording/arg_types.hpp"
#include "src/recording/events.hpp"
#include "src/recording/patterns/program_functions.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

namespace {

namespace fs = std::filesystem;

absl::Status overflow_status(shim::OptionsEncoder::Overflow overflow) {
  switch (overflow) {
    case shim::OptionsEncoder::Overflow::kNone:
      return absl::OkStatus();
    case shim::OptionsEncoder::Overflow::kPatterns:
      return absl::ResourceExhaustedError(
          absl::StrCat("too many patterns: -F, -N, -L, -A and -R take ",
                       shim::kPatternsMax, ", of together ", shim::kOptionsTextMax >> 10,
                       " KiB; say several in one, as in -F 're:A|B'"));
    default:
      return absl::ResourceExhaustedError(absl::StrCat(
          "-A and -R match too many functions: the types of ", shim::kTypesMax,
          " can be passed on, in ", shim::kOptionsTextMax >> 10,
          " KiB; match fewer, or say what is recorded of them, as in -A 'PATTERN@arg1'"));
  }
}

std::string variable(const char* name, const std::string& value) {
  return absl::StrCat(name, "=", value);
}

}  // namespace

// The shim is beside this program in the build tree, or where `cmake --install` puts it;
// packages have it in a directory of its own.
absl::StatusOr<std::string> find_shim() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError("cannot read /proc/self/exe: is /proc mounted?");
  for (const char* directory :
       {"../lib", "../" ARCTRACE_LIBDIR, "../" ARCTRACE_LIBDIR "/arctrace"}) {
    const fs::path shim =
        (program.parent_path() / directory / "libarctrace-shim.so").lexically_normal();
    if (!fs::exists(shim, error)) continue;
    if (shim.native().find_first_of(": ") != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          shim.native(), ": LD_PRELOAD cannot name a path with a colon or a space"));
    }
    return shim.native();
  }
  return absl::NotFoundError(
      absl::StrCat("libarctrace-shim.so is missing: it should be in ",
                   (program.parent_path() / "../lib").lexically_normal().native()));
}

std::string library_of_shim(const std::string& shim) {
  const fs::path directory = fs::path(shim).parent_path();
  std::error_code error;
  const fs::path beside = directory / ARCTRACE_LIBRARY_NAME;
  return fs::exists(beside, error) ? beside
                                   : directory.parent_path() / ARCTRACE_LIBRARY_NAME;
}

// Why the program of `command` cannot be traced: enum arctrace_untraced, or 0.
uint32_t why_untraceable(const std::string& command) {
  const std::string file = find_program(command);
  return FoundProgram({AT_FDCWD, file.c_str(), 0}).why_untraceable();
}

absl::StatusOr<std::string> encoded_options(const RecordOptions& options,
                                            Events& events) {
  const auto encoder = std::make_unique<shim::OptionsEncoder>();
  encoder->set_library_calls(options.library_calls);
  encode(options.filter, *encoder);
  if (!options.filter.patch.empty()) {
    std::error_code error;
    encoder->set_patcher(fs::read_symlink("/proc/self/exe", error).native());
  }
  const std::vector<std::string> warnings = encode_types(
      options.filter, options.command.empty() ? "" : options.command.front(), *encoder);
  if (absl::Status status = overflow_status(encoder->overflow()); !status.ok()) {
    return status;
  }
  for (const std::string& warning : warnings) events.warn(warning);
  return std::string(encoder->text());
}

absl::StatusOr<std::vector<std::string>> session_variables(const std::string& shim_path,
                                                           const std::string& session,
                                                           const RecordOptions& options,
                                                           Events& events) {
  const char* preload = std::getenv(shim::kPreloadVariable);
  const bool has_others = preload != nullptr && *preload != '\0';
  std::vector<std::string> variables = {variable(shim::kSessionVariable, session)};
  if (options.command.empty() ||
      why_untraceable(options.command.front()) != ARCTRACE_UNTRACED_ARCHITECTURE) {
    variables.push_back(variable(
        shim::kPreloadVariable,
        absl::StrCat(shim_path, has_others ? ":" : "", has_others ? preload : "")));
  }
  absl::StatusOr<std::string> encoded = encoded_options(options, events);
  if (!encoded.ok()) return encoded.status();
  // Without the variable no library calls are hooked, and no calls are filtered; but a
  // recording around this one may have set it.
  if (options.library_calls != LibraryCalls::kNone || !options.filter.is_empty() ||
      std::getenv(shim::kOptionsVariable) != nullptr) {
    variables.push_back(variable(shim::kOptionsVariable, *encoded));
  }
#if !defined(__x86_64__)
  if (options.library_calls != LibraryCalls::kNone) {
    variables.push_back(variable(shim::kBindNowVariable, "1"));
  }
#endif
  return variables;
}

absl::StatusOr<std::vector<std::string>> session_environment(const RecordOptions& options,
                                                             Events& events) {
  const absl::StatusOr<std::string> shim = find_shim();
  if (!shim.ok()) return shim.status();
  const absl::StatusOr<recorder::Buffer> buffer = recorder::open_session(options.session);
  if (!buffer.ok()) return buffer.status();
  return session_variables(*shim, buffer->path(), options, events);
}

}  // namespace arctrace::recording
