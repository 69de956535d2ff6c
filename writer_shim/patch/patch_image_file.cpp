// Runs the command for an image. The command gets descriptors of ours and writes into a
// memfd. The program must not notice that it had a child: so the child is a process
// without an end signal, which no wait of the program's finds. exec gives a process its
// end signal back, so a child of that child executes the command.
#include "writer_shim/patch/patch_image_file.hpp"

#include <arctrace/format.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
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

// A descriptor above those of the standard streams, which the command opens itself.
class Descriptor {
 public:
  explicit Descriptor(long opened) : number_(static_cast<int>(opened)) {
    if (number_ < 0 || number_ > STDERR_FILENO) return;
    number_ = static_cast<int>(
        raw_syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
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

// The path of a descriptor of this process, by the number that /proc has for it. While
// the loader maps an object, a debugger opens it by the same path; /proc/self would lead
// the debugger to a descriptor of its own, perhaps to a pipe, which it would wait for.
// Programs have objects of their own loaded by /proc/self/fd/N, and this path must not
// equal one of these. The loader reuses a path that it had before for the same file, so
// each path has one more slash than the last.
class DescriptorPath {
 public:
  explicit DescriptorPath(int fd) {
    char process[24] = {};
    const long size = sys::readlink("/proc/self", process, sizeof process - 1);
    add("/proc/");
    add(size > 0 ? process : "self");
    add("/fd");
    static uint32_t slashes = 0;
    slashes = slashes % kPatchedModulesMax + 1;
    for (uint32_t i = 0; i < slashes; ++i) add("/");
    add(NumberText(static_cast<uint64_t>(fd), 10).text());
  }
  const char* text() const { return text_; }

 private:
  void add(const char* part) {
    const size_t size = text_length(part, sizeof text_ - 1 - size_);
    copy_bytes(text_ + size_, part, size);
    size_ += size;
  }

  char text_[64 + kPatchedModulesMax] = {};
  size_t size_ = 0;
};

// The variables that the command needs beside the options: by these it finds its
// libraries and its cache.
constexpr const char* kForwarded[] = {"HOME=", "XDG_CACHE_HOME=", "LD_LIBRARY_PATH="};
constexpr size_t kForwardedCount = sizeof kForwarded / sizeof *kForwarded;

struct Command {
  const char* path;
  const int* descriptors;  // three, which it inherits
  const char* arguments[8];
};

const char* patcher_environment[1 + kForwardedCount + 1];  // first the options

// A copy that stays; null: there is no memory.
const char* keep_text(const char* text) {
  const size_t size = text_length(text, SIZE_MAX) + 1;
  void* memory = sys::map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (memory != nullptr) copy_bytes(memory, text, size);
  return static_cast<const char*>(memory);
}

[[noreturn]] void execute(const Command& command) {
  const long null = sys::open("/dev/null", O_RDWR);
  for (int i = STDIN_FILENO; i <= STDERR_FILENO; ++i) {
    if (null >= 0 && null != i) raw_syscall(SYS_dup3, null, i, 0);
  }
  for (int i = 0; i < 3; ++i) {
    raw_syscall(SYS_fcntl, command.descriptors[i], F_SETFD, 0);
  }
  constexpr uint64_t kNoSignals = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, sys::pointer_argument(&kNoSignals), 0,
              sizeof kNoSignals);
  raw_syscall(SYS_execve, sys::pointer_argument(command.path),
              sys::pointer_argument(command.arguments),
              sys::pointer_argument(patcher_environment));
  for (;;) raw_syscall(SYS_exit_group, 127);
}

void wait_for(long child) {
  while (raw_syscall(SYS_wait4, child, 0, __WALL) == -EINTR) {
  }
}

// Runs the command to its end.
void run(const Command& command) {
  const sys::SignalsBlocked blocked;
  constexpr long kNoEndSignal = 0;
  const long child = raw_syscall(SYS_clone, kNoEndSignal);
  if (child == 0) {
    const long grandchild = raw_syscall(SYS_clone, SIGCHLD);
    if (grandchild == 0) execute(command);
    if (grandchild > 0) wait_for(grandchild);
    for (;;) raw_syscall(SYS_exit_group, 0);
  }
  if (child <= 0) return;
  arctrace_shim_helper(static_cast<uint32_t>(child));
  wait_for(child);
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

// Whether the table's values about the image fit together.
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

bool is_mapping;  // under the loader's lock

// Gives the object another name, because the loader keeps the path, by which readers of
// the trace and debuggers would search for a file that does not exist.
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

bool is_placed(const link_map& object, const PatchTable& table) {
  const auto dynamic = reinterpret_cast<uintptr_t>(object.l_ld);
  return object.l_addr == 0 && dynamic >= table.low && dynamic < table.high;
}

// Maps the image, for good; null: it could not be mapped at the addresses for which it
// was made, and is not mapped.
const PatchTable* map_image(int fd, const PatchTable& table) {
  const DescriptorPath path(fd);
  auto* const open = loader_function<decltype(dlopen)>("dlopen");
  auto* const close = loader_function<decltype(dlclose)>("dlclose");
  auto* const take_error = loader_function<decltype(dlerror)>("dlerror");
  if (open == nullptr || close == nullptr || take_error == nullptr) return nullptr;
  is_mapping = true;
  void* const handle = open(path.text(), RTLD_NOW | RTLD_LOCAL);
  const bool is_usable =
      handle != nullptr && is_placed(*static_cast<link_map*>(handle), table) &&
      open(path.text(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_NOLOAD) == handle;
  if (handle != nullptr && !is_usable) close(handle);
  is_mapping = false;
  if (!is_usable) {
    take_error();  // the program is not to get a message
    return nullptr;
  }
  rename_object(*static_cast<link_map*>(handle));
  arctrace_shim_modules_changed();
  return reinterpret_cast<const PatchTable*>(table.low + kPatchTableOffset);
}

long memory_file() {
  return raw_syscall(SYS_memfd_create, sys::pointer_argument(kPatchFileName),
                     MFD_CLOEXEC);
}

// `is_last`: skipped functions are reported even if there is no space for the image.
LoadedImage load_image(int image, bool is_last) {
  PatchTable table;
  if (!read_table(image, table)) return {.refusal = ARCTRACE_PATCH_NO_COMMAND};
  LoadedImage loaded{.refusal = table.refusal, .matched = table.matched};
  if (loaded.refusal == 0 && is_image(table)) {
    loaded.table = map_image(image, table);
    if (loaded.table == nullptr) loaded.refusal = ARCTRACE_PATCH_NO_ROOM;
  }
  if (is_last || loaded.refusal != ARCTRACE_PATCH_NO_ROOM) {
    report_skipped_functions(image, table);
  }
  return loaded;
}

}  // namespace

bool is_mapping_image() { return is_mapping; }

void keep_patcher_environment(const char* options_entry) {
  const bool is_kept = patcher_environment[0] != nullptr;
  patcher_environment[0] = options_entry;
  if (is_kept) return;
  size_t count = 1;
  for (const char* name : kForwarded) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      if (!starts_with(*entry, name)) continue;
      if (const char* kept = keep_text(*entry); kept != nullptr) {
        patcher_environment[count++] = kept;
      }
      break;
    }
  }
}

LoadedImage load_patch_image(const PatchedModule& module, const char* patcher) {
  const char* path = module.is_program ? "/proc/self/exe" : module.path;
  const Descriptor file(sys::open(path, O_RDONLY | O_CLOEXEC));
  const Descriptor maps(sys::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  const Descriptor image(memory_file());
  const int descriptors[] = {file.number(), maps.number(), image.number()};
  for (const int one : descriptors) {
    if (one < 0) return {.refusal = ARCTRACE_PATCH_NO_COMMAND};
  }
  const NumberText file_text(static_cast<uint64_t>(file.number()), 10);
  const NumberText maps_text(static_cast<uint64_t>(maps.number()), 10);
  const NumberText image_text(static_cast<uint64_t>(image.number()), 10);
  const NumberText bias_text(module.image.bias, 16);
  const char* name = module.is_program ? "" : file_name(module.path);
  run({patcher,
       descriptors,
       {"arctrace", kPatchVerb, file_text.text(), maps_text.text(), image_text.text(),
        bias_text.text(), name, nullptr}});
  return load_image(image.number(), true);
}

LoadedImage load_offered_image(const void* bytes, uint64_t size, bool is_last) {
  const Descriptor image(memory_file());
  const auto* from = static_cast<const char*>(bytes);
  for (uint64_t written = 0; written < size;) {
    const long result =
        raw_syscall(SYS_pwrite64, image.number(), sys::pointer_argument(from + written),
                    static_cast<long>(size - written), static_cast<long>(written));
    if (result == -EINTR) continue;
    if (result <= 0) return {.refusal = ARCTRACE_PATCH_NO_COMMAND};
    written += static_cast<uint64_t>(result);
  }
  return load_image(image.number(), is_last);
}

}  // namespace arctrace::shim
