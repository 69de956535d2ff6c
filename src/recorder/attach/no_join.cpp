// Where the processor is another one, nothing is joined.
#include "src/recorder/attach/join_process.hpp"
#include "src/recorder/attach/waiting_threads.hpp"

namespace arctrace {

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

}  // namespace arctrace
