#include "reader/cli/kernel_options.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>

#include "reader/cli/record_session.hpp"
#include "reader/cli/session_text.hpp"
#include "src/collector/reaper.hpp"
#include "src/collector/session_directory.hpp"
#include "src/pinned_map.hpp"
#include "src/shared_atomics.hpp"

namespace arctrace::cli {
namespace {

const std::map<std::string, KernelUse> kUses = {
    {"auto", KernelUse::kAuto}, {"no", KernelUse::kNo}, {"require", KernelUse::kRequire}};

// The kernel can't write: that is said, or an error.
absl::Status go_without(const KernelOptions& options, const std::string& reason) {
  if (options.use == KernelUse::kRequire) {
    return absl::FailedPreconditionError(absl::StrCat("--kernel=require: ", reason));
  }
  say(absl::StrCat("warning: recording without the kernel: ", reason));
  return absl::OkStatus();
}

// Kernel memory that nobody writes and no recorder will remove. Nor do we: what is in it
// may be wanted.
void warn_of_left_behind() {
  size_t count = 0;
  std::string example;
  for (const FoundSession& session : find_sessions()) {
    if (!is_pinned_map(session.path.c_str())) continue;
    const absl::StatusOr<Buffer> buffer = Buffer::open(session.path, BufferAccess::kRead);
    if (!buffer.ok()) continue;
    const BufferView& view = buffer->view();
    if (is_live(IpcAtomics::load_acquire(view.control().collector_lock)) ||
        !living_processes(view).empty()) {
      continue;
    }
    ++count;
    example = session.path;
  }
  if (count == 0) return;
  say(absl::StrCat("warning: ", count_text(count, "buffer"),
                   " in kernel memory left behind by killed recorders: arctrace recover ",
                   example, ", then arctrace destroy ", example));
}

}  // namespace

void add_kernel_options(CLI::App& app, KernelOptions& options) {
  app.add_option_function<std::string>(
         "--kernel",
         [&options](const std::string& text) {
           const auto use = kUses.find(text.empty() ? "auto" : text);
           if (use == kUses.end()) {
             throw CLI::ValidationError("--kernel",
                                        "\"" + text + "\" is not auto, require or no");
           }
           options.use = use->second;
         },
         "record dispatches, wake-ups, fork, exec and exit of the traced processes, by "
         "BPF: auto = where it can be, require = or fail (default: no; --kernel alone: "
         "auto)")
      ->expected(0, 1)
      ->type_name("auto|require|no");
  const auto add_event = [&](const char* name, bool KernelEvents::*event,
                             const char* what) {
    app.add_flag_callback(
        name,
        [&options, event] {
          options.events.*event = true;
          if (options.use == KernelUse::kNo) options.use = KernelUse::kAuto;
        },
        what);
  };
  add_event("--syscalls", &KernelEvents::syscalls,
            "and system calls (slows those of all processes a little)");
  add_event("--page-faults", &KernelEvents::page_faults, "and page faults");
  add_event("--signals", &KernelEvents::signals, "and signals that are delivered");
  add_event("--contention", &KernelEvents::contention, "and waits for kernel locks");
  add_event("--block-io", &KernelEvents::block_io,
            "and requests to block devices, with their end");
}

absl::StatusOr<Buffer> create_buffer(BufferOptions buffer, KernelOptions& options) {
  if (options.use == KernelUse::kNo) return Buffer::create(buffer);
  std::string reason = kernel_writer_obstacle();
  if (reason.empty()) {
    const absl::StatusOr<uint32_t> cpus = possible_cpus();
    if (!cpus.ok()) return cpus.status();
    BufferOptions in_kernel = buffer;
    in_kernel.in_kernel = true;
    in_kernel.cpu_count = *cpus;
    warn_of_left_behind();
    absl::StatusOr<Buffer> made = Buffer::create(in_kernel);
    if (made.ok()) return made;
    reason = std::string(made.status().message());
  }
  if (absl::Status status = go_without(options, reason); !status.ok()) return status;
  options.use = KernelUse::kNo;
  return Buffer::create(buffer);
}

absl::StatusOr<std::optional<KernelWriter>> attach_kernel(const Buffer& buffer,
                                                          const KernelOptions& options) {
  if (options.use == KernelUse::kNo) return std::nullopt;
  absl::StatusOr<KernelWriter> writer = KernelWriter::attach(buffer, options.events);
  if (writer.ok()) {
    writer->trace_process(static_cast<uint32_t>(getpid()), true);
    return std::optional<KernelWriter>(*std::move(writer));
  }
  absl::Status status = go_without(options, std::string(writer.status().message()));
  if (!status.ok()) return status;
  return std::nullopt;
}

}  // namespace arctrace::cli
