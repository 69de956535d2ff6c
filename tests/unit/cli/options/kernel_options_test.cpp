// --kernel and the options for kinds of the kernel's records.
#include <arctrace/format.h>
#include <doctest/doctest.h>

#include "reader/cli/options/record_options.hpp"
#include "tests/unit/cli/options/parsed.hpp"

namespace arctrace::cli {
namespace {

struct KernelParsed {
  explicit KernelParsed(std::vector<std::string> arguments) {
    CLI::App app;
    add_kernel_options(app, options);
    error = testing::parse_error(app, std::move(arguments));
  }
  recording::KernelOptions options;
  std::string error;
};

TEST_CASE("--kernel and its words") {
  CHECK(KernelParsed({}).options.use == recording::KernelRecording::kNo);
  CHECK(KernelParsed({"--kernel"}).options.use == recording::KernelRecording::kAuto);
  CHECK(KernelParsed({"--kernel=auto"}).options.use == recording::KernelRecording::kAuto);
  CHECK(KernelParsed({"--kernel=bpf"}).options.use == recording::KernelRecording::kBpf);
  CHECK(KernelParsed({"--kernel=perf"}).options.use == recording::KernelRecording::kPerf);
  CHECK(KernelParsed({"--kernel=require"}).options.use ==
        recording::KernelRecording::kRequire);
  CHECK(KernelParsed({"--kernel=no"}).options.use == recording::KernelRecording::kNo);
  for (const char* wrong : {"yes", "BPF", "1"}) {
    CHECK(KernelParsed({"--kernel=" + std::string(wrong)}).error ==
          "--kernel: \"" + std::string(wrong) +
              "\" is not auto, bpf, perf, require, no or irq");
  }
}

TEST_CASE("--kernel=irq records interrupts too, in any way but by perf's events") {
  const KernelParsed alone({"--kernel=irq"});
  CHECK(alone.options.use == recording::KernelRecording::kAuto);
  CHECK(alone.options.events == ARCTRACE_KERNEL_INTERRUPTS);
  CHECK(recording::event_options(alone.options.events) == "--kernel=irq");
  const KernelParsed required({"--kernel=require,irq", "--signals"});
  CHECK(required.options.use == recording::KernelRecording::kRequire);
  CHECK(recording::event_options(required.options.events) == "--kernel=irq, --signals");
  CHECK(KernelParsed({"--kernel=bpf,irq"}).options.use ==
        recording::KernelRecording::kBpf);
  CHECK(KernelParsed({"--kernel=auto,irq"}).options.use ==
        recording::KernelRecording::kAuto);
  for (const char* without : {"auto", "bpf", "perf", "require", "no"}) {
    CHECK(KernelParsed({"--kernel=" + std::string(without)}).options.events == 0);
  }
  for (const char* wrong :
       {",irq", "irq,", "irq,bpf", "bpfirq", "bpf,irq,irq", "irqirq"}) {
    CHECK(KernelParsed({"--kernel=" + std::string(wrong)}).error ==
          "--kernel: \"" + std::string(wrong) +
              "\" is not auto, bpf, perf, require, no or irq");
  }
  for (const char* wrong : {"perf,irq", "no,irq"}) {
    CHECK(KernelParsed({"--kernel=" + std::string(wrong)}).error ==
          "--kernel: \"" + std::string(wrong) +
              "\": interrupts are recorded by BPF alone");
  }
}

TEST_CASE("events of the kernel ask for its records, unless --kernel says how") {
  const KernelParsed syscalls({"--syscalls"});
  CHECK(syscalls.options.use == recording::KernelRecording::kAuto);
  CHECK(syscalls.options.events == ARCTRACE_KERNEL_SYSCALLS);
  CHECK(KernelParsed({"--kernel=perf", "--signals"}).options.use ==
        recording::KernelRecording::kPerf);
  CHECK(KernelParsed({"--signals", "--kernel=require"}).options.use ==
        recording::KernelRecording::kRequire);
  const KernelParsed all(
      {"--syscalls", "--page-faults", "--signals", "--contention", "--block-io"});
  CHECK(recording::event_options(all.options.events) ==
        "--syscalls, --page-faults, --signals, --contention, --block-io");
  CHECK(recording::event_options(0) == "");
}

}  // namespace
}  // namespace arctrace::cli
