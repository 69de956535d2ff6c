// What libbpf says of its failures: no return value of its functions has the reason.
#pragma once

#include <absl/status/status.h>

#include <string>

namespace arctrace {

// From now on messages of libbpf are kept, and none is printed.
void keep_libbpf_messages();
// What was kept is about an earlier step.
void forget_libbpf_message();

// The error of a step, with the message that was kept, which is the verifier's reason if
// it refused a program. `error`: an errno.
absl::Status libbpf_failure(int error, const std::string& step);

}  // namespace arctrace
