// Finds the function of a frame key: by the symbols of a module, by the names that the
// trace has, or in the code that its process generated.
#include "reader/replay/resolver.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/symbols/demangle.hpp"
#include "reader/symbols/symbolizer.hpp"

namespace arctrace::reader {
namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Returns when the modules of a process next change after `time_ns`.
int64_t next_change_ns(const Process& process, int64_t time_ns) {
  int64_t next = INT64_MAX;
  for (const Module& module : process.modules) {
    if (module.loaded_ns > time_ns) next = std::min(next, module.loaded_ns);
    if (module.unloaded_ns > time_ns) next = std::min(next, module.unloaded_ns);
  }
  return next;
}

}  // namespace

FunctionResolver::FunctionResolver(const Definitions& definitions, Symbolizer* symbolizer)
    : definitions_(definitions), symbolizer_(symbolizer) {
  caches_.resize(definitions.processes().size() + 1);
}

FunctionResolver::Cache& FunctionResolver::cache_of(ProcessIndex process) {
  // kNoIndex + 1 is 0. The index is bounded, because definitions may have grown.
  const size_t index = process + 1u < caches_.size() ? process + 1u : 0;
  std::unique_ptr<Cache>& cache = caches_[index];
  if (cache == nullptr) cache = std::make_unique<Cache>();
  return *cache;
}

std::optional<FunctionId> FunctionResolver::known(ProcessIndex process,
                                                  uint64_t key) const {
  if (process + 1u >= caches_.size() || caches_[process + 1u] == nullptr) {
    return std::nullopt;
  }
  const auto& all = caches_[process + 1u]->all;
  const auto found = all.find(key);
  return found == all.end() ? std::nullopt : std::optional(found->second.function);
}

FunctionId FunctionResolver::resolve_uncached(Cache& cache, ProcessIndex process,
                                              uint64_t key, int64_t time_ns) {
  Entry& entry = cache.all[key];
  if (time_ns >= entry.valid_until_ns) {
    if ((key & ARCTRACE_FRAME_NAME_BIT) != 0) {
      entry = find_name(process, key, time_ns);
    } else {
      entry = find_address(cache, process, key, time_ns);
    }
  }
  cache.recent[slot_of(key)] = entry;
  return entry.function;
}

FunctionResolver::Entry FunctionResolver::find_name(ProcessIndex process, uint64_t key,
                                                    int64_t time_ns) {
  const auto id = static_cast<uint32_t>(key);
  const auto name = definitions_.name(process, id);
  // The empty name stands for roots.
  if (!name || name->empty()) {
    return {key, INT64_MAX, functions_.intern({}, absl::StrCat("name#", id), {})};
  }
  const std::string shown = demangle_untrusted(std::string(*name));
  const Process* owner = definitions_.process(process);
  if (owner == nullptr || (key & ARCTRACE_FRAME_LIBRARY_BIT) == 0) {
    return {key, INT64_MAX, functions_.intern({}, shown, {})};
  }
  const Module* module = find_exporter(process, *name, time_ns);
  if (module == nullptr) {
    return {key, next_change_ns(*owner, time_ns), functions_.intern({}, shown, {})};
  }
  // A fork child may have been as its parent, until it defines modules itself.
  const bool is_child = owner->origin == ARCTRACE_ORIGIN_FORK;
  const int64_t until = is_child ? next_change_ns(*owner, time_ns) : INT64_MAX;
  return {key, std::min(module->unloaded_ns, until),
          functions_.intern(module->path, shown, {})};
}

// Searches as the loader does: the first module, in the order in which they were loaded.
// The shim is skipped: a call of a function that it interposes is still the program's
// call of the function in the library. What a fork child has not defined itself is as it
// was in its parent at the fork: the frames that it inherits are older than its modules.
const Module* FunctionResolver::find_exporter(ProcessIndex process, std::string_view name,
                                              int64_t time_ns) {
  if (symbolizer_ == nullptr) return nullptr;
  for (int depth = 0; depth < Definitions::kForkDepthMax; ++depth) {
    const Process* owner = definitions_.process(process);
    if (owner == nullptr) break;
    for (const Module& module : owner->modules) {
      if (module.loaded_ns > time_ns || time_ns >= module.unloaded_ns) continue;
      if (base_name(module.path) == "libarctrace-shim.so") continue;
      if (symbolizer_->exports(definitions_.symbols(), module.path, module.build_id,
                               name))
        return &module;
    }
    time_ns = std::min(time_ns, owner->start_ns);
    process = definitions_.inherited_from(process);
  }
  return nullptr;
}

