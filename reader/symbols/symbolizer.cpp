#include "reader/symbols/symbolizer.hpp"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include "reader/symbols/demangle.hpp"
#include "reader/trace/definitions.hpp"

namespace arctrace::reader {

Symbolizer::Symbolizer(SymbolOptions options)
    : other_roots_(options.other_roots), debug_files_(std::move(options)) {}

ResolvedAddress Symbolizer::resolve(const std::string& path, const BuildId& build_id,
                                    uint64_t address, WithSource with_source) {
  Loaded& module = loaded(path, build_id);
  ResolvedAddress resolved;
  if (!module.file) return resolved;
  if (const auto function = module.file->functions().find(address)) {
    auto [name, is_new] = module.display_names.try_emplace(function->start);
    if (is_new) {
      name->second = demangle_untrusted(std::string(function->name), shows_ada(module));
    }
    resolved.function = name->second;
    resolved.start = function->start;
  }
  if (with_source == WithSource::kYes) {
    resolved.source = module.file->find_line(address);
  }
  return resolved;
}

ResolvedAddress Symbolizer::resolve(const StoredSymbols& stored, const std::string& path,
                                    const BuildId& build_id, uint64_t address,
                                    WithSource with_source) {
  const StoredFunction* function = stored.find(path, build_id, address);
  if (function == nullptr || function->name.empty()) {
    return resolve(path, build_id, address, with_source);
  }
  ResolvedAddress resolved;
  const ShowsAda ada =
      stored.find_ada_init(path, build_id) == nullptr ? ShowsAda::kNo : ShowsAda::kYes;
  auto& names = ada == ShowsAda::kYes ? stored_ada_names_ : stored_names_;
  auto [name, is_new] = names.try_emplace(function->name);
  if (is_new) name->second = demangle_untrusted(function->name, ada);
  resolved.function = name->second;
  resolved.start = function->start;
  if (with_source == WithSource::kNo) return resolved;
  if (function->line != 0) {
    resolved.source = SourceLine{function->file, function->line};
  } else {
    resolved.source = resolve(path, build_id, address, with_source).source;
  }
  return resolved;
}

std::optional<FunctionSymbol> Symbolizer::find_symbol(const std::string& path,
                                                      const BuildId& build_id,
                                                      uint64_t address) {
  const Loaded& module = loaded(path, build_id);
  return module.file ? module.file->functions().find(address) : std::nullopt;
}

std::optional<FunctionSymbol> Symbolizer::find_ada_init(const std::string& path,
                                                        const BuildId& build_id) {
  const Loaded& module = loaded(path, build_id);
  return module.file ? module.file->functions().find_named(kAdaInit) : std::nullopt;
}

// Searches when it is first asked, because few names depend on it.
ShowsAda Symbolizer::shows_ada(Loaded& module) {
  if (!module.ada.has_value()) {
    module.ada =
        module.file->functions().find_named(kAdaInit) ? ShowsAda::kYes : ShowsAda::kNo;
  }
  return *module.ada;
}

bool Symbolizer::exports(const StoredSymbols& stored, const std::string& path,
                         const BuildId& build_id, std::string_view name) {
  const std::optional<bool> known = stored.exports(path, build_id, name);
  return known ? *known : exports(path, build_id, name);
}

Symbolizer::Loaded& Symbolizer::loaded(const std::string& path, const BuildId& build_id) {
  std::unique_ptr<Loaded>& module = loaded_[{path, build_id}];
  if (module == nullptr) module = std::make_unique<Loaded>(load(path, build_id));
  return *module;
}

bool Symbolizer::exports(const std::string& path, const BuildId& build_id,
                         std::string_view name) {
  const auto [names, is_new] = exports_.try_emplace({path, build_id});
  if (is_new && path.starts_with('/')) {
    const absl::StatusOr<ElfFile> elf = ElfFile::open_untrusted(path);
    if (elf.ok() && (build_id.empty() || build_id == elf->build_id())) {
      for (std::string& exported : elf->exported_functions()) {
        names->second.insert(std::move(exported));
      }
    }
  }
  return names->second.contains(absl::string_view(name.data(), name.size()));
}

absl::StatusOr<SymbolFile> Symbolizer::open_module(const std::string& path,
                                                   const BuildId& build_id) const {
  absl::StatusOr<SymbolFile> file =
      SymbolFile::open_untrusted(path, build_id, debug_files_);
  for (const std::string& root : other_roots_) {
    if (file.ok()) break;
    auto elsewhere = SymbolFile::open_untrusted(root + path, build_id, debug_files_);
    if (elsewhere.ok()) return elsewhere;
  }
  return file;
}

Symbolizer::Loaded Symbolizer::load(const std::string& path, const BuildId& build_id) {
  // A recorded path that is not absolute, such as "[vdso]", names no file of this
  // machine.
  absl::StatusOr<SymbolFile> file =
      path.starts_with('/')
          ? open_module(path, build_id)
          : absl::StatusOr<SymbolFile>(absl::NotFoundError(path + ": not a file"));
  Loaded loaded;
  if (file.ok()) {
    loaded.file.emplace(*std::move(file));
    return loaded;
  }
  std::string finding(file.status().message());
  if (const auto debug = find_debug_file(build_id)) {
    auto substitute = SymbolFile::open_untrusted(debug->path, build_id, debug_files_);
    if (substitute.ok()) {
      loaded.file.emplace(*std::move(substitute));
      finding += "; names are from " + debug->path;
    }
  }
  // The moved instructions of patched functions have no symbols that could be missed.
  if (path != kPatchImagePath) findings_.push_back(std::move(finding));
  return loaded;
}

std::optional<DebugFile> Symbolizer::find_debug_file(const BuildId& build_id) const {
  if (auto file = debug_files_.find_by_build_id_untrusted(build_id)) return file;
  return debug_files_.download_untrusted(build_id);
}

}  // namespace arctrace::reader
