// worst_calls full|threads|processes: calls of the API where the writer has to search.
// States that would need very many threads or processes are written into the buffer
// directly. Each call is between two breakpoints.
#include <arctrace/arctrace.h>
#include <arctrace/format.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

constexpr int kFullCalls = 8;
constexpr int kThreads = 64;
constexpr int kProcesses = 16;

std::byte* map_session() {
  const char* path = std::getenv("ARCTRACE_SESSION");
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) return nullptr;
  void* mapped = mmap(nullptr, static_cast<size_t>(status.st_size),
                      PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

void call_between_breakpoints() {
  asm volatile("int3" ::: "memory");
  arctrace_instant(1);
  asm volatile("int3" ::: "memory");
}

// Writes into a full buffer in which, time and again, there seems to be a free block.
void write_into_full(arctrace_control& control) {
  while (arctrace_lost(nullptr) == 0) arctrace_instant(1);
  for (int i = 0; i < kFullCalls; ++i) {
    __atomic_fetch_add(&control.freed, uint64_t{1}, __ATOMIC_RELAXED);
    call_between_breakpoints();
  }
}

// Makes nearly all slots look like those of other processes.
void fill_slots(const arctrace_session_header& header, arctrace_control& control,
                std::byte* base) {
  control.slot_next = header.slot_count;
  for (uint32_t i = 0; i < header.slot_count / 10 * 9; ++i) {
    auto& slot = *reinterpret_cast<arctrace_writer_slot*>(
        base + header.slots_offset + i * sizeof(arctrace_writer_slot));
    if (slot.lock != 0) continue;
    slot.tid = static_cast<uint32_t>(getpid());
    slot.process = 1000;
    slot.lock = slot.tid;
  }
}

void begin_threads() {
  for (int i = 0; i < kThreads; ++i) std::thread(call_between_breakpoints).join();
}

void begin_processes() {
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      call_between_breakpoints();
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::byte* base = map_session();
  if (argc != 2 || base == nullptr) return EXIT_FAILURE;
  const auto& header = *reinterpret_cast<const arctrace_session_header*>(base);
  auto& control = *reinterpret_cast<arctrace_control*>(base + ARCTRACE_CONTROL_OFFSET);
  arctrace_instant(1);
  if (std::strcmp(argv[1], "full") == 0) {
    write_into_full(control);
    return EXIT_SUCCESS;
  }
  fill_slots(header, control, base);
  std::strcmp(argv[1], "threads") == 0 ? begin_threads() : begin_processes();
  return EXIT_SUCCESS;
}
