// Reads /proc/PID/status.
#include "src/recorder/attach/process_status.hpp"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <pwd.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace arctrace::recorder {

StatusFields read_status(pid_t pid) {
  StatusFields fields;
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> field =
        absl::StrSplit(line, absl::MaxSplits(":\t", 1));
    fields.insert(field);
  }
  return fields;
}

std::string text_of(const StatusFields& status, const char* key) {
  const auto found = status.find(key);
  return found != status.end() ? found->second : "";
}

int64_t number_of(const StatusFields& status, const char* key) {
  int64_t number = 0;
  return absl::SimpleAtoi(text_of(status, key), &number) ? number : 0;
}

bool has_own_numbers(const StatusFields& status) {
  return absl::StrContains(text_of(status, "NSpid"), '\t');
}

uint64_t capabilities_of(const StatusFields& status) {
  uint64_t capabilities = 0;
  return absl::SimpleHexAtoi(text_of(status, "CapEff"), &capabilities) ? capabilities : 0;
}

std::optional<uint32_t> user_of(const StatusFields& status) {
  const std::vector<std::string> users = absl::StrSplit(text_of(status, "Uid"), '\t');
  constexpr size_t kEffective = 1;
  uint32_t user = 0;
  if (users.size() <= kEffective || !absl::SimpleAtoi(users[kEffective], &user)) {
    return std::nullopt;
  }
  return user;
}

namespace {

std::string user_name(uint32_t user) {
  const passwd* entry = getpwuid(user);
  return entry != nullptr ? std::string(entry->pw_name) : absl::StrCat("user ", user);
}

}  // namespace

absl::StatusOr<int64_t> buffer_owner_for(const std::vector<pid_t>& pids) {
  if (geteuid() != 0) return -1;
  std::optional<uint32_t> owner;
  pid_t first = 0;
  for (const pid_t pid : pids) {
    const std::optional<uint32_t> user = user_of(read_status(pid));
    if (!user.has_value()) continue;  // it has ended, which is said where it would join
    if (!owner.has_value()) {
      owner = user;
      first = pid;
    } else if (*owner != *user) {
      return absl::FailedPreconditionError(absl::StrCat(
          "processes ", first, " of ", user_name(*owner), " and ", pid, " of ",
          user_name(*user),
          " cannot be recorded into one buffer, in which each would see the other's "
          "records: record those of one user at a time"));
    }
  }
  return owner.value_or(0) == 0 ? -1 : int64_t{*owner};
}

}  // namespace arctrace::recorder
