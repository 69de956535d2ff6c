"""Compares the view of kinds for a real program with the program's own stopwatch."""

import json

import cases
import plain


class Kinds(plain.PlainTest):
    def test_sums_are_those_of_the_programs_stopwatch(self):
        for compiler in plain.COMPILERS:
            with self.subTest(compiler=compiler):
                traced = self.record_quietly("./waiting", compiler=compiler)
                measured = json.loads(traced.stdout)
                report = traced.report("kinds", "--per=thread")
                (main,) = (thread for thread in report["threads"] if thread["tid"] == thread["pid"])
                kinds = {kind["name"]: kind for kind in main["kinds"]}
                read_ns = sum(f["cum_ns"] for f in kinds["io"]["functions"] if f["name"] == "read")
                self.assertLess(read_ns, kinds["io"]["cum_ns"])  # the program prints, too
                for name, cum_ns in (("lock", kinds["lock"]["cum_ns"]), ("io", read_ns),
                                     ("sleep", kinds["sleep"]["cum_ns"])):
                    # The stopwatch measures the calls and what comes between them, which on a busy
                    # machine is more than nothing.
                    least, most = measured[name]
                    self.assertGreater(cum_ns / 1e6, least * 0.99, name)
                    self.assertLess(cum_ns / 1e6, most * 1.01, name)
                # The time between the allocations is the program's own.
                self.assertLess(kinds["allocation"]["cum_ns"] / 1e6, measured["allocation"])
                self.assertEqual(kinds["allocation"]["calls"], 40000)
                functions = {f["name"]: f["calls"] for f in kinds["allocation"]["functions"]}
                self.assertEqual(functions, {"malloc": 20000, "free": 20000})
                self.assertEqual(kinds["lock"]["calls"], 2)
                self.assertEqual(kinds["sleep"]["calls"], 1)
                self.assertEqual(kinds["thread"]["calls"], 2)
                text = traced.read("report", "--view=kinds")
                self.assertRegex(text, r"(?m)^ +40,000 .*  allocation$")
                self.assertRegex(text, r"(?m)^ +20,000 .*    malloc in libc\.so\.6$")

    def test_filters(self):
        traced = self.record_quietly("./waiting", compiler="gcc")
        report = traced.report("kinds", "-F", "malloc")
        self.assertEqual([kind["name"] for kind in report["kinds"]], ["allocation"])
        self.assertEqual(report["kinds"][0]["calls"], 20000)
        report = traced.report("kinds", "--sort=name")
        names = [kind["name"] for kind in report["kinds"]]
        self.assertEqual(names, sorted(names))
        self.assertIn("lock", names)


if __name__ == "__main__":
    cases.main()
