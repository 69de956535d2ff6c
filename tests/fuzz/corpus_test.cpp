// Runs each target, without a fuzzer, on the files of its folder in the corpus: inputs
// that broke something once must never do so again.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/targets.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
    return 2;
  }
  for (const arctrace::fuzz::Target& target : arctrace::fuzz::kTargets) {
    int files = 0;
    const auto folder = std::filesystem::path(argv[1]) / target.name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);  // if it does not come back
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
      target.run(std::as_bytes(std::span(bytes)));
      ++files;
    }
    if (files == 0) {
      std::fprintf(stderr, "%s is empty\n", folder.c_str());
      return 1;
    }
  }
  return 0;
}
