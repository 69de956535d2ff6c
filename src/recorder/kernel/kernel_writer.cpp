#include "src/recorder/kernel/kernel_writer.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bpf/layout.h"
#include "src/base/shared_atomics.hpp"
#include "src/os/process_facts.hpp"
#include "src/protocol/handout.hpp"

// bpf/kernel_writer.bpf.c, compiled (embedded.S).
extern "C" {
extern const char arctrace_kernel_writer_begin[];
extern const char arctrace_kernel_writer_end[];
}

namespace arctrace {
namespace {

// The last message of libbpf, or the reason for which the verifier refused a program. No
// return value has the reason of a failure.
struct LibbpfMessage {
  std::string text;
  bool is_verifiers = false;

  void set(absl::string_view message) {
    if (is_verifiers) return;  // later messages only repeat that loading failed
    // "prog 'NAME': -- BEGIN PROG LOAD LOG --", then the log, which ends with the reason
    // and a line of statistics.
    const size_t program_end = message.find(": -- BEGIN");
    const size_t reason_end = message.rfind("\nprocessed ");
    is_verifiers =
        program_end != absl::string_view::npos && reason_end != absl::string_view::npos;
    if (!is_verifiers) {
      text = std::string(absl::StripSuffix(absl::StripPrefix(message, "libbpf: "), "\n"));
      return;
    }
    const absl::string_view log = message.substr(0, reason_end);
    text = absl::StrCat(absl::StripPrefix(message.substr(0, program_end), "libbpf: "),
                        ": ", log.substr(log.rfind('\n') + 1));
  }
};
LibbpfMessage last_message;

__attribute__((format(printf, 2, 0))) int keep_message(libbpf_print_level level,
                                                       const char* format,
                                                       va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  char* message = nullptr;
  const int n = vasprintf(&message, format, arguments);
  if (n < 0) return n;
  last_message.set(message);
  std::free(message);
  return n;
}

absl::Status failure(int error, const std::string& step) {
  return absl::ErrnoToStatus(
      error,
      absl::StrCat(step, last_message.text.empty() ? "" : ", ", last_message.text));
}

// Whether the kernel has a tracepoint to which BPF programs can be attached by type.
bool has_tracepoint(const char* name) {
  return libbpf_find_vmlinux_btf_id(name, BPF_TRACE_RAW_TP) > 0;
}

// Whether the kernel has a function that BPF programs can call by type.
bool has_function(const char* name) {
  return libbpf_find_vmlinux_btf_id(name, BPF_TRACE_FENTRY) > 0;
}

}  // namespace

struct KernelWriter::Loaded {
  explicit Loaded(const BufferView& buffer) : view(buffer) {}

  const BufferView view;
  bpf_object* object = nullptr;
  std::vector<bpf_link*> links;
  std::span<uint64_t> traced;  // one bit for each process, which the programs read

  absl::Status map_traced() {
    const bpf_map* map = bpf_object__find_map_by_name(object, ".bss");
    if (map == nullptr) return failure(EINVAL, "finding the BPF programs' variables");
    const size_t size = bpf_map__value_size(map);
    void* base =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (base == MAP_FAILED) return failure(errno, "mapping the BPF programs' variables");
    traced = std::span(static_cast<uint64_t*>(base), size / sizeof(uint64_t));
    return absl::OkStatus();
  }

  // How often the kernel did not start a program, because it was running on that CPU
  // already: an interrupt had come in the middle of it.
  uint64_t skipped() const {
    uint64_t sum = 0;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object) {
      bpf_prog_info info{};
      uint32_t size = sizeof info;
      const int fd = bpf_program__fd(program);
      if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) != 0) continue;
      sum += info.recursion_misses;  // 0 if the kernel is older than the field
    }
    return sum;
  }

  // What a skipped program would have done is not known; it is told as a loss.
  ~Loaded() {
    if (!traced.empty()) munmap(traced.data(), traced.size_bytes());
    for (bpf_link* link : links) bpf_link__destroy(link);
    if (!links.empty()) {
      IpcAtomics::fetch_add_relaxed(view.control().lost[ARCTRACE_LOST_KERNEL], skipped());
    }
    bpf_object__close(object);
  }
};

std::string kernel_writer_obstacle() {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    return "the kernel has no BTF (/sys/kernel/btf/vmlinux)";
  }
  if (read_pid_namespace() != kFirstPidNamespace) {
    return "this is not the system's first PID namespace";
  }
  bpf_map_create_opts options{};
  options.sz = sizeof options;
  options.map_flags = BPF_F_MMAPABLE;
  const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", 4, 4096, 1, &options);
  if (map < 0) return absl::StrCat("BPF maps are refused: ", std::strerror(-map));
  close(map);
  const bpf_insn nothing[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K,
       .dst_reg = 0,
       .src_reg = 0,
       .off = 0,
       .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  const int program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "probe", "Dual MIT/GPL",
                                    nothing, 2, nullptr);
  if (program < 0) {
    return absl::StrCat("BPF programs are refused: ", std::strerror(-program));
  }
  const int link = bpf_raw_tracepoint_open("sched_switch", program);
  close(program);
  if (link < 0) {
    return absl::StrCat("the tracepoint sched_switch is refused: ", std::strerror(-link));
  }
  close(link);
  return "";
}

