"""Arguments and results of library calls."""

import errno

import cases
import plain
from command import arctrace

ERRNO = {name: number for number, name in errno.errorcode.items()}


class Values(plain.PlainTest):
    def recorded(self, options, compiler="gcc", command=("./values",)):
        """[(function, args or None, retval or None, errno or None)] of all calls."""
        directory = self.place("program", compiler)
        traced = self.record_quietly(*command, directory=directory, options=options)
        self.assertEqual(traced.status, 0, traced.stdout + traced.stderr)
        calls = traced.report("invocations")
        return traced, [(call["name"], call.get("args"), call.get("retval"), call.get("errno"))
                       for call in calls["invocations"]]

    def test_auto_args(self):
        for compiler in plain.COMPILERS:
            with self.subTest(compiler=compiler):
                traced, calls = self.recorded(["-a"], compiler)
                self.check_auto_args(traced, calls)

    def check_auto_args(self, traced, calls):
        for call in [
                ("open", ["/dev/null", "O_RDWR|O_CLOEXEC"], 3, None),
                ("close", [3], 0, None),
                ("open", ["/nowhere/at all", "O_RDONLY"], -1, "ENOENT"),
                ("open", ["/nowhere/new", "O_WRONLY|O_CREAT|O_TRUNC", 0o640], -1, "ENOENT"),
                ("close", [-7], -1, "EBADF"),
                ("access", ["/dev/null", "R_OK|W_OK"], 0, None),
                ("access", [{"unreadable": "0x8"}, "F_OK"], -1, "EFAULT"),
                ("access", [None, "F_OK"], -1, "EFAULT"),
                ("access", ["/last", "F_OK"], -1, "ENOENT"),
                ("access", [{"cut": "/cut"}, "F_OK"], -1, "EFAULT"),
                ("access", [{"unreadable": "0xfffffffffffffff0"}, "F_OK"], -1, "EFAULT"),
                ("access", [{"cut": "/" + "0123456789" * 6 + "012"}, "F_OK"], -1, "ENOENT"),
                ("access", ["/" + "0123456789" * 6 + "012", "F_OK"], -1, "ENOENT"),
                ("access", ["/odd \"name\"\n\ufffd", "F_OK"], -1, "ENOENT"),
                ("socket", ["AF_UNIX", "SOCK_STREAM|SOCK_CLOEXEC", 0], 3, None),
                ("lseek", [-1, -3, "SEEK_END"], -1, "EBADF"),
                ("fopen", ["/nowhere/f", "r"], None, "ENOENT"),
        ]:
            self.assertIn(call, calls)
        by_name = {}
        for call in calls:
            by_name.setdefault(call[0], []).append(call)
        ((_, (descriptor, address, size), result, error),) = by_name["write"]
        self.assertEqual((descriptor, size, result, error), (3, 5, 5, None))
        self.assertRegex(address, "^0x[0-9a-f]+$")
        self.assertEqual([call[1:][1:] for call in by_name["pthread_mutex_trylock"]],
                         [(ERRNO["EBUSY"], "EBUSY")])
        self.assertEqual([call[2] for call in by_name["pthread_mutex_lock"]], [0])
        ((_, count, block, _),) = by_name["calloc"]
        self.assertEqual(count, [3, 5])
        self.assertIn(("free", [block], None, None), calls)
        ((_, (pid, _), _, _),) = by_name["kill"]
        self.assertIn(("getpid", None, pid, None), calls)

        flow = traced.read("report", "--view=flow")
        self.assertIn('> open("/nowhere/at all", O_RDONLY)\n', flow)
        self.assertIn("< open = -1 ENOENT  ", flow)
        dump = traced.read("dump")
        self.assertRegex(dump, r'ARGUMENTS +open\("/nowhere/new", O_WRONLY\|O_CREAT\|O_TRUNC, '
                               r"0640\)\n")
        self.assertRegex(dump, r"RESULT +open = -1 ENOENT\n")
        records = traced.records("--type=RESULT")
        self.assertTrue(any(record.get("function") == "lseek" and record["retval"] == -1
                            and record["errno"] == "EBADF" for record in records))

    @staticmethod
    def with_values(calls):
        """The functions of which arguments or results were recorded. Arguments of locks always are."""
        return {name for name, args, result, _ in calls
                if (args is not None or result is not None)
                and not name.startswith("pthread_mutex_")}

    def test_given_functions(self):
        _, calls = self.recorded(["-A", "acc*@arg2/x32", "-R", "re:^lseek$@retval/i64",
                                  "-A", "write@arg3/u,arg1/i32", "-A", "read@arg2/p"])
        self.assertIn(("access", ["0x6"], None, None), calls)
        self.assertIn(("lseek", None, -1, None), calls)
        self.assertIn(("write", [5, 3], None, None), calls)
        self.assertEqual(self.with_values(calls), {"access", "lseek", "write", "read"})

    def test_the_users_specs_go_before_the_table(self):
        _, calls = self.recorded(["-a", "-A", "close@arg1/x32"])
        self.assertIn(("close", ["0x3"], 0, None), calls)

    def test_auto_args_that_are_off(self):
        _, calls = self.recorded(["-A", "access", "-R", "lseek"])
        self.assertIn(("access", ["/dev/null", "R_OK|W_OK"], None, None), calls)
        self.assertIn(("lseek", None, -1, "EBADF"), calls)
        self.assertEqual(self.with_values(calls), {"access", "lseek"})

    def test_with_filters(self):
        _, calls = self.recorded(["-a", "-F", "access"])
        self.assertEqual({call[0] for call in calls}, {"access"})
        self.assertIn(("access", ["/dev/null", "R_OK|W_OK"], 0, None), calls)
        _, calls = self.recorded(["-a", "-t", "1h"])
        self.assertEqual(calls, [])

    def test_the_program_does_the_same(self):
        for options in (["-a"], ["-A", "*@arg1/s,arg2/s,arg3/s,arg4/s,arg5/s,arg6/s",
                                 "-R", "*@retval/s"]):
            for command in ("values", "abi", "unwinding", "jumps", "coroutines", "vforks",
                            "forks 5", "signals return", "replaced", "confined closed"):
                self.compare_modes("./" + command.split()[0], *command.split()[1:], compiler="gcc", options=options)
            self.compare_modes("./confined", "seccomp", compiler="gcc", options=[*options, "--block-size=4k"])

    def test_bad_specs(self):
        for option, spec, column in (("-A", "open@arg1/s,arg15", 15), ("-R", "open@arg1", 5),
                                     ("-A", "open@", 5), ("-A", "f@fparg17", 7),
                                     ("-A", "f@arg1/f32", 7), ("-A", "f@fparg1/80", 9),
                                     ("-A", "f@fparg1/s", 9), ("-A", "f@arg1/S8", 8),
                                     ("-R", "f@retval/f16", 10)):
            done = arctrace("record", option, spec, "--", "true", cwd=self.place("program"))
            self.assertEqual(done.returncode, 2)
            lines = done.stderr.splitlines()
            self.assertEqual(lines[1:], ["  " + spec, "  " + " " * column + "^"])

    def test_unknown_function(self):
        done = arctrace("record", "-A", "strlem@arg1/s", "--", "git", "--version", cwd=self.place("program"))
        self.assertEqual(done.returncode, 0)
        self.assertIn('no function matches -A strlem; did you mean "strlen"?', done.stderr)

    def test_function_without_a_hook(self):
        done = arctrace("record", "-A", "count@arg1/i32", "--", "./values", cwd=self.place("program", "gcc"))
        self.assertIn("no function matches -A count; it is in the program, but was not built "
                      "with hooks: try -P count\n", done.stderr)


if __name__ == "__main__":
    cases.main()
