// What /proc/PID/status says of a process: its user, its rights; and which user is to own
// the buffer into which processes write.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace arctrace::recorder {

// The lines "Key:  value"; empty: there is no such process.
using StatusFields = std::map<std::string, std::string>;
StatusFields read_status(pid_t pid);

// The value of a key; empty or 0: there is none.
std::string text_of(const StatusFields& status, const char* key);
int64_t number_of(const StatusFields& status, const char* key);

// The effective user; nullopt: not known.
std::optional<uint32_t> user_of(const StatusFields& status);

// Whether it is in a PID namespace below this process', in which its threads have other
// numbers.
bool has_own_numbers(const StatusFields& status);

// The effective capabilities, a bit for each.
uint64_t capabilities_of(const StatusFields& status);

// The user who is to own the buffer into which these processes write: only root records
// processes of others. Returns -1 for the recorder's own user. Error: they are of several
// users, who would see each other's records.
absl::StatusOr<int64_t> buffer_owner_for(const std::vector<pid_t>& pids);

}  // namespace arctrace::recorder
