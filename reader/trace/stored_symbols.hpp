// The names of functions that a trace file has itself (SPEC.md FILE-6), so that it can be
// read on machines without the programs.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/trace/record.hpp"

namespace arctrace::reader {

// A function that includes an address. All texts are raw bytes of the trace.
struct StoredFunction {
  uint64_t start = 0;  // file address
  std::string name;    // the linker's
  std::string file;    // the source file of the address; empty: not known
  uint32_t line = 0;
};

// The stored symbols of a trace. Look-ups take constant time. Not thread-safe.
class StoredSymbols {
 public:
  static constexpr size_t kChunkBytesMax = size_t{16} << 20;
  // The largest size of all chunks together.
  static constexpr size_t kBytesMax = size_t{256} << 20;

  // Adds the symbols in the payload of a SYMBOLS chunk, up to the first error. Returns
  // false if its counts and sizes are not those of its bytes.
  bool add_untrusted(std::span<const std::byte> payload);

  // Returns the function at a file address of the module with this build-id, or if it has
  // none, this path. nullptr: not stored. Valid until more is added.
  const StoredFunction* find(const std::string& path, std::span<const std::byte> build_id,
                             uint64_t address) const {
    const Module* in = modules_.empty() ? nullptr : module(path, build_id);
    if (in == nullptr) return nullptr;
    const auto found = in->functions.find(address);
    return found == in->functions.end() ? nullptr : &found->second;
  }

  // Returns the module's function that prepares Ada's packages; nullptr: not stored.
  const StoredFunction* find_ada_init(const std::string& path,
                                      std::span<const std::byte> build_id) const {
    const Module* in = modules_.empty() ? nullptr : module(path, build_id);
    return in == nullptr || !in->ada_init ? nullptr : &*in->ada_init;
  }

  // Whether the module offers the function with the linker's name `name` to others;
  // nullopt: not stored of any module.
  std::optional<bool> exports(const std::string& path,
                              std::span<const std::byte> build_id,
                              std::string_view name) const {
    const absl::string_view wanted(name.data(), name.size());
    if (!exported_.contains(wanted)) return std::nullopt;
    const Module* in = module(path, build_id);
    return in != nullptr && in->exports.contains(wanted);
  }

  size_t functions() const { return functions_; }
  size_t modules() const { return modules_.size(); }
  // Whether only some addresses of the file were looked up when the symbols were written.
  bool is_partial() const { return is_partial_; }

 private:
  struct Module {
    absl::flat_hash_map<uint64_t, StoredFunction> functions;  // by address
    absl::flat_hash_set<std::string> exports;
    std::optional<StoredFunction> ada_init;
  };
  // A build-id identifies a file wherever that stands.
  static std::string key_of(const std::string& path,
                            std::span<const std::byte> build_id) {
    if (build_id.empty()) return "p" + path;
    return std::string("b").append(as_text(build_id));
  }
  const Module* module(const std::string& path,
                       std::span<const std::byte> build_id) const {
    const auto found = modules_.find(key_of(path, build_id));
    return found == modules_.end() ? nullptr : &found->second;
  }

  absl::flat_hash_map<std::string, Module> modules_;
  absl::flat_hash_set<std::string> exported_;  // by any module
  size_t functions_ = 0;
  bool is_partial_ = false;
};

// The symbols of one module that are written into a SYMBOLS chunk.
struct ModuleSymbols {
  std::string path;
  std::vector<std::byte> build_id;
  std::vector<std::pair<uint64_t, StoredFunction>> functions;  // by address
  std::vector<std::string> exports;
};

// Returns the payloads of the SYMBOLS chunks that have these modules: none if there is
// nothing to store. `flags`: ARCTRACE_SYMBOLS_*. A name of more than 64 KiB is left out.
std::vector<std::vector<std::byte>> encode_symbols(std::span<const ModuleSymbols> modules,
                                                   uint32_t flags);

}  // namespace arctrace::reader
