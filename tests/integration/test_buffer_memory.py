"""Buffers where memory is short: /dev/shm small, read-only or missing, as in containers, directories
named by --buffer-dir, and memory limits of cgroups."""

import os
import pathlib
import shutil
import subprocess
import unittest

import cases
from command import ARCTRACE, HINT, arctrace, lines_without, read, read_dump, read_info, run
from tracing import TracedTest

MIB = 1 << 20
MAY_MOUNT = (os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False,
                                                  stderr=subprocess.DEVNULL).returncode == 0,
             "may not make a mount namespace")


class BufferRoom(TracedTest):
    def within(self, mounts, *options, command="true"):
        """arctrace record with `options` in a mount namespace in which `mounts`, a shell command, were made."""
        trace = self.directory / "arctrace.data"
        return run("unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", ARCTRACE, "record", "-o", trace,
                   *options, "--", command)

    def assert_refused(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def assert_recorded(self, done, *notes):
        """The run succeeded, with one line for each note before the summary."""
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = lines_without(done.stderr, HINT)
        self.assertEqual(len(lines), len(notes) + 1, done.stderr)
        for note, line in zip(notes, lines):
            self.assertIn(note, line)
        self.assertIn(" 0 lost", lines[-1])


@unittest.skipUnless(*MAY_MOUNT)
class SharedMemory(BufferRoom):
    def test_limit_of_files(self):
        self.assert_refused(self.within("ulimit -f 1000"), "no room for a buffer of 72M in /dev/shm: a file may have "
                            "no more than 512000 bytes (RLIMIT_FSIZE, ulimit -f); -b sets a smaller size")

    def test_small(self):
        """/dev/shm has a container's usual 64 MiB, and less."""
        for size, buffer in ((64, "8M"), (16, "2M"), (5, "512k")):
            with self.subTest(size=size):
                done = self.within(f"mount -t tmpfs -o size={size}m tmpfs /dev/shm")
                self.assert_recorded(done, f"the buffer has {buffer}, not 64M, to take at most a quarter of the room "
                                           f"in /dev/shm, {size}M; -b sets another size")
                session = read_info(self.directory / "arctrace.data")["session"]
                self.assertLess(session["buffer_size"], size * MIB / 4 + 1)

    def test_asked_for(self):
        """A buffer takes more than a quarter of /dev/shm, and more than there is."""
        mounts = "mount -t tmpfs -o size=64m tmpfs /dev/shm"
        self.assert_recorded(self.within(mounts, "-b", "32M"))
        self.assert_refused(self.within(mounts, "-b", "64M"), "no room for a buffer of 72M in /dev/shm",
                            "it has room for 64M of 64M", "mount -o remount,size=1G /dev/shm", "--shm-size=1g",
                            "--buffer-dir=DIR")

    def test_missing_or_read_only(self):
        self.assert_refused(self.within("mount -t tmpfs -o ro tmpfs /dev/shm"), "no buffer in /dev/shm: it is read-only",
                            "--tmpfs /dev/shm")
        done = self.within("mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3")
        self.assert_refused(done, "no buffer in /dev/shm: there is no such directory", "mount -t tmpfs tmpfs /dev/shm")
        done = self.within("mount -t tmpfs -o nr_inodes=1 tmpfs /dev/shm")
        self.assert_refused(done, "no buffer in /dev/shm: it has no room for another file")
        on_disk = self.directory / "disk"
        on_disk.mkdir()
        self.assert_refused(self.within(f"mount --bind {on_disk} /dev/shm"),
                            "no buffer in /dev/shm: it is on a disk, not in memory")

    def test_read_only_root(self):
        """Nothing is written outside of the buffer's directory and the file's."""
        mounts = (f"mount --bind {self.directory} {self.directory} && mount -t tmpfs tmpfs /dev/shm"
                  " && mount -o remount,bind,ro /")
        self.assert_recorded(self.within(mounts, command="ls"))

    def test_other_directory(self):
        """A directory is named where /dev/shm can't be used."""
        other = self.directory / "memory"
        other.mkdir()
        mounts = f"mount -t tmpfs -o size=400m tmpfs {other} && mount -t tmpfs -o ro tmpfs /dev/shm"
        self.assert_recorded(self.within(mounts, f"--buffer-dir={other}"))
        self.assert_refused(self.within("true", f"--buffer-dir={other}/none"), "there is no such directory")


class OtherDirectory(BufferRoom):
    def test_on_a_disk(self):
        """A directory on a disk is used, with a line on what that costs; nothing stays."""
        directory = self.directory / "buffers"
        directory.mkdir()
        kind = subprocess.run(["stat", "-f", "-c", "%T", directory], stdout=subprocess.PIPE, text=True, check=True).stdout
        if kind.strip() in ("tmpfs", "ramfs"):
            self.skipTest("the test's directory is in memory")
        recorded = self.record("true", options=("-b", "1M", f"--buffer-dir={directory}"))
        self.assert_recorded(subprocess.CompletedProcess([], recorded.status, "", recorded.stderr),
                             f"warning: {directory} is on a disk: ")
        self.assertEqual(list(directory.iterdir()), [])

    def test_session(self):
        """A session in another directory is found by its path."""
        directory = pathlib.Path(f"/dev/shm/arctrace-test-{os.getpid()}")
        directory.mkdir()
        self.addCleanup(shutil.rmtree, directory)
        made = arctrace("create", "mine", f"--buffer-dir={directory}", "-b", "1M", "--start", check=True)
        self.assertEqual(made.stdout, f"{directory}/mine\n")
        read("record", f"--session={directory}/mine", "--", "true")
        self.assertTrue(read_dump(directory / "mine"))
        read("destroy", f"{directory}/mine")
        self.assertEqual(list(directory.iterdir()), [])


@unittest.skipUnless(*MAY_MOUNT)
class MemoryLimit(BufferRoom):
    """A cgroup of version 1 or 2 with little memory."""

    def setUp(self):
        super().setUp()
        roots = ((pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
                 (pathlib.Path("/sys/fs/cgroup"), "memory.max"))
        for root, limit in roots:
            group = root / f"arctrace-test-{os.getpid()}"
            try:
                group.mkdir()
                self.addCleanup(group.rmdir)
                (group / limit).write_text(str(100 * MIB), encoding="ascii")
            except OSError:
                continue
            self.group = group
            return
        self.skipTest("may not make a cgroup with a memory limit")

    def recorded(self, *options, mounts="true"):
        """Runs arctrace record in the cgroup."""
        return self.within(f"{mounts} && echo $$ > {self.group}/cgroup.procs", *options)

    def test_usual_size(self):
        recorded = self.recorded(mounts="mount -t tmpfs -o size=1g tmpfs /dev/shm")
        self.assert_recorded(recorded, "the buffer has 16M, not 64M, to take at most a quarter of the memory limit of "
                                       "the cgroup, 100M; -b sets another size")

    def test_refused_before_the_kernel_kills(self):
        directory = pathlib.Path(f"/dev/shm/arctrace-test-{os.getpid()}")
        directory.mkdir()
        self.addCleanup(shutil.rmtree, directory)
        self.assert_refused(self.recorded("-b", "256M", f"--buffer-dir={directory}"), "no room for a buffer of ",
                            "of the memory limit of the cgroup, 100M, ", "are free", "--memory")
        self.assertEqual(list(directory.iterdir()), [])
        self.assert_recorded(self.recorded("-b", "24M"))  # with ASan the recorder itself takes 40 MiB


if __name__ == "__main__":
    cases.main()