absl::StatusOr<uint32_t> possible_cpus() {
  const int count = libbpf_num_possible_cpus();
  if (count <= 0) return absl::ErrnoToStatus(-count, "counting the CPUs");
  return static_cast<uint32_t>(count);
}

absl::StatusOr<KernelWriter> KernelWriter::attach(const Buffer& buffer,
                                                  const KernelEvents& events) {
  libbpf_set_print(keep_message);
  last_message = {};
  auto loaded = std::make_unique<Loaded>(buffer.view());
  bpf_object_open_opts options{};
  options.sz = sizeof options;
  options.object_name = "arctrace";
  loaded->object = bpf_object__open_mem(
      arctrace_kernel_writer_begin,
      static_cast<size_t>(arctrace_kernel_writer_end - arctrace_kernel_writer_begin),
      &options);
  if (loaded->object == nullptr) return failure(errno, "reading the BPF programs");

  const Geometry& geometry = buffer.view().geometry();
  const buffer_layout layout{geometry.blocks_offset,
                             geometry.block_size,
                             geometry.block_count,
                             geometry.cpu_count,
                             Handout<IpcAtomics>::most_for_data(geometry),
                             static_cast<uint32_t>(getpid()),
                             geometry.mode == ARCTRACE_MODE_OVERWRITE,
                             access("/sys/kernel/realtime", F_OK) == 0,
                             has_function("bpf_rdonly_cast")};
  bpf_map* map = bpf_object__find_map_by_name(loaded->object, "buffer");
  bpf_map* data = bpf_object__find_map_by_name(loaded->object, ".rodata");
  size_t data_size = 0;
  if (data != nullptr) bpf_map__initial_value(data, &data_size);
  if (map == nullptr || data_size != sizeof layout) {
    return failure(EINVAL, "finding the BPF programs' maps");
  }
  int error = bpf_map__set_initial_value(data, &layout, sizeof layout);
  if (error == 0)
    error = bpf_map__set_value_size(map, static_cast<uint32_t>(geometry.total_size));
  if (error == 0) error = bpf_map__reuse_fd(map, buffer.map());
  if (error != 0) return failure(-error, "giving the buffer to the BPF programs");

  const auto is_wanted = [&](const std::string& name) {
    if (name == "on_waking") return events.wake_ups;
    if (name.starts_with("on_softirq") || name.starts_with("on_timer")) {
      return events.wake_ups && !layout.preemptible;
    }
    if (name == "on_syscall" || name == "on_syscall_end") return events.syscalls;
    if (name == "on_page_fault") return events.page_faults;
    if (name == "on_signal") return events.signals;
    if (name == "on_contention" || name == "on_contention_end") return events.contention;
    if (name == "on_block_io_end") return events.block_io;
    if (name == "on_block_io") return events.block_io && has_tracepoint("block_io_start");
    if (name == "on_block_issue") {
      return events.block_io && !has_tracepoint("block_io_start");
    }
    // Of interrupts, one program at the beginning and one at the end of each kind.
    if (name == "begin_softirq" || name == "end_softirq") {
      return events.interrupts && !layout.preemptible;
    }
    if (const size_t kind = name.find('_') + 1;
        name.starts_with("begin_") || name.starts_with("end_")) {
      const bool is_of_cpu = name != "begin_irq" && name != "end_irq";
      return events.interrupts &&
             (!is_of_cpu || has_tracepoint((name.substr(kind) + "_entry").c_str()));
    }
    return true;
  };
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, loaded->object) {
    bpf_program__set_autoload(program, is_wanted(bpf_program__name(program)));
  }
  if (error = bpf_object__load(loaded->object); error != 0) {
    return failure(-error, "loading the BPF programs");
  }
  if (absl::Status mapped = loaded->map_traced(); !mapped.ok()) return mapped;
  bpf_object__for_each_program(program, loaded->object) {
    if (!bpf_program__autoload(program)) continue;
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) {
      return failure(errno, absl::StrCat("attaching ", bpf_program__name(program)));
    }
    loaded->links.push_back(link);
  }
  return KernelWriter(std::move(loaded));
}

// Relaxed: a bit publishes no other memory (docs/memory_ordering.md).
void KernelWriter::trace_process(uint32_t pid, bool wanted) {
  const std::span<uint64_t> words = loaded_->traced;
  if (pid / 64 >= words.size()) return;
  const uint64_t bit = uint64_t{1} << (pid % 64);
  if (wanted) {
    IpcAtomics::fetch_or_relaxed(words[pid / 64], bit);
  } else {
    IpcAtomics::fetch_and_relaxed(words[pid / 64], ~bit);
  }
}

KernelWriter::KernelWriter(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
KernelWriter::KernelWriter(KernelWriter&&) noexcept = default;
KernelWriter& KernelWriter::operator=(KernelWriter&&) noexcept = default;
KernelWriter::~KernelWriter() = default;

}  // namespace arctrace
