// Some of the kernel writer's programs, loaded together, and which of them are attached;
// and libbpf's messages about its failures.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::recorder {

// Messages of libbpf about its failures: no return value of its functions has the reason.

// From now on messages of libbpf are stored, and none is printed.
void keep_libbpf_messages();
// Forgets the stored message, which is about an earlier step.
void forget_libbpf_message();

// The error of a step, with the stored message, which is the verifier's reason if it
// refused a program. `error`: an errno.
absl::Status libbpf_failure(int error, const std::string& step);

}  // namespace arctrace::recorder

struct bpf_link;
struct bpf_map;
struct bpf_object;
struct bpf_program;

namespace arctrace::recorder {

// The event that a program is for: enum arctrace_kernel_event; 0: events that are always
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
  // How often the kernel did not start a program because it was running on that CPU
  // already: an interrupt had come in the middle of it.
  uint64_t skipped() const;
};

// Attaches the program, or detaches it, unless that is done already.
absl::Status attach_program(LoadedPrograms::Program& program);
void detach_program(LoadedPrograms::Program& program);

}  // namespace arctrace::recorder
