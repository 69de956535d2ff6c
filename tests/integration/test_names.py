"""Names of C++ functions: patterns match them without return type, template arguments, parameters and the suffixes of
copies, and reports show them so."""

import subprocess

import cases
from command import arctrace, read, read_dump, read_report, refused
from tracing import TracedTest

# Instances of a template, two of which have the same short name in a report, a method, and a function of a text.
PROGRAM = """
#include <cstdio>
#include <string>
#include <vector>

template <class T> __attribute__((noinline)) T slow_sort(std::vector<T> v) {
  for (size_t i = 0; i < v.size(); ++i)
    for (size_t j = 0; j + 1 < v.size(); ++j)
      if (v[j + 1] < v[j]) std::swap(v[j], v[j + 1]);
  return v.front();
}
namespace app {
struct Server {
  __attribute__((noinline, noclone)) int handle(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n; ++i) sum = sum + i;
    return sum;
  }
};
template <class T> __attribute__((noinline, noclone)) T twice(T n) {
  volatile T sum = 0;
  for (int i = 0; i < 100; ++i) sum = sum + n;
  return sum;
}
__attribute__((noinline, noclone)) size_t greet(const std::string& text) {
  volatile size_t sum = 0;
  for (char c : text) sum = sum + c;
  return sum;
}
}
int main(int argc, char**) {
  std::vector<int> v;
  for (int i = 0; i < 200; ++i) v.push_back((i * 7919) % 211);
  printf("%d %d %d %ld %zu\\n", slow_sort(v), app::Server().handle(argc * 100), app::twice(argc),
         app::twice(long(argc)), app::greet("some text"));
}
"""
TEXT = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


class NamesTest(TracedTest):
    def program(self):
        program = self.directory / "slow"
        subprocess.run(["g++", "-g", "-O2", "-x", "c++", "-", "-o", program], input=PROGRAM, text=True, check=True)
        return program

    def recorded(self, *options):
        """The names of the program's functions that were recorded, in full, and what the recorder said."""
        done = self.record(self.program(), options=("--no-libcall", *options))
        self.assertEqual(done.status, 0, done.stderr)
        return self.own(done.trace), done

    def own(self, trace, *options):
        """The program's own functions in a report, without main()."""
        rows = read_report(trace, "flat", *options)["functions"]
        return {row["name"] for row in rows if row["module"].endswith("/slow")} - {"main"}

    @cases.in_gate
    def test_patterns(self):
        """The same patterns choose the same functions to patch and to record, and to show."""
        everything, done = self.recorded("-P", ".", "-Z", "1")
        [sort] = [name for name in everything if "slow_sort<int>" in name]
        twice = {"int app::twice<int>(int)", "long app::twice<long>(long)"}
        handle, greet = "app::Server::handle(int)", f"app::greet({TEXT} const&)"
        self.assertLessEqual({sort, handle, greet} | twice, everything)
        whole = done.trace.rename(self.directory / "whole.data")
        for pattern, wanted in (
                ("slow_sort", {sort}), ("slow_*", {sort}), ("slow_sort<*", {sort}), ("re:^slow_sort$", {sort}),
                ("app::twice", twice), ("app::twice<long>", {"long app::twice<long>(long)"}),
                ("int app::twice<int>(int)", {"int app::twice<int>(int)"}), ("re:twice$", twice),
                ("app::Server::handle", {handle}), ("app::*", twice | {handle, greet}),
                ("app::greet(std::string const&)", {greet})):
            with self.subTest(pattern):
                self.assertEqual(self.recorded("-P", pattern)[0], wanted)
                self.assertEqual(self.recorded("-P", ".", "-Z", "1", "-F", pattern)[0], wanted)
                self.assertEqual(self.own(whole, "-F", pattern), wanted)
                self.assertEqual({record["function"] for record in read_dump(whole, "--type=ENTER", "-F", pattern)},
                                 wanted)
                read("graph", pattern, whole)
                listed = read("functions", "--list", "-P", pattern, self.directory / "slow")
                self.assertTrue(all(name in listed for name in wanted), listed)

    @cases.in_gate
    def test_near_names(self):
        """Where a pattern matches nothing, functions that contain it, or nearly are it, have their short names."""
        program = self.program()
        for pattern in ("slow_sor", "Slow_Sort", "ow_sor", "slow_srot"):
            said = arctrace("record", "-o", self.directory / "none.data", "-P", pattern, "--", program)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn(f'matches -P {pattern}; did you mean "slow_sort"', said.stderr)
        done = self.record(program, options=("-P", "."))
        self.assertIn('matches "handel"; did you mean "app::Server::handle"?', refused("graph", "handel", done.trace))
        self.assertIn('matches "hand"; did you mean "app::Server::handle"?', refused("graph", "hand", done.trace))

    @cases.in_gate
    def test_reports(self):
        """Text has short names, and those of functions that share one with what tells them apart; JSON has all."""
        done = self.record(self.program(), options=("-P", ".", "-Z", "1"))
        for view in ("flat", "tree", "summary", "slowest"):
            text = read("report", f"--view={view}", *(("-F", "slow_sort") if view == "slowest" else ()), done.trace)
            self.assertRegex(text, r"\bslow_sort\b(?![<(])")
            self.assertNotIn("slow_sort<", text)
        flat = read("report", "--view=flat", done.trace)
        for name in ("app::Server::handle", "app::twice<int>", "app::twice<long>", "app::greet"):
            self.assertRegex(flat, f"(?m) {name}( |$)")
        full = read("report", "--view=flat", "--full-names", done.trace)
        for name in ("int app::twice<int>(int)", "app::Server::handle(int)", f"app::greet({TEXT} const&)"):
            self.assertIn(name, full)
        folded = self.directory / "folded"
        for options, wanted, other in (((), ";slow_sort ", "slow_sort<"), (("--full-names",), "slow_sort<int>(", "x x")):
            read("export", "--to=folded", "--force", "-o", folded, *options, done.trace)
            self.assertIn(wanted, folded.read_text())
            self.assertNotIn(other, folded.read_text())
        self.assertIn(" app::twice<long>", read("diff", done.trace, done.trace))
        self.assertIn(" long app::twice<long>(long)", read("diff", "--full-names", done.trace, done.trace))

    def test_patterns_that_are_wrong(self):
        for command in ("report", "dump"):
            self.assertIn("nothing after re:", refused(command, "-F", "re:", "none"))
        self.assertIn("no ] to this [", refused("graph", "a[", "none"))


if __name__ == "__main__":
    cases.main()
