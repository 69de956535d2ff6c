// Some of the kernel writer's programs, loaded together, and which of them are attached.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <vector>

struct bpf_link;
struct bpf_map;
struct bpf_object;
struct bpf_program;

namespace arctrace {

// The event that a program is for: enum arctrace_kernel_event; 0: those that are always
// recorded.
uint32_t kernel_event_of_program(absl::string_view program);

struct LoadedPrograms {
  struct Program {
    bpf_program* program;
    uint32_t event;            // see kernel_event_of_program()
    bpf_link* link = nullptr;  // null: not attached
  };
  bpf_object* object;
  std::vector<Program> programs;

  // nullptr: there is none of that name.
  bpf_map* map(const char* name) const;
  // How often the kernel did not start a program, because it was running on that CPU
  // already: an interrupt had come in the middle of it.
  uint64_t skipped() const;
};

// Attaches the program, or detaches it, if it is not so already.
absl::Status attach_program(LoadedPrograms::Program& program);
void detach_program(LoadedPrograms::Program& program);

}  // namespace arctrace
