// arctrace create: makes a session that outlives commands.
#include <absl/strings/str_cat.h>
#include <grp.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"
#include "reader/cli/record/printed_events.hpp"
#include "reader/render/output.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/recorder/buffer/memory_keeper.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recording/events.hpp"
#include "src/recording/hook_costs.hpp"
#include "src/recording/recording_buffer.hpp"

namespace arctrace::cli {
namespace {

struct CreateOptions {
  std::string name;
  std::string group;
  bool start = false;
  recorder::BufferOptions buffer;
  recording::KernelOptions kernel;
  recording::RecordFilterOptions record_filter;
};

// Puts the buffer into the kernel's memory if that is asked for and possible. Prints a
// warning if it is not possible and not required.
absl::Status choose_memory(CreateOptions& options, recording::Events& events) {
  const recording::KernelRecording use = options.kernel.use;
  if (use == recording::KernelRecording::kNo) return absl::OkStatus();
  std::string why;
  if (use == recording::KernelRecording::kPerf) {
    why = "perf events are those of a recorder's own children";
  } else if (options.buffer.is_directory_asked) {
    why = "the buffer is in the kernel's memory, which --buffer-dir is not";
  } else {
    why = recorder::kernel_writer_obstacle();
  }
  if (why.empty()) return recording::plan_for_kernel(options.buffer, events);
  if (use != recording::KernelRecording::kAuto || options.buffer.is_directory_asked) {
    return absl::FailedPreconditionError(absl::StrCat("--kernel: ", why));
  }
  reader::print_warning(absl::StrCat("a session without the kernel's records: ", why));
  return absl::OkStatus();
}

// A buffer in the kernel's memory has a name of its own, to which the session's name
// leads.
absl::StatusOr<recorder::Buffer> make_buffer(const CreateOptions& options) {
  absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(options.buffer);
  if (!buffer.ok() || !options.buffer.in_kernel) return buffer;
  absl::Status named = recorder::name_session(options.name, buffer->path());
  if (!named.ok()) return named;
  // The session's collector loads the BPF programs.
  IpcAtomics::store_relaxed(buffer->view().control().kernel_wanted,
                            options.kernel.events);
  return buffer;
}

absl::StatusOr<int> create(CreateOptions& options) {
  PrintedEvents events;
  // A session in another directory is known by its path only.
  const bool is_elsewhere =
      options.buffer.is_directory_asked && recorder::is_session_name(options.name);
  const absl::StatusOr<std::string> path =
      is_elsewhere ? absl::StrCat(options.buffer.directory, "/", options.name)
                   : recorder::session_file(options.name, true);
  if (!path.ok()) return path.status();
  options.buffer.file = *path;
  if (!options.group.empty()) {
    const group* found = getgrnam(options.group.c_str());
    if (found == nullptr) {
      return absl::NotFoundError(absl::StrCat("no group \"", options.group, "\""));
    }
    options.buffer.group = found->gr_gid;
  }
  if (absl::Status chosen = choose_memory(options, events); !chosen.ok()) return chosen;
  if (!options.buffer.in_kernel) {
    if (absl::Status status = recording::fit(options.buffer, events); !status.ok())
      return status;
  }
  // Memory that this command locks would be unlocked when it ends, so another process
  // locks it.
  const recorder::PinPolicy pin =
      std::exchange(options.buffer.pin, recorder::PinPolicy::kNo);
  absl::StatusOr<recorder::Buffer> buffer = make_buffer(options);
  if (absl::IsAlreadyExists(buffer.status())) {
    return absl::AlreadyExistsError(absl::StrCat(
        "session ", options.name, " exists already; arctrace destroy removes it"));
  }
  if (!buffer.ok()) return buffer.status();
  if (!options.record_filter.empty()) {
    absl::Status filtered =
        recorder::set_record_filter(buffer->view(), options.record_filter.text());
    if (!filtered.ok()) return filtered;
  }
  if (!buffer->warning().empty()) reader::print_warning(buffer->warning());
  if (pin != recorder::PinPolicy::kNo && !options.buffer.in_kernel) {
    const absl::StatusOr<std::string> refused = recorder::keep_pinned(*buffer, pin);
    if (!refused.ok()) return refused.status();
    if (!refused->empty()) reader::print_warning(*refused);
  }
  // The costs of hooks are measured now, because snapshots need them, and the buffer may
  // be overwritten while they are taken.
  recording::hook_costs();
  reader::Output output;
  output.write(absl::StrCat(buffer->path(), "\n"));
  if (absl::Status status = output.finish(); !status.ok()) return status;
  recorder::set_gate(buffer->view(), options.start ? ARCTRACE_GATE_ALL : 0);
  buffer->keep_file();
  return 0;
}

}  // namespace

Runner add_create(CLI::App& root) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* app =
      root.add_subcommand("create", "create a session that outlives commands");
  app->add_option("name", options->name, "a name of letters, digits and . _ -")
      ->required()
      ->type_name("NAME");
  app->add_option("--group", options->group,
                  "let members of GROUP write to the session and read it")
      ->type_name("GROUP");
  app->add_flag("--start", options->start, "switch recording on at once");
  options->buffer.pin = recorder::PinPolicy::kNo;
  add_buffer_options(*app, options->buffer);
  add_kernel_options(*app, options->kernel);
  add_record_filter_options(*app, options->record_filter, false);
  app->footer(
      "Prints the path of the buffer's file. A program joins the session if its\n"
      "environment has ARCTRACE_SESSION=FILE, or if arctrace record --session=NAME\n"
      "starts it. With --buffer-dir other commands take that path, not NAME. With --pin\n"
      "a process arctrace-keeper keeps the memory pinned until the session is "
      "destroyed.\nWith --kernel the buffer is in the kernel's memory, and the kernel "
      "writes into it\n"
      "while arctrace attach collects the session: about programs from when they join\n"
      "it, or from their first instruction on if arctrace record --session=NAME starts\n"
      "them.");
  return [options] { return create(*options); };
}

}  // namespace arctrace::cli
