// The main function of all doctest programs. The outcome of each case is appended to a
// file, as tests/harness/cases.py describes.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/skip.hpp"

namespace {

std::string skip_reason;  // of the case that runs, empty if it is not skipped

class CaseLog : public doctest::IReporter {
 public:
  explicit CaseLog(const doctest::ContextOptions& /*options*/) {}

  void test_case_start(const doctest::TestCaseData& data) override {
    name_ = data.m_name;
    skip_reason.clear();
    note("begun", 0, "");
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    const bool is_skipped = stats.testCaseSuccess && !skip_reason.empty();
    const char* state = stats.testCaseSuccess ? "passed" : "failed";
    note(is_skipped ? "skipped" : state, stats.seconds, skip_reason.c_str());
  }

  // The log needs only whole cases.
  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*signature*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}

 private:
  void note(const char* state, double seconds, const char* why) const {
    const char* directory = std::getenv("ARCTRACE_CASES");
    const char* test = std::getenv("ARCTRACE_TEST");
    if (directory == nullptr || test == nullptr) return;
    const std::string path = std::string(directory) + "/" + test + ".tsv";
    std::FILE* file = std::fopen(
        path.c_str(), "ae");  // closed each time: cases fork, and end by signals
    if (file == nullptr) return;
    std::fprintf(file, "%s\t%.3f\t%s\t%s\n", state, seconds, name_, why);
    std::fclose(file);
  }

  const char* name_ = "";
};

DOCTEST_REGISTER_LISTENER("cases", 1, CaseLog);

}  // namespace

void arctrace::testing::skip_case(const std::string& why) {
  skip_reason = why;
  std::printf("skipped: %s\n", why.c_str());
}

// Cases of the suite "emulated" are for programs of another machine, which tests/aarch64
// builds.
int main(int count, char** arguments) {
  doctest::Context context(count, arguments);
  if (std::getenv("ARCTRACE_TEST_EMULATOR") == nullptr)
    context.addFilter("test-suite-exclude", "emulated");
  return context.run();
}
