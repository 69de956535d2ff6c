#include "tests/processes/emulator.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <sstream>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"

namespace arctrace::testing {

const char* other_writer() { return std::getenv("ARCTRACE_TEST_WRITER"); }

void exec_writer(const std::string& session, const WriterTask& task, int progress,
                 uint32_t writers) {
  std::vector<std::string> arguments = {session};
  for (const uint64_t number :
       {static_cast<uint64_t>(progress), uint64_t{writers}, uint64_t{task.number},
        task.seed, task.attempts, uint64_t{task.payload_max}}) {
    arguments.push_back(std::to_string(number));
  }
  exec_command(other_writer(), arguments);
}

void exec_command(const std::string& command, const std::vector<std::string>& arguments) {
  std::istringstream stream(command);
  std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  _exit(127);
}

void mark_dead(const BufferView& view, int pid) {
  for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(view); ++i) {
    auto owner = static_cast<uint32_t>(pid);
    IpcAtomics::compare_exchange_acq_rel(view.slot(i).lock, owner, uint32_t{kOwnerDied});
  }
}

}  // namespace arctrace::testing
