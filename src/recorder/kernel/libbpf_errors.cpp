#include "src/recorder/kernel/libbpf_errors.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>
#include <bpf/libbpf.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace arctrace {
namespace {

// The last message of libbpf, or the reason for which the verifier refused a program. No
// return value has the reason of a failure.
struct LibbpfMessage {
  std::string text;
  bool is_verifiers = false;

  void set(absl::string_view message) {
    if (is_verifiers) return;  // later messages only repeat that loading failed
    // "prog 'NAME': -- BEGIN PROG LOAD LOG --", then the log, which ends with the reason
    // and a line of statistics.
    const size_t program_end = message.find(": -- BEGIN");
    const size_t reason_end = message.rfind("\nprocessed ");
    is_verifiers =
        program_end != absl::string_view::npos && reason_end != absl::string_view::npos;
    if (!is_verifiers) {
      text = std::string(absl::StripSuffix(absl::StripPrefix(message, "libbpf: "), "\n"));
      return;
    }
    const absl::string_view log = message.substr(0, reason_end);
    text = absl::StrCat(absl::StripPrefix(message.substr(0, program_end), "libbpf: "),
                        ": ", log.substr(log.rfind('\n') + 1));
  }
};
LibbpfMessage last_message;

__attribute__((format(printf, 2, 0))) int keep_message(libbpf_print_level level,
                                                       const char* format,
                                                       va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  char* message = nullptr;
  const int n = vasprintf(&message, format, arguments);
  if (n < 0) return n;
  last_message.set(message);
  std::free(message);
  return n;
}

}  // namespace

void keep_libbpf_messages() { libbpf_set_print(keep_message); }

void forget_libbpf_message() { last_message = {}; }

absl::Status libbpf_failure(int error, const std::string& step) {
  return absl::ErrnoToStatus(
      error,
      absl::StrCat(step, last_message.text.empty() ? "" : ", ", last_message.text));
}

}  // namespace arctrace
