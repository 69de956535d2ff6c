// Reads from /proc whose child each process is.
#include "src/recording/older_children.hpp"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "reader/trace/text_escape.hpp"
#include "src/recorder/attach/process_status.hpp"

namespace arctrace::recording {
namespace {

// More children than a line should list.
constexpr size_t kListedMax = 16;

// The parent of each process that lives.
std::map<pid_t, pid_t> read_parents() {
  std::map<pid_t, pid_t> parents;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end;
       !error && entry != end; entry.increment(error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().native(), &pid)) continue;
    const recorder::StatusFields status = recorder::read_status(pid);
    if (status.empty() || absl::StartsWith(recorder::text_of(status, "State"), "Z")) {
      continue;
    }
    parents[pid] = static_cast<pid_t>(recorder::number_of(status, "PPid"));
  }
  return parents;
}

}  // namespace

std::map<pid_t, std::vector<pid_t>> children_of(const std::vector<pid_t>& pids) {
  std::map<pid_t, pid_t> parents = read_parents();
  for (auto self = parents.find(getpid()); self != parents.end();) {
    const pid_t parent = self->second;
    parents.erase(self);
    self = parents.find(parent);
  }
  std::map<pid_t, std::vector<pid_t>> children;
  for (const pid_t pid : pids) children[pid];
  for (const auto& [pid, parent] : parents) {
    if (const auto its = children.find(parent); its != children.end()) {
      its->second.push_back(pid);
    }
  }
  return children;
}

bool maps_buffer(pid_t pid, const std::string& path, bool is_map) {
  const std::string end = absl::StrCat(" ", is_map ? "anon_inode:bpf-map" : path);
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (absl::EndsWith(line, end)) return true;
  }
  return false;
}

std::string unrecorded_children_text(pid_t parent, const std::vector<pid_t>& children) {
  const bool is_one = children.size() == 1;
  return absl::StrCat(
      "process ", parent, " (",
      reader::escaped(recorder::text_of(recorder::read_status(parent), "Name")), ") has ",
      children.size(), is_one ? " child that is" : " children that are",
      " not recorded: -p ",
      children.size() <= kListedMax ? absl::StrJoin(children, ",")
                                    : absl::StrCat("$(pgrep -d, -P ", parent, ")"),
      " records ", is_one ? "it" : "them", ", too");
}

}  // namespace arctrace::recording
