// The package that has debug symbols of an installed file.
#pragma once

#include <string>

namespace arctrace::reader {

// Where dpkg keeps a list of the files of each installed package: PACKAGE.list.
inline constexpr const char* kPackageLists = "/var/lib/dpkg/info";

// Returns the name of the package with debug symbols of the file at `path`, such as
// "git-dbgsym" for /usr/bin/git. Empty: no package of Debian or its kin has the file.
// Reads all lists, which takes some hundredths of a second.
std::string debug_package_of(const std::string& path,
                             const std::string& lists = kPackageLists);

}  // namespace arctrace::reader
