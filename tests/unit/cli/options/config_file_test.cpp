// The configuration file: its syntax, its errors, and how the command line overrides it.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "reader/cli/options/command_line.hpp"
#include "reader/cli/options/help_layout.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/cli/options/parsed.hpp"

namespace arctrace::cli {
namespace {

// A command line like that of arctrace, and a file of options.
class Configured {
 public:
  explicit Configured(const std::string& text) : path_(directory_.path("config")) {
    std::ofstream(path_) << text;
    app_.name("arctrace");
    app_.set_config("--config", path_);
    app_.config_formatter(config_);
    app_.allow_config_extras(CLI::config_extras_mode::error);
    app_.fallthrough();
    CLI::App* record = app_.add_subcommand("record");
    record->add_option("--slots", slots)->check(CLI::Range(1, 100));
    record->add_option("--output", output)->group(kBufferGroup);
    record->add_option("--session", session);
    record->add_option("--notrace", notrace);
    CLI::Option* libcall = record->add_flag("--libcall", has_libcall);
    record->add_flag("--no-libcall", has_no_libcall)->excludes(libcall);
    app_.add_subcommand("list");
  }

  // The error, without the path of the file.
  std::string parse(std::vector<std::string> arguments) {
    std::string error = testing::parse_error(app_, std::move(arguments));
    if (const size_t at = error.find(path_); at != std::string::npos) {
      error.erase(at, path_.size());
    }
    return error;
  }
  std::string line_of(const std::string& name) const {
    const std::string line = config_->line_of("record", name);
    return line.empty() ? line : line.substr(path_.size());
  }

  const std::string& path() const { return path_; }

  int slots = 0;
  std::string output, session;
  std::vector<std::string> notrace;
  bool has_libcall = false, has_no_libcall = false;

 private:
  testing::TemporaryDirectory directory_;
  std::string path_;
  CLI::App app_;
  std::shared_ptr<ConfigFile> config_ = std::make_shared<ConfigFile>(app_);
};

TEST_CASE("options of a file, by command") {
  Configured run("# always\n[record]\nslots = 7\nnotrace=[\"str*\",\"mem*\"]\n");
  CHECK(run.parse({"record"}) == "");
  CHECK(run.slots == 7);
  CHECK(run.notrace == std::vector<std::string>{"str*", "mem*"});
  CHECK(run.line_of("--slots") == ":3: ");
  CHECK(run.line_of("--output") == "");
  CHECK(run.line_of("slots") == "");
  Configured dotted("record.slots=8\n");
  CHECK(dotted.parse({"record"}) == "");
  CHECK(dotted.slots == 8);
  CHECK(dotted.line_of("--slots") == ":1: ");
}

TEST_CASE("options of another command do not apply") {
  Configured run("[record]\nslots=7\n");
  CHECK(run.parse({"list"}) == "");
}

TEST_CASE("the command line takes precedence") {
  Configured run("[record]\nslots=7\n");
  CHECK(run.parse({"record", "--slots", "8"}) == "");
  CHECK(run.slots == 8);
  CHECK(run.line_of("--slots") == "");  // its value is not from the file
}

TEST_CASE("an option of the file yields to one that excludes it") {
  Configured run("[record]\nno-libcall=true\n");
  CHECK(run.parse({"record", "--libcall"}) == "");
  CHECK(run.has_libcall);
  CHECK_FALSE(run.has_no_libcall);
  Configured alone("[record]\nno-libcall=true\n");
  CHECK(alone.parse({"record"}) == "");
  CHECK(alone.has_no_libcall);
}

TEST_CASE("options of a buffer of one's own yield to --session") {
  Configured run("[record]\noutput=file\nslots=7\n");
  CHECK(run.parse({"record", "--session", "mine"}) == "");
  CHECK(run.output == "");
  CHECK(run.slots == 7);
}

TEST_CASE("only a file of this user or root is read, to which nobody else may write") {
  Configured run("[record]\nslots=7\n");
  REQUIRE(chmod(run.path().c_str(), 0666) == 0);
  CHECK(run.parse({"record"}) == ": others may write to it");
  std::string warning;
  CHECK(default_config_at(run.path(), warning) == "");
  CHECK(warning == "not reading " + run.path() + ": others may write to it");
  REQUIRE(chmod(run.path().c_str(), 0644) == 0);
  CHECK(default_config_at(run.path(), warning) == run.path());
  CHECK(run.parse({"record"}) == "");
  CHECK(default_config_at("/dev/null", warning) == "");
  if (geteuid() != 0) return testing::skip_case("needs root");
  REQUIRE(chown(run.path().c_str(), 65534, 65534) == 0);
  CHECK(default_config_at(run.path(), warning) == "");
  CHECK(run.parse({"record"}) == ": it belongs to another user");
}

TEST_CASE("what is not known is an error with its line") {
  CHECK(Configured("[record]\n\nslot=7\n").parse({"record"}) ==
        ":3: record has no option \"slot\"; did you mean \"slots\"?");
  CHECK(Configured("[recrod]\nslots=7\n").parse({"record"}) ==
        ":1: no command \"recrod\"; did you mean \"record\"?");
  CHECK(Configured("slots=7\n").parse({"record"}) ==
        ":1: arctrace has no option \"slots\"");
  CHECK(Configured("[record]\nxyzzy=7\n").parse({"list"}) ==
        ":2: record has no option \"xyzzy\"");
}

TEST_CASE("a bad value is an error of its option, whose line is known") {
  Configured run("[record]\noutput=x\nslots=101\n");
  CHECK(run.parse({"record"}).starts_with("--slots: "));
  CHECK(run.line_of("--slots") == ":3: ");
}

}  // namespace
}  // namespace arctrace::cli
