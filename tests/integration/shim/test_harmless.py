"""Programs that define themselves what a tracer would bring, and shims that have nothing to do."""

import os
import shutil

import cases
from command import run
from hooked import SHIM, ShimTest, both_compilers
from tracing import FIXTURES


class Replaced(ShimTest):
    @both_compilers
    def test_own_malloc_and_wrappers(self, compiler):
        """A malloc and wrappers that are instrumented, which the loader calls before anything else
        runs."""
        traced = self.compare("./replaced", compiler=compiler)
        self.assertEqual(traced.status, 12)
        self.assert_counts(traced)
        self.assertEqual(traced.counted["_exit"], 1)
        self.assertEqual(traced.counted["main"], 2)

    @both_compilers
    def test_own_function_hooks(self, compiler):
        """Hooks in a library of the program's are still called."""
        traced = self.compare("./own_hooks", compiler=compiler)
        self.assertEqual(traced.stdout, "21\n")
        self.assert_counts(traced)


class NothingToDo(ShimTest):
    """The shim without a session, or beside another shim."""

    def run_with(self, directory, command, **variables):
        return run(*command, cwd=directory, env={**os.environ, **variables})

    @both_compilers
    def test_without_session(self, compiler):
        for session in (None, "", "/nonexistent/session"):
            variables = {} if session is None else {"ARCTRACE_SESSION": session}
            for command in (["./plugins"], ["./threads", "1"], ["./forks", "8"], ["./vforks"],
                            ["./programs", "child-vfork", "execve", "end"], ["./jumps"]):
                with self.subTest(session=session, command=command):
                    bare = run(*command, cwd=self.place("untraced", compiler))
                    done = self.run_with(self.place("shim", compiler), command,
                                         LD_PRELOAD=SHIM, **variables)
                    self.assertEqual((done.returncode, done.stdout, done.stderr),
                                     (bare.returncode, bare.stdout, bare.stderr))

    @both_compilers
    def test_two_shims(self, compiler):
        """Another installation's shim is loaded before or after ours: calls are recorded once."""
        copy = self.directory / f"copy-{compiler}"
        copy.mkdir()
        library = os.path.dirname(SHIM)
        for name in (os.path.basename(SHIM), "libarctrace.so.0"):
            shutil.copy(os.path.join(library, name), copy / name)
        other = str(copy / os.path.basename(SHIM))
        for order in ((other, SHIM), (SHIM, other), (SHIM, SHIM)):
            for program in (["./plugins"], ["./threads", "1"], ["./vforks"]):
                with self.subTest(order=order, program=program):
                    traced = self.record_quietly("env", "LD_PRELOAD=" + ":".join(order), *program,
                                                 compiler=compiler)
                    self.assert_counts(traced)

    def test_environment_is_left_alone(self):
        """A traced program sees the two variables that tracing needs, and no other change."""
        traced = self.record_quietly("env", compiler="gcc", env={"PATH": os.environ["PATH"], "A": "b"})
        lines = dict(line.split("=", 1) for line in traced.stdout.splitlines())
        self.assertEqual(lines.pop("LD_PRELOAD"), SHIM)
        self.assertTrue(lines.pop("ARCTRACE_SESSION"))
        self.assertEqual(lines, {"PATH": os.environ["PATH"], "A": "b"})

    def test_ordinary_programs(self):
        """Commands that nobody instrumented run with children of every kind."""
        (FIXTURES / "gcc").resolve(strict=True)
        script = ("set -e; for i in 1 2 3; do (echo $i; exit $i) || echo status $?; done; "
                  "seq 100 | sort -rn | head -2; ls /nonexistent || true; "
                  "printf '%s\\n' \"$(uname -s)\" | tr a-z A-Z; kill -TERM $$")
        for command in (["bash", "-c", script], ["python3", "-c", (
                "import subprocess, threading, os; "
                "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join(); "
                "print(subprocess.run(['sh', '-c', 'echo child; exit 3'], env={}).returncode); "
                "os.abort()")]):
            with self.subTest(command=command[0]):
                self.compare(*command, compiler="gcc")


if __name__ == "__main__":
    cases.main()
