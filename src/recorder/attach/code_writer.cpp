// Writes changes of code through /proc/PID/mem, which needs no writable mapping, in
// pieces that do not cross pages: the kernel copies such a piece as a whole, whatever
// signal ends the writer.
#include "src/recorder/attach/code_writer.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace::recorder {

// StackWords: a handler's frame has the interrupted stack pointer, which leads to the
// next stack.

namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kStackMax = uint64_t{64} << 20;
// The word of the segment registers in a handler's frame, of 64-bit code, and how many
// words before it the interrupted stack pointer is (the kernel's struct sigcontext). The
// frame's return address identifies no frame: where the handler has a hook, it is the
// shim's.
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

namespace {

using shim::CodeChange;
using shim::CodeChanges;

constexpr uint64_t kPage = 4096;

absl::StatusOr<CodeChanges> read_list(pid_t pid, uint64_t list) {
  CodeChanges changes{};
  if (!read_memory(pid, list, &changes, sizeof changes)) {
    return absl::ErrnoToStatus(errno, "cannot read from the process");
  }
  changes.count = std::min(changes.count, shim::kCodeChangesMax);
  return changes;
}

bool is_whole(const CodeChange& change) {
  return change.size != 0 && change.size <= shim::kCodeChangeMax &&
         change.at % kPage + change.size <= kPage;
}

// The change whose bytes, after the first one, contain `address`; null: there is none. A
// thread that stands at the first byte has not begun what is changed.
CodeChange* find_around(std::vector<CodeChange>& changes, uint64_t address) {
  const auto after = std::lower_bound(
      changes.begin(), changes.end(), address,
      [](const CodeChange& change, uint64_t at) { return change.at < at; });
  if (after == changes.begin()) return nullptr;
  CodeChange& before = *(after - 1);
  return address - before.at < before.size ? &before : nullptr;
}

// A page of the process' code.
class Page {
 public:
  Page(pid_t pid, int memory, uint64_t address)
      : memory_(memory),
        address_(address),
        is_read_(read_memory(pid, address, bytes_.data(), bytes_.size())) {}

  // True also if the change was made before. False: other bytes are there.
  bool change(const CodeChange& change) {
    unsigned char* const at = bytes_.data() + (change.at - address_);
    if (!is_read_) return false;
    if (std::memcmp(at, change.now, change.size) == 0) return true;
    if (std::memcmp(at, change.was, change.size) != 0) return false;
    std::memcpy(at, change.now, change.size);
    is_changed_ = true;
    return true;
  }
  bool write() const {
    return !is_changed_ ||
           pwrite(memory_, bytes_.data(), bytes_.size(), static_cast<off_t>(address_)) ==
               static_cast<ssize_t>(bytes_.size());
  }

 private:
  int memory_;
  uint64_t address_;
  std::array<unsigned char, kPage> bytes_{};
  bool is_read_;
  bool is_changed_ = false;
};

}  // namespace

absl::StatusOr<bool> CodeWriter::has_changes() const {
  const absl::StatusOr<CodeChanges> list = read_list(pid_, list_);
  if (!list.ok()) return list.status();
  return list->count != 0;
}

absl::StatusOr<std::vector<CodeChange>> CodeWriter::read_changes() const {
  const absl::StatusOr<CodeChanges> list = read_list(pid_, list_);
  if (!list.ok()) return list.status();
  std::vector<CodeChange> changes(list->count);
  if (!read_memory(pid_, list->changes, changes.data(),
                   changes.size() * sizeof(CodeChange))) {
    return absl::ErrnoToStatus(errno, "cannot read from the process");
  }
  std::sort(changes.begin(), changes.end(),
            [](const CodeChange& a, const CodeChange& b) { return a.at < b.at; });
  return changes;
}

uint64_t CodeWriter::leave_used(const StoppedThreads& others,
                                std::vector<CodeChange>& changes) const {
  uint64_t skipped = 0;
  if (changes.empty()) return 0;
  const uint64_t low = changes.front().at;
  const uint64_t high = changes.back().at + shim::kCodeChangeMax;
  const auto leave_at = [&](uint64_t word) {
    if (word < low || word >= high) return;
    CodeChange* const change = find_around(changes, word);
    if (change != nullptr && change->size != 0) {
      change->size = 0;
      ++skipped;
    }
  };
  const StackWords stacks(pid_);
  const auto leave_used_by = [&](const StoppedThread& thread) {
    leave_at(thread.program_counter());
    stacks.visit(thread.stack_pointer(), leave_at);
  };
  leave_used_by(borrowed_);
  for (const StoppedThread& thread : others.threads()) leave_used_by(thread);
  return skipped;
}

absl::StatusOr<SkippedChanges> CodeWriter::write(StoppedThreads& others,
                                                 HurriedThread& hurried) const {
  absl::StatusOr<std::vector<CodeChange>> changes = read_changes();
  if (!changes.ok()) return changes.status();
  std::vector<CodeMemory> insides;
  insides.reserve(changes->size());
  for (const CodeChange& change : *changes) {
    if (is_whole(change)) insides.push_back({change.at + 1, change.at + change.size});
  }
  if (absl::Status status = others.leave_code(insides, hurried); !status.ok())
    return status;
  SkippedChanges skipped;
  skipped.in_use = leave_used(others, *changes);
  const int memory =
      open(absl::StrCat("/proc/", pid_, "/mem").c_str(), O_RDWR | O_CLOEXEC);
  if (memory < 0) return absl::ErrnoToStatus(errno, "cannot write into the process");
  for (size_t i = 0; i < changes->size();) {
    const uint64_t address = (*changes)[i].at & ~(kPage - 1);
    Page page(pid_, memory, address);
    uint64_t made = 0;
    for (; i < changes->size() && (*changes)[i].at - address < kPage; ++i) {
      const CodeChange& change = (*changes)[i];
      if (change.size == 0) continue;
      if (is_whole(change) && page.change(change)) {
        ++made;
      } else {
        ++skipped.for_good;
      }
    }
    if (!page.write()) skipped.for_good += made;
  }
  close(memory);
  return skipped;
}

}  // namespace arctrace::recorder
