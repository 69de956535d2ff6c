"""Arguments and results of functions with compiled-in hooks that see them agree with the fixture's account of its own
calls."""

import json
import re
import subprocess

import cases
from command import arctrace, read, read_report, run
from hooked import ANY_COMPILER, ShimTest, both_compilers

SPECS = [
    "-A", "integers@arg1/i8,arg2/i16,arg3/i32,arg4/i64,arg5/u8,arg6/u64", "-R", "integers@retval",
    "-A", "text@arg1/s", "-R", "text@retval/s", "-A", "letter@arg1/c", "-R", "letter@retval/c",
    "-A", "pointer@arg1/p,arg2/u32", "-R", "pointer@retval/p",
    "-A", "many@" + ",".join(f"arg{i}/i32" for i in range(1, 9)), "-R", "many@retval/i32",
    "-A", "stacked@arg7/s,fparg10/32,arg9/i16", "-R", "stacked@retval/f64",
    "-A", "mixed@arg1/i32,fparg1/f32,fparg2/64,arg2/b,arg3/S", "-R", "mixed@retval/f64",
    "-A", "halved@fparg1/32", "-R", "halved@retval/f32", "-R", "eight@retval/f",
    "-A", "eight@" + ",".join(f"fparg{i}" for i in range(1, 9)),
    "-A", "sum@arg1/i32,arg2/i32,arg3/i32,arg4/i32", "-R", "sum@retval/i32",
    "-A", "re:^(jumped|thrown|caught|tail|tail_end|depth|failed)$@arg1/i32",
    "-R", "re:^(jumped|thrown|caught|tail|tail_end|depth|failed)$@retval/i32",
]
ALL = ["-A", "*@arg1/s,arg2/s,arg3/s,arg4/s,arg5/s,arg6/s", "-R", "*@retval/s"]


def sorted_calls(calls):
    return sorted(calls, key=json.dumps)


