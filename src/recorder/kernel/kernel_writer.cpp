// Loads the BPF programs for the wanted events, shares their maps, and attaches them.
#include "src/recorder/kernel/kernel_writer.hpp"

#include <absl/strings/str_cat.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bpf/layout.h"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/process_facts.hpp"
#include "src/protocol/handout.hpp"
#include "src/recorder/kernel/loaded_programs.hpp"

// The compiled bpf/kernel_writer.bpf.c (embedded.S).
extern "C" {
extern const char arctrace_kernel_writer_begin[];
extern const char arctrace_kernel_writer_end[];
}

namespace arctrace::recorder {
namespace {

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
  explicit Loaded(const Buffer& buffer) : view(buffer.view()), map(buffer.map()) {}

  const BufferView view;
  const int map;  // the buffer
  buffer_layout layout{};
  std::vector<LoadedPrograms> parts;  // the first has the maps that all programs use
  selection* selected = nullptr;      // the selection, which the programs read
  uint32_t events = 0;                // the recorded ones: enum arctrace_kernel_event
  std::vector<std::string> missing;   // see KernelWriter::missing()

  bool is_wanted(const std::string& name, uint32_t wanted, bool with_scheduler) {
    const uint32_t event = kernel_event_of_program(name);
    if (event == 0) {
      if (!with_scheduler) return false;
      const bool tells_contexts =
          name.starts_with("on_softirq") || name.starts_with("on_timer");
      return !tells_contexts || !layout.preemptible;
    }
    if ((wanted & event) == 0) return false;
    if (name == "on_block_io") return has_tracepoint("block_io_start");
    if (name == "on_block_issue") return !has_tracepoint("block_io_start");
    // For each kind of interrupt there is one program for the beginning and one for the
    // end.
    if (name == "begin_softirq" || name == "end_softirq") return !layout.preemptible;
    if (event != ARCTRACE_KERNEL_INTERRUPTS || name == "begin_irq" || name == "end_irq") {
      return true;
    }
    const std::string kind = name.substr(name.find('_') + 1);
    if (has_tracepoint((kind + "_entry").c_str())) return true;
    if (name.starts_with("begin_")) missing.push_back(kind);
    return false;
  }

  // Loads the programs for these events, and those that are always needed.
  absl::Status load(uint32_t wanted, bool with_scheduler) {
    forget_libbpf_message();
    missing.clear();
    bpf_object_open_opts options{};
    options.sz = sizeof options;
    options.object_name = "arctrace";
    bpf_object* object = bpf_object__open_mem(
        arctrace_kernel_writer_begin,
        static_cast<size_t>(arctrace_kernel_writer_end - arctrace_kernel_writer_begin),
        &options);
    if (object == nullptr) return libbpf_failure(errno, "reading the BPF programs");
    LoadedPrograms part{object, {}};
    absl::Status status = prepare(part, wanted, with_scheduler);
    if (!status.ok()) {
      bpf_object__close(object);
      return status;
    }
    parts.push_back(std::move(part));
    return absl::OkStatus();
  }

  absl::Status prepare(LoadedPrograms& part, uint32_t wanted, bool with_scheduler) {
    absl::Status given = parts.empty() ? give_maps(part) : share_maps(part);
    if (!given.ok()) return given;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, part.object) {
      const std::string name = bpf_program__name(program);
      const bool is_loaded = is_wanted(name, wanted, with_scheduler);
      bpf_program__set_autoload(program, is_loaded);
      if (is_loaded) part.programs.push_back({program, kernel_event_of_program(name)});
    }
    if (const int error = bpf_object__load(part.object); error != 0) {
      return libbpf_failure(-error, "loading the BPF programs");
    }
    return parts.empty() ? map_selection(part) : absl::OkStatus();
  }

  // Gives a part the buffer, and the facts about it.
  absl::Status give_maps(const LoadedPrograms& part) const {
    bpf_map* in_kernel = part.map("buffer");
    bpf_map* data = part.map(".rodata");
    size_t data_size = 0;
    if (data != nullptr) bpf_map__initial_value(data, &data_size);
    if (in_kernel == nullptr || data_size != sizeof layout) {
      return libbpf_failure(EINVAL, "finding the BPF programs' maps");
    }
    int error = bpf_map__set_initial_value(data, &layout, sizeof layout);
    if (error == 0) {
      error = bpf_map__set_value_size(in_kernel,
                                      static_cast<uint32_t>(view.geometry().total_size));
    }
    if (error == 0) error = bpf_map__reuse_fd(in_kernel, map);
    if (error != 0)
      return libbpf_failure(-error, "giving the buffer to the BPF programs");
    return absl::OkStatus();
  }

  // The object file's maps come in the same order; a map that was given to libbpf keeps
  // its own name.
  absl::Status share_maps(const LoadedPrograms& part) const {
    const bpf_map* first = nullptr;
    bpf_map* one = nullptr;
    bpf_object__for_each_map(one, part.object) {
      first = bpf_object__next_map(parts.front().object, first);
      const int error =
          first == nullptr ? -EINVAL : bpf_map__reuse_fd(one, bpf_map__fd(first));
      if (error != 0) return libbpf_failure(-error, "sharing the BPF programs' maps");
    }
    return absl::OkStatus();
  }

