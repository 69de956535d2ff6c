#include "reader/trace/definitions.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/protocol/live_filter.hpp"

namespace arctrace::reader {
namespace {

bool in_force(const Module& module, int64_t time_ns) {
  return module.loaded_ns <= time_ns && time_ns < module.unloaded_ns;
}

}  // namespace

bool Definitions::has_dispatches() const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const Thread& thread) { return thread.of_kernel(); });
}

const Process* Definitions::process(ProcessIndex index) const {
  return index < processes_.size() ? &processes_[index] : nullptr;
}

const Thread* Definitions::thread(ThreadIndex index) const {
  return index < threads_.size() ? &threads_[index] : nullptr;
}

const Process* Definitions::process_of(ThreadIndex index) const {
  const Thread* found = thread(index);
  return found == nullptr ? nullptr : process(found->process);
}

uint32_t Definitions::pid_of(ThreadIndex index) const {
  if (const Process* process = process_of(index)) return process->pid;
  const Thread* facts = thread(index);
  return facts == nullptr ? 0 : facts->tgid;
}

bool Definitions::has_pid(ThreadIndex index) const {
  const Thread* facts = thread(index);
  return process_of(index) != nullptr || (facts != nullptr && facts->of_kernel());
}

int64_t Definitions::life_begin_ns(ThreadIndex index) const {
  const Thread* found = thread(index);
  const Process* process = process_of(index);
  if (process == nullptr || process->pid != found->tid) return INT64_MIN;
  if (process->origin == ARCTRACE_ORIGIN_FORK) return process->forked_ns;
  return process->exec_ns != INT64_MIN ? process->exec_ns : process->earliest_ns;
}

int64_t Definitions::life_end_ns(ThreadIndex index) const {
  const Thread* found = thread(index);
  if (found == nullptr) return INT64_MAX;
  const Process* process = process_of(index);
  const bool has_end = process != nullptr && process->end_how != ARCTRACE_END_NONE;
  return has_end ? std::min(found->end_ns, process->end_ns) : found->end_ns;
}

bool Definitions::joined_running(ThreadIndex index) const {
  const Process* process = process_of(index);
  return process != nullptr && process->ran_before && process->pid == thread(index)->tid;
}

size_t Definitions::programs_joined_running() const {
  return static_cast<size_t>(
      std::count_if(processes_.begin(), processes_.end(),
                    [](const Process& process) { return process.ran_before; }));
}

int64_t Definitions::begin_ns(ThreadIndex index) const {
  const Thread* found = thread(index);
  if (found == nullptr) return 0;
  const Process* process = process_of(index);
  const bool is_first = process != nullptr && process->pid == found->tid;
  return is_first ? std::min(process->begin_ns(), found->start_ns) : found->start_ns;
}

ProcessIndex Definitions::find_process(uint32_t process_id) const {
  const auto found = process_by_id_.find(process_id);
  return found == process_by_id_.end() ? kNoIndex : found->second;
}

ThreadIndex Definitions::find_thread(uint32_t writer) const {
  const auto found = thread_by_writer_.find(writer);
  return found == thread_by_writer_.end() ? kNoIndex : found->second;
}

ProcessIndex Definitions::inherited_from(ProcessIndex index) const {
  const Process* child = process(index);
  if (child == nullptr || child->origin != ARCTRACE_ORIGIN_FORK) return kNoIndex;
  return find_process(child->parent_id);
}

std::optional<std::string_view> Definitions::name(ProcessIndex process,
                                                  uint32_t id) const {
  if (id == kCallFilterNameId) return std::nullopt;
  return text_of(process, id);
}

std::optional<std::string_view> Definitions::text_of(ProcessIndex process,
                                                     uint32_t id) const {
  for (int depth = 0; process < scopes_.size() && depth < kForkDepthMax; ++depth) {
    const auto& names = scopes_[process].names;
    if (const auto found = names.find(id); found != names.end()) return found->second;
    process = inherited_from(process);
  }
  return std::nullopt;
}

