// The command gets descriptors of ours and writes into a memfd. The program must not
// notice that it had a child: its end leaves no signal behind, and is waited for here.
#include "writer_shim/patch/patch_image_file.hpp"

#include <arctrace/format.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/text.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/patch/patch_report.hpp"

namespace arctrace::shim {
namespace {

// A descriptor above those of the standard streams, which the command opens itself. It is
// inherited.
class Descriptor {
 public:
  explicit Descriptor(long opened) : number_(static_cast<int>(opened)) {
    if (number_ < 0 || number_ > STDERR_FILENO) return;
    number_ =
        static_cast<int>(raw_syscall(SYS_fcntl, opened, F_DUPFD, STDERR_FILENO + 1));
    sys::close(static_cast<int>(opened));
  }
  ~Descriptor() {
    if (number_ >= 0) sys::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }  // negative: it could not be opened

 private:
  int number_;
};

// A number as text, zero-terminated.
class NumberText {
 public:
  NumberText(uint64_t number, unsigned base) {
    do {
      *--begin_ = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
  }
  const char* text() const { return begin_; }

 private:
  char digits_[24] = {};
  char* begin_ = digits_ + sizeof digits_ - 1;
};

// What the command is to know of our environment: its own variables, and those by which
// it finds its libraries and its cache.
constexpr const char* kPassedOn[] = {
    "ARCTRACE_OPTIONS=", "HOME=", "XDG_CACHE_HOME=", "LD_LIBRARY_PATH="};
constexpr size_t kPassedOnCount = sizeof kPassedOn / sizeof *kPassedOn;

struct Command {
  const char* path;
  const char* arguments[7];
  const char* environment[kPassedOnCount + 1];
};

void choose_environment(Command& command) {
  size_t count = 0;
  for (const char* name : kPassedOn) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      if (!starts_with(*entry, name)) continue;
      command.environment[count++] = *entry;
      break;
    }
  }
}

[[noreturn]] void execute(const Command& command) {
  const long null = sys::open("/dev/null", O_RDWR);
  for (int i = STDIN_FILENO; i <= STDERR_FILENO; ++i) {
    if (null >= 0 && null != i) raw_syscall(SYS_dup3, null, i, 0);
  }
  constexpr uint64_t kNoSignals = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, sys::pointer_argument(&kNoSignals), 0,
              sizeof kNoSignals);
  raw_syscall(SYS_execve, sys::pointer_argument(command.path),
              sys::pointer_argument(command.arguments),
              sys::pointer_argument(command.environment));
  for (;;) raw_syscall(SYS_exit_group, 127);
}

bool child_signal_is_pending() {
  uint64_t pending = 0;
  raw_syscall(SYS_rt_sigpending, sys::pointer_argument(&pending), sizeof pending);
  return (pending & sys::signal_bit(SIGCHLD)) != 0;
}

// Runs the command to its end.
void run(const Command& command) {
  const sys::SignalsBlocked blocked;
  const bool was_pending = child_signal_is_pending();
  const long child = raw_syscall(SYS_clone, SIGCHLD);
  if (child == 0) execute(command);
  if (child < 0) return;
  while (raw_syscall(SYS_wait4, child, 0, __WALL) == -EINTR) {
  }
  if (was_pending || !child_signal_is_pending()) return;
  constexpr uint64_t kSignal = sys::signal_bit(SIGCHLD);
  constexpr timespec kNow{};
  raw_syscall(SYS_rt_sigtimedwait, sys::pointer_argument(&kSignal), 0,
              sys::pointer_argument(&kNow), sizeof kSignal);
}

// Whether the command has written a whole file, which may have no functions.
bool read_table(int fd, PatchTable& table) {
  struct stat status {};
  return sys::stat_fd(fd, &status) == 0 &&
         sys::pread(fd, &table, sizeof table, kPatchTableOffset) == sizeof table &&
         __builtin_memcmp(table.magic, kPatchMagic, sizeof kPatchMagic) == 0 &&
         table.bytes >= kPatchTableOffset + sizeof table &&
         static_cast<uint64_t>(status.st_size) == table.bytes;
}

