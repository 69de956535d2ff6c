#include "src/recording/session_users.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {
namespace {

bool has_variable(const std::filesystem::path& process, const std::string& wanted) {
  std::ifstream environment(process / "environ");
  for (std::string variable; std::getline(environment, variable, '\0');) {
    if (variable == wanted) return true;
  }
  return false;
}

}  // namespace

size_t count_session_users(const std::string& path) {
  const std::string wanted = absl::StrCat(shim::kSessionVariable, "=", path);
  const std::string self = absl::StrCat(getpid());
  size_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    const bool is_process = std::all_of(name.begin(), name.end(),
                                        [](char c) { return c >= '0' && c <= '9'; });
    if (is_process && name != self && has_variable(entry->path(), wanted)) ++count;
  }
  return count;
}

}  // namespace arctrace::recording
