"""Processes that are made, execute programs and end, in every way."""

import collections
import os
import signal
import unittest

import cases
from hooked import ShimTest, both_compilers

ENDS = {  # way: (status as subprocess has it, how it ended by the trace)
    "": (30, ("exit", 30)),
    "exit": (31, ("exit", 31)),
    "_exit": (32, ("_exit", 32)),
    "_Exit": (33, ("_exit", 33)),
    "quick_exit": (34, None),
    "syscall": (35, None),
    "thread": (36, ("exit", 36)),
    "abort": (-signal.SIGABRT, None),
    "term": (-signal.SIGTERM, None),
    "kill": (-signal.SIGKILL, None),
    "segv": (-signal.SIGSEGV, None),
}

CHAINS = {  # ways to execute: status in the end, processes in the trace, those that executed
    ("execve", "execve-null", "execle", "end"): (21, 4, 3),
    ("execv", "execvp", "execl", "execlp", "end"): (21, 5, 4),
    ("execvpe", "fexecve", "execveat", "end"): (21, 4, 3),
    ("execve-large", "execve-preload", "end"): (21, 3, 2),
    ("child-fork", "execve", "end"): (21, 4, 2),
    ("child-vfork", "child-vfork", "end"): (21, 3, 0),
    ("child-posix_spawn", "execve", "end"): (21, 3, 1),
    ("child-posix_spawnp", "child-posix_spawn", "end"): (21, 3, 0),
    ("child-system",): (21, 3, 1),
    ("child-popen",): (21, 3, 0),
    ("failures",): (22, 1, 0),
}


def processes(traced):
    return traced.info()["processes"]


class Forks(ShimTest):
    @both_compilers
    def test_fork_storm(self, compiler):
        children = 200
        traced = self.compare("./forks", str(children), compiler=compiler)
        self.assertEqual(traced.status, 6)
        self.assert_counts(traced)
        found = processes(traced)
        # Beside the many short children there are: child and grandchild, _Fork, clone, SYS_clone,
        # daemon. The process between the daemon and us calls nothing that is traced, so it isn't
        # known.
        self.assertEqual(len(found), 1 + children + 2 + 1 + 1 + 1 + 1)
        self.assertEqual(collections.Counter(process["origin"] for process in found),
                         {"exec": 1, "fork": len(found) - 1})
        first = next(process for process in found if process["origin"] == "exec")
        of_first = [process for process in found if process["parent"] == first["process"]]
        self.assertEqual(len(of_first), len(found) - 2)  # all but first and the grandchild
        ends = collections.Counter(
            (process["end_how"], process["end_status"]) for process in of_first)
        quarter = children // 4
        self.assertEqual(ends[("exit", 3)], quarter)
        self.assertEqual(ends[("_exit", 1)], quarter)
        self.assertEqual(ends[("_exit", 2)], quarter)

    @both_compilers
    def test_levels(self, compiler):
        """A child's calls are at one level, inside the frames that it has from its parent."""
        for options in ((), ("--libcall",)):
            traced = self.compare("./forks", "20", compiler=compiler, options=options)
            in_tree = collections.defaultdict(set)
            for thread in traced.report("tree")["threads"]:
                nodes = [(child, 1) for child in thread["root"]["children"]]
                while nodes:
                    node, level = nodes.pop()
                    is_made_up = node["name"].startswith("[")
                    if not is_made_up:
                        in_tree[thread["pid"], thread["tid"], node["name"]].add(level)
                    nodes += [(child, level + (not is_made_up)) for child in node["children"]]
            in_flow = collections.defaultdict(set)
            for event in traced.report("flow")["flow"]:
                if event["type"] in ("ENTER", "EXIT"):
                    in_flow[event["pid"], event["tid"], event["name"]].add(event["depth"])
            self.assertGreater(len(in_tree), 60)
            self.assertEqual(in_flow, in_tree)

    @both_compilers
    def test_vfork(self, compiler):
        traced = self.compare("./vforks", compiler=compiler)
        self.assertEqual(traced.status, 8)
        self.assert_counts(traced)
        start = "main/start"
        paths = traced.paths()
        self.assertEqual(paths[start], 52)
        self.assertEqual(paths[f"{start}/in_child"], 50 * 2 + 2)
        self.assertEqual(paths["main/nested/in_child"], 2)
        self.assertEqual(paths["main/killed/in_child/leaf"], 1)
        self.assertEqual(paths["main/leaf"], 1)
        self.assertEqual(len(processes(traced)), 3)  # the program, true and false


