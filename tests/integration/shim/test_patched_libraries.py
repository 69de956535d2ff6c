"""record -P lib:...: functions of shared libraries that a program is linked with or loads, and of libc."""

import os
import shutil
import sys

import cases
from command import arctrace, read_info, read_report, run
from hooked import ANY_COMPILER, ShimTest, both_compilers, functions_of

LOOPS = 40  # of the fixture plugins
# These run with all functions of libc that can be recorded.
IN_LIBC = [("./jumps",), ("./left",), ("./signals", "return"), ("./signals", "jump"), ("./vforks",),
           ("./forks", "5"), ("./threads", "3"), ("./turns", "array"), ("./ends", "exit"),
           ("./early",)]
LONG = bool(os.environ.get("ARCTRACE_TEST_LONG"))
HASHES = """
import ctypes, hashlib
print(hashlib.sha256(b"x" * 100000).hexdigest(), hashlib.new("sha512", b"y").hexdigest())
print(hashlib.pbkdf2_hmac("sha1", b"password", b"salt", 500).hex())
"""


class Libraries(ShimTest):
    def calls_of(self, directory, trace="arctrace.data"):
        return {row["name"]: row["calls"] for row in read_report(directory / trace, "flat")["functions"]}

    def patches(self, directory, trace="arctrace.data"):
        """What info says of the libraries of the first process: {file name: object}."""
        patches = read_info(directory / trace, "-v")["processes"][0]["patches"]
        return {library["path"].rpartition("/")[2]: library for library in patches["libraries"]}

    def run_patched(self, directory, *patterns, command, options=()):
        """Runs the command bare, then recorded: it does the same, and the trace is right."""
        bare = run(*command, cwd=directory)
        chosen = [word for pattern in patterns for word in ("-P", pattern)]
        traced = self.record(*command, options=("--no-libcall", *chosen, *options), directory=directory)
        self.assert_same(bare, traced)
        traced.read("check")
        return traced.stderr

    @both_compilers
    def test_loaded_later(self, compiler):
        """Two plugins that are loaded and unloaded in turn, one at the other's addresses."""
        traced = self.compare("./plugins", compiler=compiler, options=("-P", "lib:plugin_*"))
        self.assertEqual(traced.stdout, "same address: yes\nmissing: 1\n")
        self.assert_counts(traced)
        paths = traced.paths()
        for plugin in ("alpha", "bravo"):
            for path in (f"main/use/{plugin}_begins/{plugin}_leaf",
                         f"main/use/plugin_run/{plugin}_leaf", f"main/use/{plugin}_ends"):
                self.assertEqual(paths[path], LOOPS, path)
        libraries = self.patches(traced.directory, traced.trace)
        self.assertEqual(set(libraries), {"plugin_a.so", "plugin_b.so"})
        for library in libraries.values():
            self.assertIsNone(library["refused"])
            self.assertGreaterEqual(library["patched"], 4)
            self.assertLess(library["patched"], 20)  # functions of all loads count once

    @both_compilers
    def test_linked(self, compiler):
        """Libraries whose destructors call functions. Their constructors run before ours."""
        traced = self.compare("./early", compiler=compiler, options=("-P", "lib:libearly*"))
        left = {"library_constructor", "library_leaf"}
        for name in ("early", "libearly.so", "libearly_user.so"):
            left |= {function for function, can in functions_of(traced.directory / name).items()
                     if not can}
        self.assert_counts(traced, but_for=left)
        self.assertNotIn("library_chosen", left)
        self.assertGreater(traced.plain_calls()["library_leaf"], 0)
        self.assertTrue({"library_chosen", "library_destructor"} <= set(traced.counted))
        self.assertEqual(set(self.patches(traced.directory, traced.trace)),
                         {"libearly.so", "libearly_user.so"})

    def test_chosen(self):
        """A library's pattern is for that library only, by its file's name with or without .so."""
        directory = self.place("chosen", ANY_COMPILER)
        for pattern, recorded in (("lib:plugin_a:alpha_leaf", {"alpha_leaf"}),
                                  ("lib:plugin_b.so:*_leaf", {"bravo_leaf"}),
                                  ("lib:plugin_?:re:^alpha_.*s$", {"alpha_begins", "alpha_ends"}),
                                  ("use", {"use"})):
            with self.subTest(pattern=pattern):
                self.run_patched(directory, pattern, command=("./plugins",), options=("-Z", "1"))
                names = {name for name in self.calls_of(directory) if not name.startswith("[")}
                self.assertEqual(names, recorded)

    def test_names_of_one_function(self):
        """A function is asked for by any of its names, as libc has several for its system calls."""
        directory = self.place("aliases", ANY_COMPILER)
        for pattern in ("lib:libc:close", "lib:libc:__close", "lib:libc:re:^close$"):
            with self.subTest(pattern=pattern):
                self.run_patched(directory, pattern, command=("bash", "-c", "exec 3</dev/null; exec 3<&-"))
                self.assertEqual(self.patches(directory)["libc.so.6"]["patched"], 1)

    def test_nothing_matches(self):
        """A line says that nothing matches, with similar names."""
        directory = self.place("unmatched", ANY_COMPILER)
        for pattern, said in (
                ("lib:plugin_x", "no library that was loaded matches -P lib:plugin_x"),
                ("lib:libd", 'no library that was loaded matches -P lib:libd; did you mean '
                             '"libc"'),
                ("lib:libc:re:^mallocc$",
                 "no function of libc.so.6 that can be patched matches -P lib:libc:re:^mallocc$; "
                 'did you mean "')):
            said_all = self.run_patched(directory, pattern, command=("./early",))
            self.assertIn(f"arctrace: warning: {said}", said_all)
        for pattern, said in (("lib:", "no library's name after lib:"),
                              ("lib::f", "no library's name after lib:"),
                              ("lib:a:", "no pattern after the library"),
                              ("lib:[a", ""), ("lib:a:re:(", "")):
            done = arctrace("record", "-P", pattern, "-o", "t2", "--", "./early", cwd=directory)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse((directory / "t2").exists())

    def test_refused(self):
        """The unwinder of exceptions is not patched, and record and info say so."""
        directory = self.place("refused", ANY_COMPILER)
        said = self.run_patched(directory, "lib:libgcc_s", "lib:libstdc++",
                                command=("./exceptions",))
        self.assertIn("nothing of some library was patched for -P: its runtime looks up return "
                      "addresses", said)
        libraries = self.patches(directory)
        self.assertEqual(libraries["libgcc_s.so.1"]["patched"], 0)
        self.assertIn("its runtime", libraries["libgcc_s.so.1"]["refused"])
        [cxx] = [library for name, library in libraries.items() if name.startswith("libstdc++")]
        self.assertGreater(cxx["patched"], 1000)
        self.assertIsNone(cxx["refused"])

    def test_libc(self):
        """Programs with hazards run as before, whichever functions of libc are recorded."""
        for command in IN_LIBC:
            with self.subTest(command=command):
                directory = self.place("libc", ANY_COMPILER)
                self.run_patched(directory, "lib:libc", command=command, options=("-Z", "1"))
                libraries = self.patches(directory)
                self.assertGreater(libraries["libc.so.6"]["patched"], 800)
                self.assertGreater(libraries["libc.so.6"]["left"]["special"], 100)

    def test_commands(self):
        """Commands of the system run with functions of libc, libcrypto and others recorded."""
        directory = self.place("commands", ANY_COMPILER)
        script = "for i in 1 2 3; do echo $(printf %s $i | tr 1-3 a-c); done; ls / | sort -r | head -3"
        self.run_patched(directory, "lib:libc", command=("bash", "-c", script))
        self.assertGreater(sum(self.calls_of(directory).values()), 100)
        self.run_patched(directory, "lib:libcrypto", "lib:libc", command=(
            sys.executable, "-c", HASHES))
        libraries = self.patches(directory)
        [crypto] = [library for name, library in libraries.items() if name.startswith("libcrypto")]
        self.assertGreater(crypto["patched"], 3000)
        self.assertTrue({"EVP_DigestUpdate", "PKCS5_PBKDF2_HMAC"} & set(self.calls_of(directory)))
        if LONG and shutil.which("git"):
            self.run_patched(directory, "lib:lib*", command=("git", "--version"))


if __name__ == "__main__":
    cases.main()
