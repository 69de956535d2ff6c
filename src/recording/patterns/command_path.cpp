#include "src/recording/patterns/command_path.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace arctrace::recording {

std::string find_program(const std::string& command) {
  if (command.find('/') != std::string::npos) return command;
  const char* path = std::getenv("PATH");
  for (const absl::string_view directory :
       absl::StrSplit(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    std::string file = absl::StrCat(directory.empty() ? "." : directory, "/", command);
    struct stat status {};
    if (stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

}  // namespace arctrace::recording
