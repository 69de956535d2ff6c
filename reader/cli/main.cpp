// arctrace: the command. Runs what the command line says, and prints an error in one
// line.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

#include "reader/cli/run_command.hpp"
#include "src/buffer/clock.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/patching/patch_request.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::cli {
namespace {

// Opens the standard streams that our parent closed, so that no other file gets their
// number. Using such a stream remains an error.
void reserve_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    const int opened =
        ::open("/dev/null", (descriptor == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (opened >= 0 && opened != descriptor) ::close(opened);
  }
}

}  // namespace
}  // namespace arctrace::cli

// This function runs before the constructors of other files.
__attribute__((constructor(101))) static void begin() {
  arctrace::recording::ignore_snapshot_signal();
}

int main(int argc, char** argv) {
  arctrace::cli::reserve_standard_descriptors();
  (void)arctrace::learn_time_namespace();  // who needs it asks again
  try {
    // The shim runs this verb for each program; it is no command for users.
    if (argc > 1 && std::string_view(argv[1]) == arctrace::shim::kPatchVerb) {
      return arctrace::recording::make_patches({argv + 2, argv + argc});
    }
    return arctrace::cli::run_command({argv + std::min(argc, 1), argv + argc});
  } catch (const std::bad_alloc&) {
    return arctrace::cli::fail("out of memory");
  } catch (const std::exception& error) {
    return arctrace::cli::fail(error.what());
  }
}
