#include "reader/cli/kernel_options.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>

#include "reader/cli/record_session.hpp"

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
  absl::Status status = writer.status();
  if (status.ok()) status = writer->trace_process(static_cast<uint32_t>(getpid()), true);
  if (status.ok()) return std::optional<KernelWriter>(*std::move(writer));
  status = go_without(options, std::string(status.message()));
  if (!status.ok()) return status;
  return std::nullopt;
}

}  // namespace arctrace::cli