  absl::Status map_selection(const LoadedPrograms& part) {
    const bpf_map* variables = part.map(".bss");
    if (variables == nullptr || bpf_map__value_size(variables) < sizeof(selection)) {
      return libbpf_failure(EINVAL, "finding the BPF programs' variables");
    }
    void* base = mmap(nullptr, sizeof(selection), PROT_READ | PROT_WRITE, MAP_SHARED,
                      bpf_map__fd(variables), 0);
    if (base == MAP_FAILED)
      return libbpf_failure(errno, "mapping the BPF programs' variables");
    selected = static_cast<selection*>(base);
    return absl::OkStatus();
  }

  // Attaches the programs that record these events, and detaches those that record
  // others.
  absl::Status attach(uint32_t wanted) {
    for (LoadedPrograms& part : parts) {
      for (LoadedPrograms::Program& program : part.programs) {
        if (program.event != 0 && (program.event & wanted) == 0) {
          detach_program(program);
        } else if (absl::Status status = attach_program(program); !status.ok()) {
          return status;
        }
      }
    }
    return absl::OkStatus();
  }

  uint32_t loaded_events() const {
    uint32_t loaded = 0;
    for (const LoadedPrograms& part : parts) {
      for (const auto& program : part.programs) loaded |= program.event;
    }
    return loaded;
  }

  // The record that a skipped program would have written is not known; it counts as lost.
  ~Loaded() {
    if (selected != nullptr) munmap(selected, sizeof *selected);
    uint64_t skipped = 0;
    for (LoadedPrograms& part : parts) {
      for (LoadedPrograms::Program& program : part.programs) detach_program(program);
      skipped += part.skipped();
    }
    IpcAtomics::fetch_add_relaxed(view.control().lost[ARCTRACE_LOST_KERNEL], skipped);
    // The other parts use the first part's maps.
    while (!parts.empty()) {
      bpf_object__close(parts.back().object);
      parts.pop_back();
    }
  }
};

std::string kernel_writer_obstacle() {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    return "the kernel has no BTF (/sys/kernel/btf/vmlinux)";
  }
  if (read_pid_namespace() != kFirstPidNamespace) {
    return "this is not the system's first PID namespace";
  }
  if (!learn_time_namespace()) return kUnknownTimeNamespace;
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

absl::StatusOr<KernelWriter> KernelWriter::attach(const Buffer& buffer, uint32_t events) {
  keep_libbpf_messages();
  auto loaded = std::make_unique<Loaded>(buffer);
  const Geometry& geometry = buffer.view().geometry();
  loaded->layout = {geometry.blocks_offset,
                    geometry.block_size,
                    geometry.block_count,
                    geometry.cpu_count,
                    Handout<IpcAtomics>::most_for_data(geometry),
                    geometry.mode == ARCTRACE_MODE_OVERWRITE,
                    access("/sys/kernel/realtime", F_OK) == 0,
                    has_function("bpf_rdonly_cast")};
  if (absl::Status status = loaded->load(events, true); !status.ok()) return status;
  if (absl::Status status = loaded->attach(events); !status.ok()) return status;
  loaded->events = events;
  return KernelWriter(std::move(loaded));
}

absl::Status KernelWriter::set_events(uint32_t events) {
  Loaded& loaded = *loaded_;
  loaded.missing.clear();
  const uint32_t new_ones = events & ~loaded.loaded_events();
  if (new_ones != 0) {
    if (absl::Status status = loaded.load(new_ones, false); !status.ok()) return status;
  }
  if (absl::Status status = loaded.attach(events); !status.ok()) {
    // Programs that were attached before can be attached again.
    loaded.attach(loaded.events).IgnoreError();
    return status;
  }
  loaded.events = events;
  return absl::OkStatus();
}

// Relaxed: a bit publishes no other memory (docs/memory_ordering.md).
void KernelWriter::trace_process(uint32_t pid, bool wanted) {
  if (pid / 64 >= TRACED_WORDS) return;
  uint64_t& word = loaded_->selected->traced[pid / 64];
  const uint64_t bit = uint64_t{1} << (pid % 64);
  if (wanted) {
    IpcAtomics::fetch_or_relaxed(word, bit);
  } else {
    IpcAtomics::fetch_and_relaxed(word, ~bit);
  }
}

// The programs only clear words, those of processes that have ended. A word publishes no
// other memory (docs/memory_ordering.md).
bool KernelWriter::trace_children(uint32_t pid, bool wanted) {
  for (uint32_t& parent : loaded_->selected->parents) {
    uint32_t expected = wanted ? 0 : pid;
    if (IpcAtomics::compare_exchange_acq_rel(parent, expected, wanted ? pid : 0)) {
      return true;
    }
  }
  return false;
}

const std::vector<std::string>& KernelWriter::missing() const { return loaded_->missing; }

KernelWriter::KernelWriter(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
KernelWriter::KernelWriter(KernelWriter&&) noexcept = default;
KernelWriter& KernelWriter::operator=(KernelWriter&&) noexcept = default;
KernelWriter::~KernelWriter() = default;

}  // namespace arctrace::recorder
