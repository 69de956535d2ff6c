// Programs of another machine that an emulator runs as writers (tests/aarch64).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "tests/processes/writer_process.hpp"

namespace arctrace::testing {

// The command, from the environment, that writes instead of a child of ours: words that
// are separated by spaces. Null: there is none.
const char* other_writer();

// Executes that command, with the task as its arguments.
[[noreturn]] void exec_writer(const std::string& session, const WriterTask& task,
                              int progress, uint32_t writers);

// Executes `command`, words that are separated by spaces, with the arguments.
[[noreturn]] void exec_command(const std::string& command,
                               const std::vector<std::string>& arguments);

// Does what the kernel does for a dead thread, because an emulator has no list of its
// locks.
void mark_dead(const BufferView& view, int pid);

}  // namespace arctrace::testing
