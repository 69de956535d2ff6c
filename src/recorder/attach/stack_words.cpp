// A handler's frame has the interrupted stack pointer, which leads to the next stack.
#include "src/recorder/attach/stack_words.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <sys/uio.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

namespace arctrace {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kStackMax = uint64_t{64} << 20;
// The word of the segment registers in a handler's frame, of 64-bit code, and how many
// words before it the interrupted stack pointer is (the kernel's struct sigcontext). The
// frame's return address is no mark: where the handler has a hook, it is the shim's.
constexpr uint64_t kSegments = 0x002b'0000'0000'0033;
constexpr uint64_t kInterruptedStack = 3;

}  // namespace

StackWords::StackWords(pid_t pid) : pid_(pid) {
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    // "low-high permissions offset device inode"
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    const std::pair<std::string, std::string> range = absl::StrSplit(fields[0], '-');
    Memory memory{};
    if (fields.size() < 2 || fields[1].substr(0, 2) != "rw" ||
        !absl::SimpleHexAtoi(range.first, &memory.low) ||
        !absl::SimpleHexAtoi(range.second, &memory.high)) {
      continue;
    }
    writable_.push_back(memory);
  }
}

void StackWords::visit(uint64_t stack_pointer,
                       absl::FunctionRef<void(uint64_t)> visit) const {
  // Remains of handlers, also of other threads whose signal stacks come after this one,
  // lead to further ones.
  constexpr size_t kStacksMax = 4096;
  std::vector<uint64_t> stacks{stack_pointer};
  for (size_t i = 0; i < stacks.size(); ++i) {
    visit_stack(stacks[i], visit, [&](uint64_t pointer) {
      const bool is_known =
          std::find(stacks.begin(), stacks.end(), pointer) != stacks.end();
      if (!is_known && stacks.size() < kStacksMax) stacks.push_back(pointer);
    });
  }
}

void StackWords::visit_stack(uint64_t stack_pointer,
                             absl::FunctionRef<void(uint64_t)> visit,
                             absl::FunctionRef<void(uint64_t)> interrupted) const {
  constexpr uint64_t kRedZone = 128;
  uint64_t at = (stack_pointer - kRedZone) & ~(kWord - 1);
  const auto memory =
      std::find_if(writable_.begin(), writable_.end(),
                   [at](const Memory& m) { return at >= m.low && at < m.high; });
  if (memory == writable_.end()) return;
  const uint64_t end = std::min(memory->high, at + kStackMax);
  std::vector<uint64_t> words(uint64_t{1} << 13);
  while (at < end) {
    const uint64_t size = std::min<uint64_t>(end - at, words.size() * kWord);
    if (!read(at, words.data(), size)) return;
    for (uint64_t k = 0; k < size / kWord; ++k) {
      visit(words[k]);
      uint64_t pointer = 0;
      if (words[k] == kSegments &&
          read(at + (k - kInterruptedStack) * kWord, &pointer, sizeof pointer) &&
          (pointer < memory->low || pointer >= memory->high)) {
        interrupted(pointer);
      }
    }
    at += size;
  }
}

bool StackWords::read(uint64_t address, void* to, uint64_t size) const {
  iovec local{to, size};
  iovec remote{reinterpret_cast<void*>(address), size};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

}  // namespace arctrace
