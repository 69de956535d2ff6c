// Makes and checks the user's directory of sessions, and finds sessions in it.
#include "src/recorder/buffer/session_directory.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "src/base/near_names.hpp"
#include "src/recorder/buffer/available_memory.hpp"
#include "src/recorder/buffer/map_memory.hpp"

namespace arctrace::recorder {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameMax = 64;

std::string prefix() { return absl::StrCat("arctrace-", geteuid()); }
std::string directory() { return absl::StrCat(kBufferDirectory, "/", prefix()); }

// Other users may search the directory, for a session that is shared with them, but must
// not write to it.
absl::Status check_directory(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " is not a directory that only we can write to"));
  }
  return absl::OkStatus();
}

// The path of the buffer to which a name in the user's directory leads: the link's target
// if it is a link to one of the user's maps, as name_session() makes them. Other links
// are not followed.
std::string buffer_path(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  const bool is_map = !error && target.parent_path() == kMapDirectory &&
                      absl::StartsWith(target.filename().native(), prefix() + "-");
  return is_map ? target.native() : path;
}

void add_session(std::vector<FoundSession>& found, const std::string& name,
                 const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const bool is_found =
      std::any_of(found.begin(), found.end(),
                  [&](const FoundSession& other) { return other.path == path; });
  if (!is_found) found.push_back({name, path, status.st_uid});
}

absl::Status no_session(const std::string& name) {
  std::vector<std::string> names;
  for (FoundSession& session : find_sessions()) {
    if (is_session_name(session.name)) names.push_back(std::move(session.name));
  }
  return absl::NotFoundError(absl::StrCat("no session ", name, near_names(name, names)));
}

}  // namespace

bool is_session_name(const std::string& text) {
  const auto allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kNameMax && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), allowed);
}

absl::StatusOr<std::string> session_file(const std::string& name, bool create) {
  if (name.find('/') != std::string::npos) return name;
  if (!is_session_name(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" is not a session's name: letters, digits, . _ -, at most 64"));
  }
  const std::string path = directory();
  if (create && mkdir(path.c_str(), 0711) != 0 && errno != EEXIST) {
    return explain_directory(errno, 0, kBufferDirectory);
  }
  if (absl::Status status = check_directory(path); !status.ok()) {
    if (absl::IsNotFound(status)) {
      return no_session(name);
    }
    return status;
  }
  const std::string file = absl::StrCat(path, "/", name);
  std::string buffer = buffer_path(file);
  std::error_code error;
  if (create && buffer != file && !fs::exists(buffer, error)) {
    unlink(file.c_str());  // its target was lost, with the kernel's memory
    return file;
  }
  return buffer;
}

absl::Status name_session(const std::string& name, const std::string& path) {
  const std::string link = absl::StrCat(directory(), "/", name);
  if (symlink(path.c_str(), link.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("creating ", link));
}

absl::Status remove_session(const std::string& name, const std::string& path) {
  if (unlink(path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("removing ", path));
  }
  const std::string link = absl::StrCat(directory(), "/", name);
  std::error_code error;
  if (is_session_name(name) && fs::is_symlink(link, error)) unlink(link.c_str());
  return absl::OkStatus();
}

absl::StatusOr<Buffer> open_session(const std::string& name) {
  const absl::StatusOr<std::string> path = session_file(name);
  if (!path.ok()) return path.status();
  absl::StatusOr<Buffer> buffer = Buffer::open(*path);
  return absl::IsNotFound(buffer.status()) ? no_session(name) : std::move(buffer);
}

std::string file_or_session(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error) || path.find('/') != std::string::npos) return path;
  const absl::StatusOr<std::string> session = session_file(path);
  return session.ok() && fs::exists(*session, error) ? *session : path;
}

absl::StatusOr<std::string> find_session(const std::string& name) {
  std::string path = file_or_session(name);
  std::error_code error;
  if (is_session_name(name) && !fs::exists(path, error)) return no_session(name);
  return path;
}

bool is_session_path(const std::string& path) {
  const std::vector<FoundSession> found = find_sessions();
  return std::any_of(found.begin(), found.end(), [&](const FoundSession& session) {
    return session.path == path && session.user == geteuid();
  });
}

std::vector<FoundSession> find_sessions() {
  std::vector<FoundSession> found;
  std::error_code error;
  if (check_directory(directory()).ok()) {
    for (fs::directory_iterator at(directory(), error), end; !error && at != end;
         at.increment(error)) {
      add_session(found, at->path().filename(), buffer_path(at->path()));
    }
  }
  const std::string own = prefix() + "-";
  for (const char* parent : {kBufferDirectory, kMapDirectory}) {
    for (fs::directory_iterator at(parent, error), end; !error && at != end;
         at.increment(error)) {
      if (absl::StartsWith(at->path().filename().native(), own)) {
        add_session(found, at->path(), at->path());
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FoundSession& a, const FoundSession& b) { return a.name < b.name; });
  return found;
}

}  // namespace arctrace::recorder
