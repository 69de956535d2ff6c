#include "src/recorder/kernel/loaded_programs.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>

#include "src/recorder/kernel/libbpf_errors.hpp"

namespace arctrace {

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

}  // namespace arctrace
