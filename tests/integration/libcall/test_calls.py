"""What is recorded: which calls, by which names, in which mode."""

import unittest

import cases
import plain


class Calls(plain.PlainTest):
    def test_counts(self):
        """Through lazy and bound, read-only and writable slots, with and without a PLT."""
        for compiler in plain.COMPILERS:
            for program in ("counted", "counted_no_plt", "counted_lazy", "counted_now"):
                with self.subTest(compiler=compiler, program=program):
                    directory = self.directory(compiler)
                    _, trace = self.record([f"./{program}"], directory)
                    calls = self.calls(trace)
                    expected = {"strlen": 123, "strcmp": 45, "strdup": 7, "strtol": 6, "free": 6,
                                "getenv": 1}
                    if program == "counted_no_plt":
                        # What a compiler keeps in a register can't be distinguished from a pointer.
                        expected = {name: expected[name] for name in expected if name in calls}
                        self.assertIn("getenv", expected)
                    for name, count in expected.items():
                        self.assertEqual(calls.get(name), count, name)

    def test_the_module_is_the_one_that_was_called(self):
        directory = self.directory("gcc")
        modules = {}
        for program in ("./loads", "./abi"):
            _, trace = self.record([program], directory, ["--nest-libcall"])
            for function in self.functions(trace):
                modules[function["name"]] = function["module"].rsplit("/", 1)[-1]
        for name in ("dlopen", "strdup", "pthread_create", "printf"):
            self.assertEqual(modules.get(name), "libc.so.6", name)
        self.assertEqual(modules.get("two_longs"), "libabi.so")

    def test_modes(self):
        directory = self.directory("gcc")
        _, trace = self.record(["./loads"], directory, ["--no-libcall"])
        self.assertEqual(self.calls(trace), {})
        _, trace = self.record(["./loads"], directory, ["--libcall"])
        calls = self.calls(trace)
        self.assertEqual(calls["dlopen"], 300)
        self.assertNotIn("snprintf", calls)
        _, trace = self.record(["./loads"], directory, ["--nest-libcall"])
        calls = self.calls(trace)
        self.assertEqual(calls["dlopen"], 300)
        self.assertEqual(calls["snprintf"], 300)
        # Of the constructor and the destructor too, each time that it is loaded.
        self.assertEqual(calls["strdup"], 300)
        self.assertEqual(calls["free"], 300)

    def test_names_outlive_fork_and_the_module(self):
        directory = self.directory("gcc")
        _, trace = self.record(["sh", "-c", "(./loads & wait) | cat"], directory,
                               ["--nest-libcall"])
        calls = self.calls(trace)
        self.assertEqual(calls["snprintf"], 300)
        self.assertEqual([name for name in calls if name.startswith("name#")], [])

    def test_callbacks_are_inside(self):
        directory = self.directory("gcc")
        _, trace = self.record(["./unwinding"], directory)
        text = self.read(trace, "report", "--view=tree")
        lines = [line.split() for line in text.splitlines() if "longjmp" in line]
        self.assertTrue(any(line[0] == "2" for line in lines), lines)  # below qsort
        self.assertIn("std::runtime_error::runtime_error(char const*)", text)


if __name__ == "__main__":
    cases.main()