class Executions(ShimTest):
    @both_compilers
    def test_chains(self, compiler):
        for chain, (status, count, executions) in CHAINS.items():
            with self.subTest(chain=" ".join(chain)):
                traced = self.compare("./programs", *chain, compiler=compiler)
                self.assertEqual(traced.status, status)
                self.assert_counts(traced)
                ends = collections.Counter(process["end_how"] for process in processes(traced))
                self.assertEqual((sum(ends.values()), ends["exec"]), (count, executions))
                self.assertLessEqual(set(ends), {"exit", "_exit", "exec"})

    @both_compilers
    def test_opt_out(self, compiler):
        """A program whose ARCTRACE_SESSION is empty is not traced, nor are its children."""
        traced = self.compare("./programs", "execve-opt-out", "execve", "end", compiler=compiler)
        self.assertEqual(len(processes(traced)), 1)
        self.assertEqual(traced.counted["main"], 3)
        self.assertEqual(traced.paths()["main"], 1)

    @both_compilers
    def test_own_preload_is_kept(self, compiler):
        traced = self.compare("./programs", "execve-preload", "end", compiler=compiler)
        last = processes(traced)[-1]
        self.assertTrue(any("libm.so" in module["path"] for module in last["modules"]))


class Ends(ShimTest):
    @both_compilers
    def test_ends(self, compiler):
        for way, (status, how) in ENDS.items():
            with self.subTest(way=way):
                traced = self.compare("./ends", way, compiler=compiler)
                self.assertEqual(traced.status, status)
                self.assert_counts(traced)
                self.assertGreaterEqual(traced.counted["leaf"], 1001)
                process = processes(traced)[0]
                if how is None:
                    self.assertNotIn(process.get("end_how"), ("exit", "_exit"))
                else:
                    self.assertEqual((process["end_how"], process["end_status"]), how)


class Confined(ShimTest):
    @both_compilers
    def test_all_descriptors_closed(self, compiler):
        traced = self.compare("./confined", "closed", compiler=compiler)
        self.assertEqual(traced.status, 17)
        self.assertEqual(traced.stdout, "descriptor 3\n")
        self.assert_counts(traced)

    @unittest.skipUnless(os.geteuid() == 0, "only root may change its root")
    @both_compilers
    def test_chroot(self, compiler):
        traced = self.compare("./confined", "chroot", compiler=compiler)
        self.assertEqual(traced.status, 18)
        self.assert_counts(traced)

    @both_compilers
    def test_strict_seccomp(self, compiler):
        """Small blocks: thousands of them are handed out without a system call, or a clock read that
        seccomp forbids."""
        traced = self.compare("./confined", "seccomp", compiler=compiler, options=("--block-size=4k",))
        self.assertEqual(traced.status, 19)
        self.assertEqual(traced.stdout, "still here\n")
        self.assert_counts(traced)

    @both_compilers
    def test_refused_seccomp(self, compiler):
        """A filter that the kernel refuses confines nobody: children join as ever."""
        traced = self.compare("./confined", "probed", compiler=compiler)
        self.assertEqual(traced.status, 20)
        self.assert_counts(traced)

    @both_compilers
    def test_seccomp_before_the_first_call(self, compiler):
        traced = self.compare("./confined", "child", compiler=compiler)
        self.assertEqual(traced.status, 20)
        self.assert_counts(traced)


if __name__ == "__main__":
    cases.main()
