#!/usr/bin/env python3
"""Disks that fill up while a recording goes on: what the file has, what it lacks, and that the recorder says so."""

import contextlib
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest

import attack
from command import (ARCTRACE, SANITIZED, arctrace, destroy_left_buffer, read, read_dump, read_info, read_report, run,
                     start_arctrace)
from support import API
from tracing import TracedTest

# Writes as many records as each line of its input says, and answers when it has.
WRITER = API + """
ring = name("ring")
for line in sys.stdin:
    for _ in range(int(line)): api.arctrace_instant(ring)
    print("done", flush=True)
"""
BATCH = 20_000


@attack.needs_root
class DiskTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.disk = self.directory / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", self.disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)
        self.trace = self.disk / "arctrace.data"

    def start(self, *options):
        recorder = start_arctrace("record", "--no-libcall", "-o", self.trace, "-b", "2M", *options, "--",
                                  sys.executable, "-c", WRITER, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(lambda: [path.unlink() for path in self.buffers(recorder)])
        return recorder

    def write(self, recorder, records=BATCH):
        recorder.stdin.write(f"{records}\n")
        recorder.stdin.flush()
        self.assertEqual(recorder.stdout.readline(), "done\n")

    def paste(self, errors):
        """Runs the command by which a recorder says that its records are had, in a shell; then its buffer is gone."""
        command, buffer = re.search(r"make room, then run (arctrace recover .* && arctrace destroy (\S+))\n",
                                    errors).groups()
        path = f"{pathlib.Path(ARCTRACE).parent}:{os.environ['PATH']}"
        run("sh", "-c", command, cwd=self.directory, env=dict(os.environ, PATH=path), check=True)
        self.assertFalse(os.path.exists(buffer))

    def end(self, recorder):
        recorder.stdin.close()
        errors = recorder.stderr.read()
        recorder.stderr.close()
        return recorder.wait(timeout=600), errors

    def fill(self):
        filler = os.open(self.disk / "filler", os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while True:
                os.write(filler, b"x" * 4096)
        os.close(filler)

    @staticmethod
    def buffers(recorder):
        return list(pathlib.Path("/dev/shm").glob(f"arctrace-*-{recorder.pid}-*"))

    def summary(self, path=None):
        return read_info(path or self.trace)["summary"]

    def test_room_that_comes_back(self):
        recorder = self.start()
        self.write(recorder)
        self.fill()
        for _ in range(20):
            self.write(recorder)  # more than fits into the buffer
        (self.disk / "filler").unlink()
        self.write(recorder, 1)
        status, errors = self.end(recorder)
        self.assertEqual(status, 0, errors)
        read("check", self.trace)
        summary = self.summary()
        self.assertEqual(summary["records"] + summary["lost"], 21 * BATCH + 1)
        self.assertEqual(summary["lost"], summary["lost_by_cause"]["full"])
        self.assertGreater(summary["lost"], 0)
        self.assertIn(f"{summary['records']:,} records, {summary['lost']:,} lost", errors)

    def test_a_disk_that_stays_full(self):
        for option in ("wait", "stop"):
            with self.subTest(on_full=option):
                recorder = self.start(f"--on-full={option}")
                self.write(recorder)
                self.fill()
                for _ in range(20):
                    self.write(recorder)
                status, errors = self.end(recorder)
                self.assertEqual(status, 0, errors)
                self.assertIn("cut off: No space left on device", errors)
                # The file says what is missing, and the buffer is there.
                info = read_info(self.trace)
                summary = info["summary"]
                self.assertEqual(summary["records"] + summary["lost"], 20 * BATCH + BATCH)
                unsaved = summary["lost_by_cause"]["file"]
                self.assertGreater(unsaved, 1000)
                buffer = re.search(r"([\d,]+) records did not fit on the disk and are in (\S+):",
                                   errors)
                self.assertEqual(int(buffer[1].replace(",", "")), unsaved)
                self.assertEqual(info["processes"][0]["pid"] > 0, True)
                (self.disk / "filler").unlink()
                rest = self.directory / "rest"
                done = arctrace("recover", "-o", rest, "--definitions", self.trace, buffer[2])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.summary(rest)["records"], unsaved)
                # With room, the command that the recorder printed works as it is.
                subprocess.run(["mount", "-o", "remount,size=64m", self.disk], check=True)
                self.paste(errors)
                whole = pathlib.Path(f"{self.trace}.whole")
                read("check", whole)
                merged = self.summary(whole)
                self.assertEqual(merged["records"], summary["records"] + unsaved)
                self.assertEqual(merged["lost"], summary["lost"] - unsaved)
                self.assertEqual(merged["lost_by_cause"].get("file", 0), 0)
                for part in (self.trace, whole, rest):  # checks of whole files would refuse them
                    part.unlink()

    def test_the_message_counts_the_kernels_records(self):
        """The program writes next to nothing, and the kernel much."""
        probe = self.directory / "probe"
        if arctrace("record", "-o", probe, "--kernel=bpf", "--", "true").returncode != 0:
            self.skipTest("the kernel cannot write here")
        for mode in ("drop", "overwrite"):
            with self.subTest(mode=mode):
                recorder = self.start("--kernel=bpf", "--syscalls", "--no-libcall", f"--mode={mode}")
                self.write(recorder, 1)
                self.fill()
                for _ in range(20000):
                    self.write(recorder, 0)  # a line each way: some system calls
                _, errors = self.end(recorder)
                (self.disk / "filler").unlink()
                self.assertIn("cut off: No space left on device", errors)
                found = re.search(r"([\d,]+) records did not fit on the disk and are in (\S+):", errors)
                self.assertIsNotNone(found, errors)
                self.addCleanup(arctrace, "destroy", "--force", found[2])
                self.assertEqual(found[1], re.search(r"file ([\d,]+)", errors)[1])
                self.assertGreater(int(found[1].replace(",", "")), 10_000)
                rest = self.directory / "rest"
                done = arctrace("recover", "-o", rest, found[2])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(self.summary(rest)["records_by_type"]["SYSCALL"], 5_000)
                for path in (self.trace, rest):
                    path.unlink()

    def test_names_without_a_reserve(self):
        """On a disk that is too small for the reserve, records in the file are removed for the names."""
        subprocess.run(["mount", "-o", "remount,size=192k", self.disk], check=True)
        recorder = self.start("--block-size=4k")
        for _ in range(3):
            self.write(recorder)
        status, errors = self.end(recorder)
        self.assertEqual(status, 0, errors)
        info = read_info(self.trace)
        summary = info["summary"]
        self.assertGreater(summary["records"], 1000)
        self.assertEqual(summary["records"] + summary["lost"], 3 * BATCH)
        self.assertEqual(len(info["processes"]), 1)
        records = read_dump(self.trace, "--type", "INSTANT")
        self.assertEqual({r["name"] for r in records}, {"ring"})
        # Removed records are neither in the file nor in the buffer.
        unsaved = int(re.search(r"([\d,]+) records did not fit", errors)[1].replace(",", ""))
        self.assertGreater(summary["lost_by_cause"]["file"], unsaved)
        self.assertIn(f"{summary['records']:,} records, {summary['lost']:,} lost", errors)

    def test_names_of_many_processes(self):
        """The names need more than the reserve; no more records are removed for them than necessary."""
        subprocess.run(["mount", "-o", "remount,size=512k", self.disk], check=True)
        done = arctrace("record", "-o", self.trace, "-b", "32M", "--", "sh", "-c",
                        "for i in $(seq 100); do /bin/ls / >/dev/null; done; exit 5")
        self.assertEqual(done.returncode, 5, done.stderr)
        info = read_info(self.trace)
        self.assertGreater(len(info["processes"]), 100)
        self.assertGreater(info["summary"]["records"], 1000)
        unsaved, buffer = re.search(r"([\d,]+) records did not fit .* are in (\S+):",
                                    done.stderr).groups()
        self.assertGreater(info["summary"]["lost_by_cause"]["file"], int(unsaved.replace(",", "")))
        functions = read_report(self.trace, "flat")["functions"]
        self.assertFalse([f["name"] for f in functions if f["name"].startswith("0x")])
        self.assertEqual(arctrace("destroy", buffer).returncode, 0)

    def test_a_flight_recorder_without_room(self):
        """What the last snapshot has no space for is counted, named, and still in the buffer."""
        subprocess.run(["mount", "-o", "remount,size=1m", self.disk], check=True)
        recorder = self.start("--mode=overwrite", "--block-size=4k")
        for _ in range(10):
            self.write(recorder)
        status, errors = self.end(recorder)
        self.assertEqual(status, 0, errors)
        self.assertIn("cut off: No space left on device", errors)
        info = read_info(self.trace)
        summary = info["summary"]
        unsaved = summary["lost_by_cause"]["file"]
        self.assertGreater(unsaved, 1000)
        self.assertGreater(summary["records"], 1000)
        self.assertEqual(summary["records"] + summary["overwritten"] + unsaved, 10 * BATCH)
        self.assertEqual(len(info["processes"]), 1)
        self.assertEqual({r["name"] for r in read_dump(self.trace, "--type", "INSTANT")}, {"ring"})
        said, buffer = re.search(r"([\d,]+) records did not fit on the disk and are in (\S+):",
                                 errors).groups()
        self.assertEqual(int(said.replace(",", "")), unsaved)
        whole = self.directory / "whole"
        done = arctrace("recover", "-o", whole, "--merge", self.trace, buffer)
        self.assertEqual(done.returncode, 0, done.stderr)
        merged = self.summary(whole)
        self.assertEqual(merged["records"], summary["records"] + unsaved)
        self.assertEqual(merged["lost"], 0)
        self.assertEqual(merged["overwritten"], summary["overwritten"])
        self.assertEqual(arctrace("destroy", buffer).returncode, 0)

    def test_the_kernels_records_count_too(self):
        subprocess.run(["mount", "-o", "remount,size=256k", self.disk], check=True)
        for mode in ("drop", "overwrite"):
            done = arctrace(
                "record", "--kernel=bpf", "--syscalls", "--no-libcall", f"--mode={mode}", "-o",
                self.trace, "-b", "8M", "--block-size=4k", "--", "sh", "-c",
                "dd if=/dev/zero of=/dev/null bs=1 count=60000 2>/dev/null")
            if "--kernel=bpf: " in done.stderr:
                self.skipTest(done.stderr)
            buffer = re.search(r"(/run/arctrace/\S+):", done.stderr)
            if buffer:
                self.assertEqual(arctrace("destroy", buffer[1]).returncode, 0)
            lost = [r for r in read_dump(self.trace, "--type", "LOST") if r["cause"] == "file"]
            self.assertGreater(sum(r["count"] for r in lost if r.get("cpu") is not None), 1000)
            summary = self.summary()
            self.assertIn(f"{summary['records']:,} records, {summary['lost']:,} lost", done.stderr)
            self.trace.unlink()

    def test_ring(self):
        (self.disk / "filler").write_bytes(b"x" * (2 << 20))
        recorder = self.start("--size-limit=4M", "--on-full=ring", "--block-size=4k")
        for _ in range(40):
            self.write(recorder)
        status, errors = self.end(recorder)
        self.assertEqual(status, 0, errors)
        for path in self.disk.glob("arctrace.data*"):
            read("check", path)
        self.assertGreater(self.summary()["records"], 0)
        summary = read_info(*self.disk.glob("arctrace.data*"))["summary"]
        self.assertGreater(summary["lost_by_cause"]["removed"], 0)
        self.assertEqual((summary["records"] + summary["lost"], summary["elsewhere"]), (40 * BATCH, 0), errors)

    def test_no_room_from_the_start(self):
        self.fill()
        recorder = self.start()
        self.write(recorder)
        with self.subTest("that stays so"):
            status, errors = self.end(recorder)
            self.assertEqual(status, 0, errors)
            self.assertRegex(errors, r"0 records, 20,000 lost \(file 20,000\).*No space left on device")
            (self.disk / "filler").unlink()
            rest = self.directory / "rest"
            done = arctrace("recover", "-o", rest, self.buffers(recorder)[0])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.summary(rest)["records"], BATCH)
        with self.subTest("that passes"):
            self.fill()
            recorder = self.start()
            self.write(recorder)
            (self.disk / "filler").unlink()
            self.write(recorder)
            status, errors = self.end(recorder)
            self.assertEqual(status, 0, errors)
            read("check", self.trace)
            self.assertEqual(self.summary()["records"], 2 * BATCH)
            self.assertEqual(self.buffers(recorder), [])

    def test_a_full_device(self):
        """The exit status is the command's, and every loss is told."""
        done = start_arctrace("record", "-o", "/dev/full", "--", "sh", "-c", "exit 7", stderr=subprocess.PIPE,
                              text=True)
        with done:
            errors = done.stderr.read()
        self.assertEqual(done.returncode, 7, errors)
        self.assertNotIn("to record a program's own functions", errors)  # they may be what is lost
        lost = re.search(r"arctrace: 0 records, ([1-9][\d,]*) lost \(file \1\)", errors)
        self.assertIsNotNone(lost, errors)
        self.paste(errors)
        rest = self.directory / "recovered.data"
        self.assertEqual(self.summary(rest)["records"], int(lost[1].replace(",", "")))


