#include "reader/cli/record/trace_owner.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace arctrace::cli {

std::unique_ptr<ActingWithRights> act_as_owner(const std::string& path) {
  struct stat status {};
  if (geteuid() != 0 || stat(path.c_str(), &status) != 0 || status.st_uid == 0) {
    return nullptr;
  }
  return std::make_unique<ActingWithRights>(rights_of_user(status.st_uid));
}

}  // namespace arctrace::cli
