#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "reader/symbols/debug_files.hpp"

namespace arctrace::reader {
namespace {

// The library is loaded when it is first needed: linking it would load an HTTP client
// with some thirty libraries at each start of the reader. These are functions of its ABI,
// version 1.
struct Library {
  using Begin = void* (*)();
  using End = void (*)(void* client);
  using FindDebuginfo = int (*)(void* client, const unsigned char* build_id, int size,
                                char** path);

  Begin begin = nullptr;
  End end = nullptr;
  FindDebuginfo find_debuginfo = nullptr;

  Library() {
    // The library is never closed, because its HTTP client has global state.
    void* handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
    begin = reinterpret_cast<Begin>(dlsym(handle, "debuginfod_begin"));
    end = reinterpret_cast<End>(dlsym(handle, "debuginfod_end"));
    find_debuginfo =
        reinterpret_cast<FindDebuginfo>(dlsym(handle, "debuginfod_find_debuginfo"));
  }
  bool complete() const {
    return begin != nullptr && end != nullptr && find_debuginfo != nullptr;
  }
};

}  // namespace

std::optional<std::string> download_debug_file(const BuildId& build_id) {
  if (std::getenv("DEBUGINFOD_URLS") == nullptr) return std::nullopt;
  static const Library library;
  if (!library.complete()) return std::nullopt;
  const std::unique_ptr<void, Library::End> client(library.begin(), library.end);
  if (client == nullptr) return std::nullopt;
  char* path = nullptr;
  const int fd = library.find_debuginfo(
      client.get(), reinterpret_cast<const unsigned char*>(build_id.data()),
      static_cast<int>(build_id.size()), &path);
  if (fd < 0) return std::nullopt;
  close(fd);
  const std::unique_ptr<char, decltype(&std::free)> owned(path, &std::free);
  return std::string(owned.get());
}

}  // namespace arctrace::reader