// Whether what the table says of the image fits together.
bool is_image(const PatchTable& table) {
  const uint64_t size = table.high - table.low;
  const auto holds = [&](uint64_t address, uint64_t count, uint64_t each) {
    return address >= table.low && address < table.high &&
           count <= (table.high - address) / each;
  };
  return table.function_count != 0 && table.low < table.high && size == table.bytes &&
         size <= kPatchImageMax &&
         holds(table.functions, table.function_count, sizeof(PatchedFunction)) &&
         table.gates % sizeof(uint64_t) == 0 &&
         holds(table.gates, table.function_count, sizeof(uint64_t)) &&
         holds(table.slots, uint64_t{table.function_count} + 1, sizeof(uint64_t)) &&
         table.names_size != 0 && holds(table.names, table.names_size, 1);
}

// The loader keeps the path, by which readers of the trace and debuggers would look for a
// file that is none.
void rename_object(link_map& object) {
  constexpr char kName[] = "[arctrace]";
  const size_t length = text_length(object.l_name, sizeof kName);
  if (length >= sizeof kName - 1) copy_bytes(object.l_name, kName, sizeof kName);
}

// The loader's functions are looked up, because they have another version since
// glibc 2.34, which the shim must not need.
template <class Function>
Function* loader_function(const char* name) {
  return reinterpret_cast<Function*>(find_function(name, SearchFrom::kProgram));
}

// Null: it could not be mapped at the addresses for which it was made.
const PatchTable* map_image(int fd, const PatchTable& table) {
  constexpr char kDirectory[] = "/proc/self/fd/";
  char path[sizeof kDirectory + 24] = {};
  copy_bytes(path, kDirectory, sizeof kDirectory - 1);
  const NumberText number(static_cast<uint64_t>(fd), 10);
  copy_bytes(path + sizeof kDirectory - 1, number.text(),
             text_length(number.text(), SIZE_MAX));
  auto* const open = loader_function<decltype(dlopen)>("dlopen");
  auto* const take_error = loader_function<decltype(dlerror)>("dlerror");
  if (open == nullptr || take_error == nullptr) return nullptr;
  void* const handle = open(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    take_error();  // the program is not to get the message
    return nullptr;
  }
  auto& object = *static_cast<link_map*>(handle);
  rename_object(object);
  if (object.l_addr != 0) return nullptr;
  return reinterpret_cast<const PatchTable*>(table.low + kPatchTableOffset);
}

// Why there is no image.
const PatchTable* refuse(uint32_t verdict) {
  arctrace_shim_patches(verdict, 0, nullptr, 0);
  return nullptr;
}

}  // namespace

const PatchTable* load_patch_image(const char* patcher, uintptr_t bias,
                                   uint64_t& matched) {
  const Descriptor program(sys::open("/proc/self/exe", O_RDONLY));
  const Descriptor maps(sys::open("/proc/self/maps", O_RDONLY));
  const Descriptor image(
      raw_syscall(SYS_memfd_create, sys::pointer_argument("arctrace"), 0));
  if (program.number() < 0 || maps.number() < 0 || image.number() < 0) {
    return refuse(ARCTRACE_PATCH_NO_COMMAND);
  }
  const NumberText program_text(static_cast<uint64_t>(program.number()), 10);
  const NumberText maps_text(static_cast<uint64_t>(maps.number()), 10);
  const NumberText image_text(static_cast<uint64_t>(image.number()), 10);
  const NumberText bias_text(bias, 16);
  Command command{patcher,
                  {"arctrace", kPatchVerb, program_text.text(), maps_text.text(),
                   image_text.text(), bias_text.text(), nullptr},
                  {}};
  choose_environment(command);
  run(command);
  PatchTable table;
  if (!read_table(image.number(), table)) return refuse(ARCTRACE_PATCH_NO_COMMAND);
  matched = table.matched;
  report_left_functions(image.number(), table);
  if (table.refusal != 0) return refuse(table.refusal);
  if (!is_image(table)) return nullptr;
  const PatchTable* mapped = map_image(image.number(), table);
  return mapped != nullptr ? mapped : refuse(ARCTRACE_PATCH_NO_ROOM);
}

}  // namespace arctrace::shim
