#include "reader/symbols/debug_package.hpp"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

namespace arctrace::reader {
namespace {

// Where /bin and /lib are links into /usr, a package may list a file by either path.
std::vector<std::string> listed_paths(const std::string& path) {
  std::vector<std::string> paths = {path};
  if (path.starts_with("/usr/")) paths.push_back(path.substr(sizeof "/usr" - 1));
  if (path.starts_with("/lib") || path.starts_with("/bin/") ||
      path.starts_with("/sbin/")) {
    paths.push_back("/usr" + path);
  }
  return paths;
}

bool has_line(const std::string& list, const std::string& line) {
  const std::string with_ends = absl::StrCat("\n", line, "\n");
  return list.find(with_ends) != std::string::npos ||
         list.starts_with(std::string_view(with_ends).substr(1));
}

}  // namespace

std::string debug_package_of(const std::string& path, const std::string& lists) {
  const std::vector<std::string> paths = listed_paths(path);
  std::error_code error;
  std::filesystem::directory_iterator at(lists, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::filesystem::path& file = at->path();
    if (file.extension() != ".list") continue;
    std::ifstream stream(file, std::ios::binary);
    const std::string list{std::istreambuf_iterator<char>(stream), {}};
    for (const std::string& listed : paths) {
      if (!has_line(list, listed)) continue;
      const std::string stem = file.stem().string();
      const std::string package = stem.substr(0, stem.find(':'));  // "libc6:amd64"
      // glibc's has had its name since before there were automatic ones.
      return absl::StrCat(package, package == "libc6" ? "-dbg" : "-dbgsym");
    }
  }
  return {};
}

}  // namespace arctrace::reader