class Values(ShimTest):
    def account(self, traced):
        """[[name, arguments, result]] by the fixture's account, and by the trace."""
        counted = [json.loads(line) for line in traced.stdout.splitlines()]
        names = {call[0] for call in counted}
        found = [[call["name"], call.get("args"), call.get("retval", "none")]
                 for call in traced.report("invocations")["invocations"]
                 if call["name"] in names]
        return sorted_calls(counted), sorted_calls(found)

    @both_compilers
    def test_each_kind(self, compiler):
        traced = self.compare("./values", compiler=compiler, options=SPECS)
        self.assertEqual(traced.status, 0)
        counted, found = self.account(traced)
        self.assertEqual(found, counted)

    @both_compilers
    def test_a_large_result_has_a_pointer_before_the_arguments(self, compiler):
        traced = self.compare("./values", compiler=compiler,
                              options=["-A", "large@arg1/p,arg2/i32", "-R", "large@retval/p"])
        call = next(call for call in traced.report("invocations")["invocations"]
                    if call["name"] == "large")
        self.assertEqual(call["args"][1], 7)
        self.assertEqual(call["args"][0], call["retval"])

    @both_compilers
    def test_values_as_dwarf_has_them(self, compiler):
        traced = self.compare("./values", compiler=compiler, options=[
            word for pattern in ("mixed", "halved", "shapes::*", "integers", "text", "many", "sum")
            for option in ("-A", "-R") for word in (option, pattern)])
        counted, found = self.account(traced)
        own = {"mixed", "halved", "integers", "text", "many"}
        self.assertEqual([call for call in found if call[0] in own],
                         [call for call in counted if call[0] in own])
        calls = {call["name"].split("(")[0]: call
                 for call in traced.report("invocations")["invocations"]}

        def facts(name):
            return (calls[name].get("arg_names"), calls[name].get("args"),
                    calls[name].get("retval"))

        self.assertEqual(facts("mixed")[0], ["number", "half", "whole", "truth", "text"])
        names, (this, *args), result = facts("shapes::Shape::grown")
        self.assertRegex(this, "^0x[0-9a-f]+$")
        self.assertEqual(names, ["this", "by", "color", "sign"])
        self.assertEqual((args, result), ([5, "kGreen", "kMinus"], 205))
        self.assertEqual(facts("shapes::after"), (["number", "half"], [-4, 5.5], 7))
        self.assertEqual(facts("shapes::joined"),
                         (["left", "right"], ["left", "right"], "leftright"))
        self.assertEqual(facts("shapes::made"), (["first", "second"], [1, 3], None))
        self.assertEqual(facts("sum")[1:], ([3], 60))  # the parameters after it have no types
        flow = traced.read("report", "--view=flow")
        self.assertIn('> mixed(number=-3, half=1.5, whole=-2.25, truth=true, text="four")\n', flow)

    @both_compilers
    def test_only_arguments_or_only_results(self, compiler):
        traced = self.compare("./values", compiler=compiler, options=["-A", "tail@arg1/i32",
                                                             "-R", "tail_end@retval/i32"])
        calls = [(call["name"], call.get("args"), call.get("retval"))
                 for call in traced.report("invocations")["invocations"]
                 if call["name"].startswith("tail")]
        self.assertEqual(calls, [("tail", [4], None), ("tail_end", None, 15),
                                 ("tail", [1], None), ("tail_end", None, 6)])

    @both_compilers
    def test_with_filters(self, compiler):
        traced = self.compare("./values", compiler=compiler, options=[*SPECS, "-F", "tail"])
        self.assertEqual([(call["name"], call["args"], call["retval"])
                          for call in traced.report("invocations")["invocations"]],
                         [("tail", [4], 15), ("tail_end", [5], 15), ("tail", [1], 6),
                          ("tail_end", [2], 6)])

    @both_compilers
    def test_what_is_well_known_is_so_of_libraries(self, compiler):
        traced = self.compare("./replaced", compiler=compiler, options=["-a"])
        for call in traced.report("invocations")["invocations"]:
            self.assertNotIn("args", call)
            self.assertNotIn("retval", call)

    @both_compilers
    def test_programs_do_the_same(self, compiler):
        for command in ("./jumps", "./exceptions", "./contexts", "./deep", "./threads 5",
                        "./replaced", "./vforks", "./forks 10", "./signals return",
                        "./signals jump", "./signals altstack", "./ends exit",
                        "./confined closed", "./confined seccomp"):
            with self.subTest(command=command):
                # Calls deeper than those that are pending at a time are counted as lost.
                self.compare(*command.split(), compiler=compiler, may_lose=command == "./deep",
                             options=[*ALL, "--mode=overwrite", "-b", "16M", "--block-size=4k"])

    @both_compilers
    def test_frames_are_the_same(self, compiler):
        for command in ("./jumps", "./exceptions", "./vforks"):
            traced = self.compare(command, compiler=compiler, options=ALL)
            self.assert_counts(traced)
            self.assertEqual(traced.report("flat")["summary"]["orphans"], 0)

    def test_no_types(self):
        directory = self.place("stripped", ANY_COMPILER)
        subprocess.run(["objcopy", "--strip-debug", "values", "bare"], cwd=directory, check=True)
        done = arctrace("record", "--no-libcall", "-A", "ta*", "-R", "depth@retval", "./bare", cwd=directory)
        self.assertEqual(done.returncode, 0)
        self.assertIn("-A ta*: no types are known of tail, tail_end: build with -g, or say "
                      "-A ta*@arg1/i32\n", done.stderr)
        self.assertEqual(done.stderr.count("warning"), 1)

    def test_enumerations(self):
        """Enumerators have names, also joined where they are flags, in arguments and results."""
        directory = self.place("values", ANY_COMPILER)
        (directory / "paint.c").write_text("""
            typedef enum { RED, GREEN = 5, LAST = -1 } color;
            typedef enum { WET = 1, NEW = 2, OLD = 4 } state;
            __attribute__((noinline)) color mixed(color a, state b, int c) {
              __asm__ volatile("" ::"r"(a), "r"(b), "r"(c));
              return c;
            }
            int main(void) { mixed(GREEN, WET | OLD, 5); mixed(LAST, 9, 7); return mixed(0, 2, 0); }""")
        subprocess.run(["gcc", "-g", "-O1", "-pg", "-mfentry", "paint.c", "-o", "paint"],
                       cwd=directory, check=True)
        read("record", "-A", "mixed", "-R", "mixed", "./paint", cwd=directory)
        flow = read("report", "--view=flow", directory / "arctrace.data")
        shown = re.findall(r"> mixed(\(.*\))|< mixed = (\w+)", flow)
        self.assertEqual([entry or result for entry, result in shown],
                         ["(a=GREEN, b=WET|OLD, c=5)", "GREEN", "(a=LAST, b=9, c=7)", "7",
                          "(a=RED, b=NEW, c=0)", "RED"])
        calls = read_report(directory / "arctrace.data", "invocations")["invocations"]
        self.assertEqual([(call["args"], call["retval"]) for call in calls if call["name"] == "mixed"],
                         [(["GREEN", "WET|OLD", 5], "GREEN"), (["LAST", 9, 7], 7), (["RED", "NEW", 0], "RED")])

    def test_types_of_libraries(self):
        """Types that the program's own data lacks come from its libraries or their debug files, also for hooked
        functions of these."""
        directory = self.place("values", ANY_COMPILER)
        (directory / "scale.c").write_text("""
            __attribute__((noinline)) static double inner(double one, short count) { return one * count; }
            double weigh(const char* what, int count, double each) {
              return inner(each, (short)count) + (what[0] == 'x');
            }""")
        (directory / "weighs.c").write_text("""
            double weigh(const char*, int, double);
            int main(void) { return (int)weigh("feathers", 6, 0.5); }""")

        def calls():
            done = arctrace("record", "-A", "weigh", "-R", "weigh", "-A", "inner", "-R", "inner", "./weighs",
                            cwd=directory)
            self.assertEqual(done.returncode, 3)
            found = read_report(directory / "arctrace.data", "invocations")
            return [(call["name"], call.get("arg_names"), call.get("args"), call.get("retval"))
                    for call in found["invocations"]], done.stderr

        for command in (["gcc", "-g", "-O2", "-fPIC", "-shared", "-pg", "-mfentry", "scale.c", "-o", "libscale.so"],
                        ["gcc", "-O1", "weighs.c", "-o", "weighs", "-L.", "-lscale", "-Wl,-rpath,$ORIGIN"]):
            run(*command, cwd=directory, check=True)
        weigh = ("weigh", ["what", "count", "each"], ["feathers", 6, 0.5], 3)
        expected = [weigh, ("inner", ["one", "count"], [0.5, 6], 3)]  # recorded by its hook, not by its call
        found, printed = calls()
        self.assertEqual(found, expected)
        self.assertNotIn("warning", printed)
        for command in (["objcopy", "--only-keep-debug", "libscale.so", "scale.debug"],
                        ["objcopy", "-g", "--add-gnu-debuglink=scale.debug", "libscale.so"]):
            run(*command, cwd=directory, check=True)
        self.assertEqual(calls()[0], expected)
        (directory / "scale.debug").unlink()
        found, printed = calls()
        self.assertEqual({call[2] for call in found}, {None})
        self.assertEqual(printed.count("no types are known of"), 4)

    def test_calls_that_wait(self):
        """With -t, args are recorded when their call is long enough, as many as there is space for."""
        directory = self.place("values", ANY_COMPILER)
        (directory / "waits.c").write_text("""
            #include <time.h>
            __attribute__((noinline)) int quick(int n) { __asm__ volatile("" ::"r"(n)); return n; }
            __attribute__((noinline)) int deep(int n, const char* text) {
              if (n > 0) return quick(n) - n + deep(n - 1, text);
              const struct timespec pause = {0, 60000000};
              return nanosleep(&pause, 0);
            }
            int main(void) {
              deep(1, "first");
              return deep(599, "12345678901234567890123456789012345678901234567890123456789012");
            }""")
        subprocess.run(["gcc", "-g", "-O0", "-pg", "-mfentry", "waits.c", "-o", "waits"],
                       cwd=directory, check=True)
        done = arctrace("record", "-t", "30ms", "-a", "-A", "deep", "-A", "quick", "-R", "deep", "./waits",
                        cwd=directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        read("check", directory / "arctrace.data")
        calls = read_report(directory / "arctrace.data", "invocations")["invocations"]
        found = [(call.get("args"), call["retval"]) for call in calls if call["name"] == "deep"]
        self.assertEqual(found[:2], [([1, "first"], 0), ([0, "first"], 0)])
        text = "1234567890" * 6 + "12"
        self.assertEqual(len(found), 602)
        recorded = []
        for i, (args, result) in enumerate(found[2:]):
            self.assertEqual(result, 0)
            if args is not None:
                self.assertEqual(args, [599 - i, text])
                recorded.append(i)
        # The args take 32 KiB, some 90 bytes each; as many again each time that the machine was so busy that an inner
        # call took long, too.
        self.assertGreater(len(recorded), 300)
        if "quick" not in {call["name"] for call in calls}:
            self.assertEqual(recorded, list(range(len(recorded))))
            self.assertLess(len(recorded), 500)

    def test_what_has_no_values_yet(self):
        """A constructor's `this` is no string; a symbol that is no function has no types to lack."""
        directory = self.place("values", ANY_COMPILER)
        (directory / "made.cpp").write_text("""
            #include <string>
            int length(const std::string& text) { return static_cast<int>(text.size()); }
            int main(int count, char** words) {
              return length(std::string(words[0])) - length(std::string(words[count - 1]));
            }""")
        subprocess.run(["g++", "-g", "-O0", "-D_GLIBCXX_USE_CXX11_ABI=1", "-pg", "-mfentry", "made.cpp", "-o", "made"],
                       cwd=directory, check=True)
        done = arctrace("record", "-A", "*", "./made", cwd=directory)
        self.assertEqual(done.returncode, 0)
        self.assertNotRegex(done.stderr, r"known of ,|_ITM_|__fentry__")
        flow = read("report", "--view=flow", directory / "arctrace.data")
        self.assertIn('> length(text="./made")', flow)
        made = [line for line in flow.splitlines() if "this=" in line]
        self.assertTrue(any("__s=" in line for line in made), flow)
        for line in made:
            self.assertRegex(line, r"this=0x[0-9a-f]+\b")

    def test_a_function_that_is_not_there(self):
        done = arctrace("record", "--no-libcall", "-A", "integer@arg1", "./values",
                        cwd=self.place("missing", ANY_COMPILER))
        self.assertEqual(done.returncode, 0)
        self.assertIn('no function matches -A integer; did you mean "integers"?', done.stderr)


if __name__ == "__main__":
    cases.main()
