"""The filter of functions applies to scopes, which programs name by the API: set by the options of record, and by ctl
while programs run, with the shim and without it."""

import collections
import os
import subprocess
import sys

import cases
import support
from command import arctrace, read_dump, read_info, start_arctrace
from tracing import TracedTest

# Nested scopes, ten times: git_alpha, in it mem_free, in that git_inner; and beside it http.get. The last two times
# use scopes whose ids are high.
SCOPES = support.API + """
def scopes(*texts): return [key(text) for text in texts]
def enter_all(keys):
    for k in keys: api.arctrace_enter(k)
    for k in reversed(keys): api.arctrace_exit(k)
nested, beside = scopes("git_alpha", "mem_free", "git_inner"), scopes("http.get")
for i in range(8):
    enter_all(nested)
    enter_all(beside)
for i in range(2000): name(f"unused_{i}")
nested, beside = scopes("git_alpha", "mem_free", "git_inner"), scopes("http.get")
for i in range(2):
    enter_all(nested)
    enter_all(beside)
"""
NESTED = ("git_alpha", "mem_free", "git_inner")

# The same scopes once for each line of input, after an instant with the line's name; then writes a line.
ROUNDS = support.API + """
keys = [key(text) for text in ("git_alpha", "mem_free", "git_inner", "http.get")]
for line in sys.stdin:
    api.arctrace_instant(name(line.strip()))
    for k in keys[:3]: api.arctrace_enter(k)
    for k in reversed(keys[:3]): api.arctrace_exit(k)
    api.arctrace_enter(keys[3])
    api.arctrace_exit(keys[3])
    print(flush=True)
"""