FunctionResolver::Entry FunctionResolver::find_address(Cache& cache, ProcessIndex process,
                                                       uint64_t address,
                                                       int64_t time_ns) {
  const Module* module = definitions_.module_at(process, address, time_ns);
  if (module == nullptr) return find_generated(cache, process, address, time_ns);
  const uint64_t file_address = address - module->bias;
  std::string_view name;
  if (symbolizer_ != nullptr) {
    name = symbolizer_
               ->resolve(definitions_.symbols(), module->path, module->build_id,
                         file_address)
               .function;
  }
  const CodeLocation location{module, address};
  const std::string path = module->path.empty() ? "[anonymous]" : module->path;
  if (!name.empty()) {
    return {address, module->unloaded_ns, functions_.intern(path, name, location)};
  }
  const std::string offset =
      absl::StrCat(base_name(path), "+0x", absl::Hex(file_address));
  return {address, module->unloaded_ns, functions_.intern(path, offset, location)};
}

FunctionResolver::Entry FunctionResolver::find_generated(Cache& cache,
                                                         ProcessIndex process,
                                                         uint64_t address,
                                                         int64_t time_ns) {
  const Process* owner = definitions_.process(process);
  if (!cache.code) cache.code.emplace(definitions_, process);
  const GeneratedCode::Found found = cache.code->find(address, time_ns);
  const int64_t until = owner == nullptr
                            ? INT64_MAX
                            : std::min(next_change_ns(*owner, time_ns), found.until_ns);
  if (found.code == nullptr || found.code->name.empty()) {
    const std::string name = absl::StrCat("0x", absl::Hex(address));
    return {address, until, functions_.intern({}, name, {})};
  }
  return {address, until,
          functions_.intern(kGeneratedModule, demangle_untrusted(found.code->name), {})};
}

std::string FunctionResolver::source_line(FunctionId function) {
  const CodeLocation& location = functions_[function].location;
  if (location.module == nullptr || symbolizer_ == nullptr) return {};
  const ResolvedAddress found = symbolizer_->resolve(
      definitions_.symbols(), location.module->path, location.module->build_id,
      location.address - location.module->bias, WithSource::kYes);
  if (!found.source.has_value()) return {};
  return absl::StrCat(found.source->file, ":", found.source->line);
}

namespace {

bool is_earlier(const Code* a, const Code* b) { return a->since_ns < b->since_ns; }

}  // namespace

// ---- Generated code ---------------------------------------------------------------

// A fork child inherits the code that its parent had at the fork; it comes before the
// child's own.
GeneratedCode::GeneratedCode(const Definitions& definitions, ProcessIndex process) {
  std::vector<std::vector<const Code*>> generations;  // the process itself is the first
  int64_t until_ns = INT64_MAX;
  for (int depth = 0; depth < Definitions::kForkDepthMax; ++depth) {
    const Process* owner = definitions.process(process);
    if (owner == nullptr) break;
    std::vector<const Code*>& own = generations.emplace_back();
    for (const Code& code : owner->code) {
      if (code.since_ns <= until_ns) own.push_back(&code);
    }
    std::stable_sort(own.begin(), own.end(), is_earlier);
    until_ns = std::min(until_ns, owner->start_ns);
    process = definitions.inherited_from(process);
  }
  for (auto own = generations.rbegin(); own != generations.rend(); ++own) {
    ordered_.insert(ordered_.end(), own->begin(), own->end());
  }
  for (auto code = ordered_.rbegin(); code != ordered_.rend(); ++code)
    put(first_, **code);
}

GeneratedCode::Found GeneratedCode::find(uint64_t address, int64_t time_ns) {
  while (done_ < ordered_.size() && ordered_[done_]->since_ns <= time_ns) {
    put(now_, *ordered_[done_++]);
  }
  Found found;
  if (done_ < ordered_.size()) found.until_ns = ordered_[done_]->since_ns;
  found.code = at(now_, address);
  if (found.code == nullptr) found.code = at(first_, address);
  return found;
}

// Replaces the pieces that `code` overlaps; the parts of them on either side of it stay.
void GeneratedCode::put(Pieces& pieces, const Code& code) {
  auto next = pieces.lower_bound(code.start);
  if (next != pieces.begin()) {
    const auto before = std::prev(next);
    const Piece cut = before->second;
    if (cut.end > code.start) {
      before->second.end = code.start;
      if (cut.end > code.end) pieces.emplace(code.end, cut);
    }
  }
  next = pieces.lower_bound(code.start);
  while (next != pieces.end() && next->first < code.end) {
    const Piece cut = next->second;
    next = pieces.erase(next);
    if (cut.end > code.end) {
      pieces.emplace(code.end, cut);
      break;
    }
  }
  pieces.emplace(code.start, Piece{code.end, &code});
}

const Code* GeneratedCode::at(const Pieces& pieces, uint64_t address) {
  const auto next = pieces.upper_bound(address);
  if (next == pieces.begin()) return nullptr;
  const Piece& piece = std::prev(next)->second;
  return address < piece.end ? piece.code : nullptr;
}

}  // namespace arctrace::reader
