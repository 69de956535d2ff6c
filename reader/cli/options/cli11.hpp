// CLI11's types, for headers. All of its code is inline, so that a unit that includes
// <CLI/CLI.hpp> takes ten seconds more to compile. Only source files that make or ask
// options do.
#pragma once

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI
