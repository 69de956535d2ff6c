#include "src/recording/patterns/program_libraries.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "reader/symbols/elf_file.hpp"

namespace arctrace::recording {
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

}  // namespace arctrace::recording
