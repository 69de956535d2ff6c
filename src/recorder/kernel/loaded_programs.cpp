// Loads an object of BPF programs by libbpf, and retains libbpf's messages.
#include "src/recorder/kernel/loaded_programs.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>
#include <arctrace/format.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace arctrace::recorder {

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

uint32_t kernel_event_of_program(absl::string_view program) {
  if (program == "on_syscall" || program == "on_syscall_end") {
    return ARCTRACE_KERNEL_SYSCALLS;
  }
  if (program == "on_page_fault") return ARCTRACE_KERNEL_FAULTS;
  if (program == "on_signal") return ARCTRACE_KERNEL_SIGNALS;
  if (program == "on_contention" || program == "on_contention_end") {
    return ARCTRACE_KERNEL_CONTENTION;
  }
  if (absl::StartsWith(program, "on_block_")) return ARCTRACE_KERNEL_BLOCK_IO;
  if (absl::StartsWith(program, "begin_") || absl::StartsWith(program, "end_")) {
    return ARCTRACE_KERNEL_INTERRUPTS;
  }
  return 0;
}

bpf_map* LoadedPrograms::map(const char* name) const {
  return bpf_object__find_map_by_name(object, name);
}

uint64_t LoadedPrograms::skipped() const {
  uint64_t sum = 0;
  for (const Program& program : programs) {
    bpf_prog_info info{};
    uint32_t size = sizeof info;
    const int fd = bpf_program__fd(program.program);
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) != 0) continue;
    sum += info.recursion_misses;  // 0 if the kernel is older than the field
  }
  return sum;
}

absl::Status attach_program(LoadedPrograms::Program& program) {
  if (program.link != nullptr) return absl::OkStatus();
  program.link = bpf_program__attach(program.program);
  if (program.link != nullptr) return absl::OkStatus();
  return libbpf_failure(errno,
                        absl::StrCat("attaching ", bpf_program__name(program.program)));
}

void detach_program(LoadedPrograms::Program& program) {
  if (program.link != nullptr) bpf_link__destroy(program.link);
  program.link = nullptr;
}

}  // namespace arctrace::recorder