class ScopeFilterTest(TracedTest):
    def recording(self, *options):
        recorded = self.record(sys.executable, "-c", SCOPES, options=("--no-libcall", *options))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertIn(" 0 lost", recorded.stderr)
        return recorded

    def assert_scopes(self, options, *names):
        """With these options just these scopes are recorded, ten times each, and no message is about the filter."""
        recorded = self.recording(*options)
        self.assertEqual(recorded.calls(), dict.fromkeys(names, 10), options)
        self.assertEqual(len(recorded.own_lines), 1, recorded.stderr)

    @cases.in_gate
    def test_options_of_record(self):
        self.assert_scopes((), *NESTED, "http.get")
        self.assert_scopes(("-F", "git_*"), *NESTED)
        self.assert_scopes(("-F", "git_inner"), "git_inner")
        self.assert_scopes(("-F", "re:^(mem|http)"), "mem_free", "git_inner", "http.get")
        self.assert_scopes(("-N", "mem_*"), "git_alpha", "http.get")
        self.assert_scopes(("-F", "git_alpha", "-N", "*_inner"), "git_alpha", "mem_free")
        self.assert_scopes(("-F", "git_alpha", "-D1"), "git_alpha")
        self.assert_scopes(("-N", "git_alpha", "--scope=shared"), "http.get")

    @cases.in_gate
    def test_patterns_that_match_no_scope_are_named(self):
        recorded = self.recording("-F", "git_alpha", "-N", "http", "-N", "nobody*")
        self.assertEqual(recorded.own_lines[:-1], [
            "arctrace: warning: no function or scope matches -N http\n",
            "arctrace: warning: no function or scope matches -N nobody*\n"])

    def session(self, *options):
        name = f"scopes-{os.getpid()}-{self.id().rsplit('.', 1)[1]}"[:64]
        done = arctrace("create", name, "-b", "4M", "--start", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(arctrace, "destroy", "--force", name)
        return name

    def start(self, name, with_shim):
        """Starts ROUNDS in the session."""
        variables = dict(line.removeprefix("export ").split("=", 1)
                         for line in arctrace("env", name, "--no-libcall").stdout.splitlines())
        variables = {key: value.strip("'") for key, value in variables.items()}
        if not with_shim:
            variables = {"ARCTRACE_SESSION": variables["ARCTRACE_SESSION"]}
        process = subprocess.Popen([sys.executable, "-c", ROUNDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env={**os.environ, **variables})
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        return process

    def go_round(self, process, name):
        process.stdin.write(name + "\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "\n")

    def ctl(self, name, *options):
        done = arctrace("ctl", name, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def rounds(self, name):
        """By line of input, the scopes that were entered and left then."""
        entered, left = collections.defaultdict(list), collections.defaultdict(list)
        current = None
        for record in read_dump(name):
            if record["type"] == "INSTANT":
                current = record["name"]
                entered[current] = []
            elif record["type"] == "ENTER":
                entered[current].append(record["function"])
            elif record["type"] == "EXIT":
                left[current].append(record)
        for current, functions in entered.items():
            self.assertEqual(len(left[current]), len(functions), current)
        return dict(entered)

    def check_changes(self, with_shim):
        name = self.session()
        self.assertIn("no process has joined: what -F git_* matches is not known yet", self.ctl(name, "-F", "git_*"))
        self.ctl(name, "--trace-all")
        process = self.start(name, with_shim)
        self.go_round(process, "all")
        said = self.ctl(name, "-F", "git_*")
        self.go_round(process, "only")
        said += self.ctl(name, "-N", "mem_*", "-N", "http.get")
        self.go_round(process, "not")
        said += self.ctl(name, "-F", "re:_(free|inner)$")
        self.go_round(process, "expression")
        said += self.ctl(name, "-F", "*", "-N", "git_alpha")
        self.go_round(process, "both")
        self.assertEqual(said, "")
        self.assertIn('no function or scope matches -F git_alhpa; did you mean "git_alpha"?',
                      self.ctl(name, "-F", "git_alhpa"))
        self.go_round(process, "none")
        self.ctl(name, "--trace-all")
        self.go_round(process, "again")
        self.assertEqual(self.rounds(name), {
            "all": [*NESTED, "http.get"], "only": [*NESTED], "not": ["git_alpha"],
            "expression": ["mem_free", "git_inner"], "both": ["http.get"], "none": [],
            "again": [*NESTED, "http.get"]})

    @cases.in_gate
    def test_ctl_without_the_shim(self):
        self.check_changes(False)

    @cases.in_gate
    def test_ctl_with_the_shim(self):
        self.check_changes(True)

    @cases.in_gate
    def test_ctl_goes_back_to_the_options_of_record(self):
        name = self.session()
        process = start_arctrace("record", f"--session={name}", "--no-libcall", "-F", "mem_*", "--", sys.executable,
                                 "-c", ROUNDS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.go_round(process, "start")
        self.ctl(name, "-N", "git_inner")
        self.go_round(process, "live")
        self.ctl(name, "--trace-all")
        self.go_round(process, "back")
        self.assertEqual(self.rounds(name), {
            "start": ["mem_free", "git_inner"], "live": ["git_alpha", "mem_free", "http.get"],
            "back": ["mem_free", "git_inner"]})

    @cases.in_gate
    def test_joined_program(self):
        process = subprocess.Popen([sys.executable, "-c", ROUNDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.go_round(process, "before")  # the program has defined its names
        trace = self.directory / "arctrace.data"
        with start_arctrace("record", "-o", trace, "-p", process.pid, "--no-libcall", "-F", "git_alpha",
                            "-N", "git_inner", "-N", "nobody", text=True, stderr=subprocess.PIPE) as recorder:
            self.addCleanup(recorder.kill)
            self.assertIn("joined process", recorder.stderr.readline())
            self.go_round(process, "joined")
            process.stdin.close()
            errors = recorder.stderr.read()
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertEqual(self.rounds(trace), {"joined": ["git_alpha", "mem_free"]})
        self.assertIn("no function or scope matches -N nobody", errors)
        self.assertNotIn("-N git_inner", errors)

    @cases.in_gate
    def test_ctl_says_what_matches_no_event(self):
        name = self.session()
        self.assertEqual(self.ctl(name, "--event", "nope*"), "")  # no program has joined
        process = self.start(name, False)
        self.go_round(process, "round")
        self.assertIn("no event matches --event nope*: programs have defined none", self.ctl(name, "--event", "nope*"))
        self.assertEqual(read_info(name)["buffer"]["record_filter"], ["event:nope*"])
        self.assertEqual(self.ctl(name, "--record-all"), "")


if __name__ == "__main__":
    cases.main()
