#include "src/recorder/file/joined_threads.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/recycle.hpp"

namespace arctrace {
namespace {

// The rest of the line that begins with `key` of a status file in /proc; empty: none.
std::string status_value(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "";
}

// The number of a task in its own PID namespace, which is the last one; 0: it is gone.
uint32_t own_number(const std::string& directory) {
  const std::string numbers = status_value(directory + "/status", "NSpid:\t");
  uint32_t number = 0;
  return absl::SimpleAtoi(numbers.substr(numbers.rfind('\t') + 1), &number) ? number : 0;
}

// As the thread's first record would have it, had a hook been there.
void add_stack(RecordBuilder& records, uint32_t writer,
               const JoinedThreads::Thread& thread) {
  const auto count = static_cast<uint32_t>(thread.waits_in.size());
  if (count == 0) return;
  records.begin(ARCTRACE_TYPE_STACK, writer, thread.waits_from_ticks);
  records.body(
      arctrace_stack_body{.depth = thread.is_whole ? count : count + 1, .count = count});
  records.text({reinterpret_cast<const char*>(thread.waits_in.data()),
                count * sizeof thread.waits_in[0]});
  constexpr uint32_t kBeganBefore = 0;  // in place of a coroutine's number
  records.text({reinterpret_cast<const char*>(&kBeganBefore), sizeof kBeganBefore});
}

}  // namespace

JoinedThreads read_joined_threads(pid_t pid, uint64_t ticks) {
  namespace fs = std::filesystem;
  const std::string process = absl::StrCat("/proc/", pid);
  JoinedThreads joined{.pid = own_number(process), .ticks = ticks};
  std::error_code error;
  fs::directory_iterator task(process + "/task", error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    JoinedThreads::Thread thread{.tid = own_number(task->path()), .name = "", .task = 0};
    if (!absl::SimpleAtoi(task->path().filename().native(), &thread.task)) continue;
    std::ifstream name(task->path() / "comm");
    if (thread.tid != 0 && std::getline(name, thread.name)) {
      joined.threads.push_back(std::move(thread));
    }
  }
  return joined;
}

void add_silent_threads(RecordBuilder& records, uint64_t ticks, const BufferView& view,
                        const JoinedThreads& joined) {
  uint32_t process = 0;
  std::map<uint32_t, uint32_t> known;  // by thread: its identity, if it wrote nothing
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view.slot(i);
    if (IpcAtomics::load_relaxed(slot.pid) != joined.pid) continue;
    process = IpcAtomics::load_relaxed(slot.process);
    const uint64_t written = IpcAtomics::load_relaxed(slot.written) +
                             IpcAtomics::load_relaxed(slot.written_shared) -
                             IpcAtomics::load_relaxed(slot.written_before);
    known[IpcAtomics::load_relaxed(slot.tid)] =
        written == 0 ? IpcAtomics::load_relaxed(slot.writer) : 0;
  }
  uint32_t& next = view.control().writer_next;
  for (const JoinedThreads::Thread& thread : joined.threads) {
    const auto found = known.find(thread.tid);
    if (found != known.end()) {
      // As the one that was borrowed to join the process.
      if (found->second != 0) add_stack(records, found->second, thread);
      continue;
    }
    if (process == 0 || IpcAtomics::load_relaxed(next) >= ARCTRACE_IDENTITIES_END) {
      continue;
    }
    const uint32_t writer = IpcAtomics::fetch_add_relaxed(next, uint32_t{1});
    records.begin(ARCTRACE_TYPE_THREAD, ARCTRACE_WRITER_COLLECTOR, ticks);
    records.body(
        arctrace_thread_body{.writer = writer,
                             .process = process,
                             .tid = thread.tid,
                             .name_size = static_cast<uint32_t>(thread.name.size()),
                             .start_ticks = joined.ticks});
    records.text(thread.name);
    add_stack(records, writer, thread);
  }
}

}  // namespace arctrace