# A disk that refuses late what it has accepted: only fsync() sees the failure.
LATE_ERROR = """
#include <errno.h>
int fsync(int fd) { (void)fd; errno = EIO; return -1; }
"""


class LateErrorTest(TracedTest):
    @unittest.skipIf(SANITIZED, "the sanitizer's library must be loaded first")
    def test_an_error_that_only_fsync_sees(self):
        library = self.directory / "late.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"],
                       input=LATE_ERROR, text=True, check=True)
        trace = self.directory / "trace"
        for options in ((), ("--fsync=10ms",)):
            done = arctrace("record", *options, "-o", trace, "--", "sh", "-c", "sleep 0.2",
                            env={**os.environ, "LD_PRELOAD": str(library)})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("Input/output error", done.stderr)
            destroy_left_buffer(done.stderr)
            done = arctrace("check", trace)
            self.assertIn("the file was cut off", done.stdout)
            trace.unlink()
            self.directory.joinpath("trace.old").unlink(missing_ok=True)

    def test_intervals(self):
        done = self.record("sh", "-c", "sleep 0.1", options=("--fsync=1ms",))
        self.assertEqual(done.status, 0, done.stderr)
        read("check", done.trace)


class ChecksumTest(TracedTest):
    def test_a_file_that_has_changed(self):
        recorded = self.record("sh", "-c", "true")
        read("check", recorded.trace)
        good = recorded.trace.read_bytes()
        damaged = self.directory / "damaged"
        for at in random.sample(range(4096, len(good)), 20):
            damaged.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1:])
            done = arctrace("check", damaged)
            self.assertEqual(done.returncode, 1, (at, done.stdout, done.stderr))
            self.assertRegex(done.stdout, "F[1-9]", at)
            damaged.unlink()


if __name__ == "__main__":
    attack.main()
