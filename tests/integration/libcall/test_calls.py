"""Which calls are recorded, by which names, in which mode."""

import cases
import plain


class Calls(plain.PlainTest):
    def test_counts(self):
        """Calls go through lazy and bound, read-only and writable slots, with and without a PLT."""
        for compiler in plain.COMPILERS:
            for program in ("counted", "counted_no_plt", "counted_lazy", "counted_now"):
                with self.subTest(compiler=compiler, program=program):
                    traced = self.record_quietly(f"./{program}", compiler=compiler)
                    calls = traced.calls()
                    expected = {"strlen": 123, "strcmp": 45, "strdup": 7, "strtol": 6, "free": 6,
                                "getenv": 1}
                    if program == "counted_no_plt":
                        # An address that a compiler keeps in a register can't be distinguished from
                        # a pointer.
                        expected = {name: expected[name] for name in expected if name in calls}
                        self.assertIn("getenv", expected)
                    for name, count in expected.items():
                        self.assertEqual(calls.get(name), count, name)

    def test_the_module_is_the_one_that_was_called(self):
        modules = {}
        for program in ("./loads", "./abi"):
            traced = self.record_quietly(program, compiler="gcc", options=["--nest-libcall"])
            for function in traced.functions():
                modules[function["name"]] = function["module"].rsplit("/", 1)[-1]
        for name in ("dlopen", "strdup", "pthread_create", "printf"):
            self.assertEqual(modules.get(name), "libc.so.6", name)
        self.assertEqual(modules.get("two_longs"), "libabi.so")

    def test_modes(self):
        traced = self.record_quietly("./loads", compiler="gcc", options=["--no-libcall"])
        self.assertEqual(traced.calls(), {})
        traced = self.record_quietly("./loads", compiler="gcc", options=["--libcall"])
        calls = traced.calls()
        self.assertEqual(calls["dlopen"], 300)
        self.assertNotIn("snprintf", calls)
        traced = self.record_quietly("./loads", compiler="gcc", options=["--nest-libcall"])
        calls = traced.calls()
        self.assertEqual(calls["dlopen"], 300)
        self.assertEqual(calls["snprintf"], 300)
        # The calls of the constructor and the destructor count too, each time that the plugin is
        # loaded.
        self.assertEqual(calls["strdup"], 300)
        self.assertEqual(calls["free"], 300)

    def test_names_outlive_fork_and_the_module(self):
        traced = self.record_quietly("sh", "-c", "(./loads & wait) | cat", compiler="gcc",
                                     options=["--nest-libcall"])
        calls = traced.calls()
        self.assertEqual(calls["snprintf"], 300)
        self.assertEqual([name for name in calls if name.startswith("name#")], [])

    def test_callbacks_are_inside(self):
        traced = self.record_quietly("./unwinding", compiler="gcc")
        text = traced.read("report", "--view=tree")
        lines = [line.split() for line in text.splitlines() if "longjmp" in line]
        self.assertTrue(any(line[0] == "2" for line in lines), lines)  # below qsort
        self.assertIn("std::runtime_error::runtime_error\n", text)


if __name__ == "__main__":
    cases.main()