const EventLayout* Definitions::layout(ProcessIndex process, uint32_t event_id) const {
  for (int depth = 0; process < scopes_.size() && depth < kForkDepthMax; ++depth) {
    const auto& layouts = scopes_[process].layouts;
    if (const auto found = layouts.find(event_id); found != layouts.end()) {
      return &found->second;
    }
    process = inherited_from(process);
  }
  return nullptr;
}

std::vector<std::string> Definitions::call_filter(ProcessIndex process) const {
  return filter_entries(text_of(process, kCallFilterNameId).value_or(std::string_view()));
}

std::vector<std::string_view> Definitions::names(ProcessIndex process) const {
  std::vector<std::string_view> found;
  if (process >= scopes_.size()) return found;
  for (const auto& [id, name] : scopes_[process].names) {
    if (id != kCallFilterNameId) found.push_back(name);
  }
  return found;
}

std::vector<const EventLayout*> Definitions::layouts(ProcessIndex process) const {
  std::vector<const EventLayout*> found;
  if (process >= scopes_.size()) return found;
  for (const auto& [id, layout] : scopes_[process].layouts) found.push_back(&layout);
  return found;
}

const Module* Definitions::module_at(ProcessIndex process, uint64_t address,
                                     int64_t time_ns) const {
  for (int depth = 0; process < processes_.size() && depth < kForkDepthMax; ++depth) {
    const Module* found = own_module_at(process, address, time_ns);
    if (found != nullptr) return found;
    // Modules that the child did not define again are as they were in the parent at the
    // fork.
    time_ns = std::min(time_ns, processes_[process].start_ns);
    process = inherited_from(process);
  }
  return nullptr;
}

const Module* Definitions::own_module_at(ProcessIndex process, uint64_t address,
                                         int64_t time_ns) const {
  index_modules(process);
  const std::vector<Module>& modules = processes_[process].modules;
  const Scope& scope = scopes_[process];
  const auto& order = scope.by_start;
  const Module* later = nullptr;
  // The search takes one step for each distinct start at or below the address, from the
  // highest down, until no module before it reaches the address.
  auto end = std::upper_bound(
      order.begin(), order.end(), address,
      [&](uint64_t wanted, uint32_t index) { return wanted < modules[index].start; });
  while (end != order.begin() &&
         scope.max_end[size_t(end - order.begin()) - 1] > address) {
    const uint64_t start = modules[*(end - 1)].start;
    const auto begin = std::lower_bound(
        order.begin(), end, start,
        [&](uint32_t index, uint64_t wanted) { return modules[index].start < wanted; });
    const auto next =
        std::upper_bound(begin, end, time_ns, [&](int64_t wanted, uint32_t index) {
          return wanted < modules[index].loaded_ns;
        });
    if (next != begin) {
      const Module& module = modules[*(next - 1)];
      if (address < module.end && in_force(module, time_ns)) return &module;
    }
    const auto covering = std::find_if(
        next, end, [&](uint32_t index) { return address < modules[index].end; });
    if (covering != end &&
        (later == nullptr || modules[*covering].loaded_ns < later->loaded_ns)) {
      later = &modules[*covering];
    }
    end = begin;
  }
  return later;
}

void Definitions::index_modules(ProcessIndex process) const {
  const std::vector<Module>& modules = processes_[process].modules;
  Scope& scope = scopes_[process];
  if (scope.by_start.size() == modules.size()) return;
  scope.by_start.resize(modules.size());
  for (size_t i = 0; i < modules.size(); ++i) scope.by_start[i] = uint32_t(i);
  std::sort(scope.by_start.begin(), scope.by_start.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(modules[a].start, modules[a].loaded_ns, a) <
           std::tie(modules[b].start, modules[b].loaded_ns, b);
  });
  scope.max_end.clear();
  uint64_t max_end = 0;
  for (const uint32_t index : scope.by_start) {
    max_end = std::max(max_end, modules[index].end);
    scope.max_end.push_back(max_end);
  }
}

