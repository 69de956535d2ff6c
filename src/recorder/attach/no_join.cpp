// Where the processor is another one, nothing is joined.
#include "src/recorder/attach/join_process.hpp"

namespace arctrace {

absl::Status can_join_process(pid_t, const JoinRequest&) {
  return absl::UnimplementedError("processes that run can be joined on x86-64 only");
}

absl::StatusOr<Joined> join_process(pid_t pid, const JoinRequest& request) {
  return can_join_process(pid, request);
}

}  // namespace arctrace
