// The main function of all doctest programs. What became of each case is appended to a
// file, as tests/harness/cases.py describes.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

class CaseLog : public doctest::IReporter {
 public:
  explicit CaseLog(const doctest::ContextOptions& /*options*/) {}

  void test_case_start(const doctest::TestCaseData& data) override {
    name_ = data.m_name;
    note("begun", 0);
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    note(stats.testCaseSuccess ? "passed" : "failed", stats.seconds);
  }

  // Only whole cases are of interest.
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
  void note(const char* state, double seconds) const {
    const char* directory = std::getenv("ARCTRACE_CASES");
    const char* test = std::getenv("ARCTRACE_TEST");
    if (directory == nullptr || test == nullptr) return;
    const std::string path = std::string(directory) + "/" + test + ".tsv";
    std::FILE* file = std::fopen(
        path.c_str(), "ae");  // closed each time: cases fork, and end by signals
    if (file == nullptr) return;
    std::fprintf(file, "%s\t%.3f\t%s\t\n", state, seconds, name_);
    std::fclose(file);
  }

  const char* name_ = "";
};

DOCTEST_REGISTER_LISTENER("cases", 1, CaseLog);

}  // namespace