std::string_view Definitions::thread_name(ThreadIndex index, int64_t time_ns) const {
  const Thread* found = thread(index);
  if (found == nullptr || found->names.empty()) return {};
  const auto next = std::upper_bound(
      found->names.begin(), found->names.end(), time_ns,
      [](int64_t wanted, const ThreadName& name) { return wanted < name.since_ns; });
  return next == found->names.begin() ? next->name : (next - 1)->name;
}

ProcessIndex Definitions::add_process(Process process) {
  const auto [entry, added] =
      process_by_id_.try_emplace(process.id, ProcessIndex(processes_.size()));
  if (added) {
    processes_.push_back(std::move(process));
    scopes_.emplace_back();
  }
  return entry->second;
}

ThreadIndex Definitions::add_thread(Thread thread) {
  const auto [entry, added] =
      thread_by_writer_.try_emplace(thread.writer, ThreadIndex(threads_.size()));
  if (added) threads_.push_back(std::move(thread));
  return entry->second;
}

Process* Definitions::mutable_process(ProcessIndex index) {
  return index < processes_.size() ? &processes_[index] : nullptr;
}

Thread* Definitions::mutable_thread(ThreadIndex index) {
  return index < threads_.size() ? &threads_[index] : nullptr;
}

bool Definitions::add_name(ProcessIndex process, uint32_t id, std::string text) {
  if (process >= scopes_.size()) return false;
  const auto [entry, added] = scopes_[process].names.try_emplace(id, text);
  return added || entry->second == text;
}

bool Definitions::add_layout(ProcessIndex process, EventLayout layout) {
  if (process >= scopes_.size()) return false;
  const auto [entry, added] = scopes_[process].layouts.try_emplace(layout.id, layout);
  return added || entry->second == layout;
}

void Definitions::add_module(ProcessIndex process, Module module) {
  if (process >= processes_.size()) return;
  std::vector<Module>& modules = processes_[process].modules;
  // Two threads of a process may write the same definition, one of them late.
  auto [reported, is_new] = scopes_[process].reported.try_emplace(module.start);
  if (!is_new && module.loaded_ns <= reported->second.loaded_ns) return;
  reported->second.loaded_ns = module.loaded_ns;
  auto& loaded = scopes_[process].loaded;
  auto next = loaded.lower_bound(module.start);
  if (next != loaded.end() && next->first == module.start) {
    const Module& there = modules[next->second];
    if (there.end == module.end && there.bias == module.bias &&
        there.path == module.path && there.build_id == module.build_id) {
      return;  // the module was defined again
    }
  }
  if (next != loaded.begin() && modules[std::prev(next)->second].end > module.start) {
    --next;
  }
  while (next != loaded.end() && next->first < module.end) {
    modules[next->second].unloaded_ns = module.loaded_ns;
    next = loaded.erase(next);
  }
  loaded.emplace(module.start, modules.size());
  modules.push_back(std::move(module));
}

void Definitions::set_hook_kind(ProcessIndex process, uint64_t address, int64_t time_ns,
                                uint32_t kind) {
  if (process >= processes_.size()) return;
  const Module* found = own_module_at(process, address, time_ns);
  if (found == nullptr || found->loaded_ns > time_ns || found->hook_kind != 0) return;
  Process& owner = processes_[process];
  owner.modules[static_cast<size_t>(found - owner.modules.data())].hook_kind = kind;
  owner.has_hook_kinds = true;
}

bool Definitions::end_module(ProcessIndex process, uint64_t start, int64_t time_ns) {
  if (process >= processes_.size()) return false;
  const auto reported = scopes_[process].reported.find(start);
  if (reported == scopes_[process].reported.end()) return false;
  if (time_ns <= reported->second.gone_ns) return true;  // the end was recorded again
  reported->second.gone_ns = time_ns;
  auto& loaded = scopes_[process].loaded;
  const auto found = loaded.find(start);
  if (found == loaded.end()) return false;
  processes_[process].modules[found->second].unloaded_ns = time_ns;
  loaded.erase(found);
  return true;
}

}  // namespace arctrace::reader
