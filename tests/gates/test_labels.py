"""test_labels.py CTEST BUILD: every test has one of the labels `unit` and `integration`."""

import json
import subprocess
import sys
import unittest

import cases

CTEST, BUILD = sys.argv[1:3]
del sys.argv[1:3]
KINDS = {'unit', 'integration'}
KNOWN = KINDS | {'threads', 'long', 'tree', 'gate', 'canary'}


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
                self.assertLessEqual(labels, KNOWN)


if __name__ == '__main__':
    cases.main()
