#include "reader/cli/options/gate_options.hpp"

#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <vector>

namespace arctrace::cli {

CLI::Option* add_classes_option(CLI::App& app, const std::string& flag, uint32_t& bits,
                                const std::string& help) {
  static const std::map<std::string, uint32_t> kClasses = {
      {"functions", ARCTRACE_GATE_FUNCTIONS},
      {"events", ARCTRACE_GATE_EVENTS},
      {"marks", ARCTRACE_GATE_MARKS},
      {"kernel", ARCTRACE_GATE_KERNEL},
      {"all", ARCTRACE_GATE_ALL}};
  return app
      .add_option_function<std::vector<std::string>>(
          flag,
          [&bits](const std::vector<std::string>& names) {
            for (const std::string& name : names) bits |= kClasses.at(name);
          },
          help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(kClasses))
      ->type_name("CLASS");
}

}  // namespace arctrace::cli
