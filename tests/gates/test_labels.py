"""test_labels.py CTEST BUILD: every test has one of the labels `unit` and `integration`, and every file of tests
is built."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

import cases

CTEST, BUILD = sys.argv[1:3]
del sys.argv[1:3]
KINDS = {'unit', 'integration'}
# Labels that integration tests have besides their kind.
PARTS = {'attach', 'attack', 'command', 'kernel', 'libcall', 'protocol', 'shim'}
KNOWN = KINDS | PARTS | {'threads', 'long', 'tree', 'gate', 'canary'}


TESTS = pathlib.Path(__file__).resolve().parent.parent


def built_names(directory):
    """The words of the CMakeLists.txt of a directory and of those above it."""
    words = set()
    while directory != TESTS.parent:
        lists = directory / 'CMakeLists.txt'
        if lists.exists():
            words |= set(re.findall(r'\w+', lists.read_text(encoding='utf-8')))
        directory = directory.parent
    return words


def labels_by_test():
    shown = subprocess.run([CTEST, '--test-dir', BUILD, '--show-only=json-v1'],
                           capture_output=True, check=True, text=True)
    return {test['name']: {label for p in test.get('properties', []) if p['name'] == 'LABELS'
                           for label in p['value']}
            for test in json.loads(shown.stdout)['tests']}


class Labels(unittest.TestCase):
    def test_each_test_has_its_kind(self):
        tests = labels_by_test()
        self.assertGreater(len(tests), 1)
        for name, labels in tests.items():
            with self.subTest(name):
                self.assertEqual(1, len(labels & KINDS), labels)
                self.assertEqual(int('integration' in labels), len(labels & PARTS), labels)
                self.assertLessEqual(labels, KNOWN)

    def test_each_file_of_tests_is_built(self):
        files = sorted(TESTS.rglob('*_test.cpp'))
        self.assertGreater(len(files), 100)
        for file in files:
            with self.subTest(file.relative_to(TESTS)):
                names = {file.stem, file.stem.removesuffix('_test')}
                self.assertTrue(names & built_names(file.parent))


if __name__ == '__main__':
    cases.main()
