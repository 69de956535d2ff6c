"""record --snapshot-when: the flight recorder takes a snapshot when a certain call ends."""

import re
import subprocess

import cases
from command import arctrace, read, read_dump, start_arctrace
from hooked import ANY_COMPILER, ShimTest

ROUNDS, SLOW, FAILING = 4000, 2500, 3100


class SnapshotWhen(ShimTest):
    def fly(self, directory, *conditions, rounds=(ROUNDS, SLOW, FAILING), options=()):
        """Records the fixture. Returns (snapshots taken, requests that came too early)."""
        chosen = [word for condition in conditions for word in ("--snapshot-when", condition)]
        done = arctrace("record", "--mode=overwrite", "-P", "serve", "-P", "step", *chosen, *options, "-o", "t", "--",
                        "./flight", *rounds, cwd=directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"{int(0 <= rounds[2] < rounds[0])} failed\n")
        taken = int(re.search(r"arctrace: (\d+) snapshots? for --snapshot-when", done.stderr)[1])
        early = re.search(r"; (\d+) calls? that would have had one came", done.stderr)
        self.assertEqual(done.stderr.count("arctrace: snapshot: "), taken)
        return taken, int(early[1]) if early else 0

    def calls(self, directory, trace, name="serve"):
        """The calls of a function that have ended in the trace, in order: their times in ns."""
        read("check", directory / trace)
        times, open_since = [], []
        for record in read_dump(directory / trace, "--type=ENTER,EXIT"):
            if record["type"] == "ENTER":
                open_since.append((record.get("function", record.get("name")), record["time_ns"]))
            elif open_since:
                function, since = open_since.pop()
                if function == name:
                    times.append(record["time_ns"] - since)
        return times

    def test_slow_call(self):
        """One slow call among thousands: a snapshot of that call and of what came before it."""
        directory = self.place("slow", ANY_COMPILER)
        taken, early = self.fly(directory, "serve > 1s")
        slow = [time for time in self.calls(directory, "t") if time > 10**9]
        self.assertGreaterEqual(len(slow), 1)
        self.assertEqual(taken + early, len(slow))  # one snapshot, unless the machine was stopped meanwhile
        first = self.calls(directory, "t.1")
        self.assertGreater(len(first), SLOW // 2)
        self.assertTrue(any(time > 10**9 for time in first))
        # The mark is the first record behind the call that was slow.
        records = read_dump(directory / "t.1", "--type=ENTER,EXIT,MARK")
        marks = [(before["type"], record["text"]) for before, record in zip(records, records[1:])
                 if record["type"] == "MARK"]
        self.assertEqual(set(marks), {("EXIT", "--snapshot-when serve")})

    @cases.not_in_gate
    def test_result(self):
        directory = self.place("result", ANY_COMPILER)
        for condition in ("serve returns < 0", "serve returns/i64 = 4294967289",
                          "re:^serv returns = -7", "serve returns/u8 == 0xf9"):
            with self.subTest(condition=condition):
                if "/u8" in condition:  # the low byte of other calls may match, too
                    self.assertGreaterEqual(sum(self.fly(directory, condition)), 1)
                else:
                    self.assertEqual(self.fly(directory, condition), (1, 0))
                self.assertGreater(len(self.calls(directory, "t.1")), 0)

    def test_rate(self):
        """All calls meet the condition, within a second or a few: too early requests are counted."""
        directory = self.place("rate", ANY_COMPILER)
        taken, early = self.fly(directory, "step returns > 0", rounds=(500, -1, -1))
        self.assertGreaterEqual(taken, 1)
        self.assertEqual(taken + early, 500)

    def test_others_cost_nothing(self):
        """Functions without a condition keep the fast path, and no condition is met."""
        directory = self.place("none", ANY_COMPILER)
        self.assertEqual(self.fly(directory, "step returns < 0", "serve = NULL",
                                  rounds=(500, -1, 100)), (0, 0))
        self.assertFalse((directory / "t.1").exists())

    def test_library_call(self):
        """A condition may be about a library's function."""
        directory = self.place("library", ANY_COMPILER)
        self.assertEqual(self.fly(directory, "usleep returns = 0"), (1, 0))

    def test_conditions_without_function(self):
        """Those that no call can meet are named when recording begins, and those that no function matched at its end."""
        directory = self.place("unmet", ANY_COMPILER)
        conditions = ["serv > 1s", "main > 1s", "serve > 10s", "usleep > 10s"]
        chosen = [word for condition in conditions for word in ("--snapshot-when", condition)]
        with start_arctrace("record", "--mode=overwrite", "-P", "serve", *chosen, "-o", "t", "--", "./flight", "1", "0",
                            "-1", cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
            self.addCleanup(recorder.kill)
            first, second = recorder.stderr.readline(), recorder.stderr.readline()
            self.assertIsNone(recorder.poll())  # the program sleeps for more than a second
            _, rest = recorder.communicate()
        will_not = "arctrace: warning: no call of ./flight will meet --snapshot-when"
        self.assertEqual(first, f'{will_not} "serv > 1s": no function of the program or of its libraries matches, '
                                'and what it executes is not examined; did you mean "serve"?\n')
        self.assertEqual(second, f'{will_not} "main > 1s": main is not patched: try -P main\n')
        self.assertNotIn(will_not, rest)
        self.assertRegex(rest, r"(?m)^arctrace: warning: no function matches --snapshot-when serv; did you mean")
        self.assertRegex(rest, r"(?m)^arctrace: warning: no function matches --snapshot-when main; it is in the program")

    def test_bad_conditions(self):
        directory = self.place("bad", ANY_COMPILER)
        for condition, said in (("serve", "not a condition such as"),
                                ("serve < 20ms", "a call's time is compared by > or >="),
                                ("serve > 20", "not a time such as 20ms"),
                                ("serve returns < x", "not a number such as -1"),
                                ("re:( > 1s", "")):
            done = arctrace("record", "--mode=overwrite", "--snapshot-when", condition, "-o", "t", "--", "./flight",
                            "1", "2", "3", cwd=directory)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("arctrace: record: --snapshot-when", done.stderr)
            self.assertIn(said, done.stderr)
        done = arctrace("record", "--snapshot-when", "serve > 1s", "-o", "t", "--", "./flight", "1", "2", "3",
                        cwd=directory)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "arctrace: record: --snapshot-when needs --mode=overwrite, "
                                      "the flight recorder\n")


if __name__ == "__main__":
    cases.main()
