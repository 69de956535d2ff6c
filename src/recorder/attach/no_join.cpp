// On processors other than x86-64, no process can be joined: these functions refuse.
#include "src/recorder/attach/join_process.hpp"

namespace arctrace::recorder {

absl::Status can_join_process(pid_t, const JoinRequest&) {
  return absl::UnimplementedError("processes that run can be joined on x86-64 only");
}

absl::StatusOr<Joined> join_process(pid_t pid, const JoinRequest& request) {
  return can_join_process(pid, request);
}

std::vector<WaitingThread> find_waiting_threads(pid_t) { return {}; }

std::vector<WaitingStack> unwind_waiting_threads(pid_t,
                                                 const std::vector<WaitingThread>&) {
  return {};
}

}  // namespace arctrace::recorder
