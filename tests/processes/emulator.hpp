// Programs of another machine, run by an emulator as writers (tests/aarch64).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "tests/processes/writer_process.hpp"

namespace arctrace::testing {

// The command that writes instead of a child of ours, from the environment: words that
// are separated by spaces. Null: there is none.
const char* other_writer();

// Becomes that command, with the task as its arguments.
[[noreturn]] void exec_writer(const std::string& session, const WriterTask& task,
                              int progress, uint32_t writers);

// Becomes `command`, words that are separated by spaces, and the arguments.
[[noreturn]] void exec_command(const std::string& command,
                               const std::vector<std::string>& arguments);

// What the kernel does for a thread that is gone; an emulator has no list of its locks.
void mark_dead(const BufferView& view, int pid);

}  // namespace arctrace::testing
