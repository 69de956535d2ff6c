// Finds programs and their libraries, and reads the functions of a session's programs.
#include "src/recording/patterns/program_functions.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <utility>

#include "reader/symbols/elf_file.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::recording {

std::string find_program(const std::string& command) {
  if (command.find('/') != std::string::npos) return command;
  const char* path = std::getenv("PATH");
  for (const absl::string_view directory :
       absl::StrSplit(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    std::string file = absl::StrCat(directory.empty() ? "." : directory, "/", command);
    struct stat status {};
    if (stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

namespace {

constexpr size_t kListMax = size_t{1} << 20;

// The loader that `program` names; empty: none.
std::string loader_of(const std::string& program) {
  std::string name;
  const auto file = reader::ElfFile::open_untrusted(program);
  if (!file.ok()) return name;
  file->for_each_segment([&](const reader::ElfSegment& segment) {
    if (segment.type != PT_INTERP) return true;
    if (segment.file_size <= PATH_MAX) {
      name = file->bytes(segment.offset, segment.file_size);
    }
    return false;
  });
  return name.substr(0, name.find('\0'));
}

// The output of `loader --list program`.
std::string listed_by(const std::string& loader, const std::string& program) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return {};
  const absl::Cleanup close_read = [&] { close(pipe[0]); };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string list_option = "--list";
  std::string file = program;
  std::string name = loader;
  std::array<char*, 4> arguments = {name.data(), list_option.data(), file.data(),
                                    nullptr};
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, loader.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe[1]);
  if (error != 0) return {};
  std::string text;
  std::array<char, 4096> bytes{};
  ssize_t got = 0;
  while (text.size() < kListMax &&
         ((got = read(pipe[0], bytes.data(), bytes.size())) > 0 || errno == EINTR)) {
    if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
    if (got == 0) break;
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace

std::vector<std::string> libraries_of(const std::string& program) {
  const std::string loader = loader_of(program);
  if (loader.empty()) return {};
  std::vector<std::string> paths;
  // "	NAME => PATH (ADDRESS)"
  const std::string list = listed_by(loader, program);
  for (const absl::string_view line : absl::StrSplit(list, '\n')) {
    const size_t begin = line.find("=> /");
    const size_t end = line.rfind(" (0x");
    if (begin == absl::string_view::npos || end == absl::string_view::npos) continue;
    paths.emplace_back(line.substr(begin + 3, end - begin - 3));
  }
  return paths;
}

namespace {

void add_functions(const std::string& path, bool is_demangled,
                   absl::btree_set<SessionFunction>& functions) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return;
  for (const reader::ElfSymbolTable& table : file->function_symbols()) {
    for (const reader::ElfSymbol& symbol : table.symbols) {
      SessionFunction function{FunctionNames(table.names.c_str() + symbol.name),
                               is_demangled};
      if (!function.linked.empty()) functions.insert(std::move(function));
    }
  }
}

// The files of modules, and whether a process that has them has a demangler.
using ModuleFiles = std::map<std::string, bool>;

bool is_asked_for(const reader::Process& process, const std::vector<pid_t>& pids) {
  return pids.empty() || std::find(pids.begin(), pids.end(),
                                   static_cast<pid_t>(process.pid)) != pids.end();
}

ModuleFiles module_files(const reader::Trace& trace, const std::vector<pid_t>& pids) {
  ModuleFiles files;
  std::map<std::string, bool> exporting;
  for (const reader::Process& process : trace.definitions().processes()) {
    if (!is_asked_for(process, pids)) continue;
    bool has_demangler = false;
    for (const reader::Module& module : process.modules) {
      const auto [known, is_new] = exporting.try_emplace(module.path);
      if (is_new) known->second = exports_demangler(module.path);
      has_demangler |= known->second;
    }
    for (const reader::Module& module : process.modules) {
      files[module.path] |= has_demangler;
    }
  }
  return files;
}

}  // namespace

bool SessionFunction::is_matched_by(const FunctionPattern& pattern) const {
  const bool is_cpp = linked.starts_with("_Z");
  return is_demangled && is_cpp ? pattern.matches_any(*this)
                                : pattern.matches_undemangled(*this);
}

absl::StatusOr<SessionFunctions> functions_of_session(const std::string& path,
                                                      const std::vector<pid_t>& pids) {
  const absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return trace.status();
  const ModuleFiles files = module_files(*trace, pids);
  SessionFunctions found;
  const reader::Definitions& definitions = trace->definitions();
  for (reader::ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    if (!is_asked_for(definitions.processes()[i], pids)) continue;
    for (const std::string_view name : definitions.names(i)) found.scopes.emplace(name);
  }
  for (const bool is_demangled : {true, false}) {  // names in both stay demangled
    for (const auto& [file, has_demangler] : files) {
      if (has_demangler != is_demangled) continue;
      found.modules.insert(file.substr(file.rfind('/') + 1));
      add_functions(file, is_demangled, found.functions);
    }
  }
  return found;
}

bool exports_demangler(const std::string& path) {
  const auto file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return false;
  const std::vector<std::string> names = file->exported_functions();
  return std::find(names.begin(), names.end(), "__cxa_demangle") != names.end();
}

}  // namespace arctrace::recording
