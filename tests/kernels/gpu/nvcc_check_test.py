#!/usr/bin/env python3
"""tools/nvcc_check.py against a compiler that says what each case wants: spills, registers, tables, failures."""
import os
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
CHECK = os.path.join(ROOT, 'tools', 'nvcc_check.py')

KERNEL = """ptxas info    : Compiling entry function '{name}' for 'sm_90a'
ptxas info    : Function properties for {name}
    {stack} bytes stack frame, {spill} bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers
"""
# iha::kernels::(anonymous namespace)::Tile<(int)4, true>(int), and iha::kernels::Plain()
TILE = '_ZN3iha7kernels12_GLOBAL__N_14TileILi4ELb1EEEvi'
PLAIN = '_ZN3iha7kernels5PlainEv'


class NvccCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text='', executable=False):
        path = os.path.join(self.folder.name, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        if executable:
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def check(self, said, *args, rc=0, table=None):
        log = self.path('said', said)
        nvcc = self.path('nvcc', f'#!/bin/sh\ncat {log} >&2\nexit {rc}\n', executable=True)
        command = [sys.executable, CHECK, '--nvcc', nvcc, '--out', os.path.join(self.folder.name, 'out'), *args]
        if table is not None:
            command += ['--table', self.path('table', table)]
        return subprocess.run([*command, 'kernels/x.cu'], capture_output=True, text=True, check=False)

    def test_clean_kernels_within_the_table(self):
        said = KERNEL.format(name=TILE, stack=0, spill=0, registers=64) + KERNEL.format(name=PLAIN, stack=0, spill=0, registers=8)
        done = self.check(said, table='# comment\nTile<4,true> 64\nPlain 10\n')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn('Tile<4,true> 64 registers, 0 bytes of stack, 0 spilled', done.stdout)

    def test_spills_and_stack_frames(self):
        done = self.check(KERNEL.format(name=PLAIN, stack=16, spill=24, registers=255))
        self.assertEqual(done.returncode, 1)
        self.assertIn('Plain spills 24 bytes and keeps 16 bytes of stack, expected none', done.stderr)
        self.assertEqual(self.check(KERNEL.format(name=PLAIN, stack=16, spill=0, registers=9)).returncode, 1)
        self.assertEqual(self.check(KERNEL.format(name=PLAIN, stack=16, spill=0, registers=9), '--allow-stack').returncode, 0)

    def test_registers_above_the_table(self):
        done = self.check(KERNEL.format(name=PLAIN, stack=0, spill=0, registers=9), table='Plain 8\n')
        self.assertEqual(done.returncode, 1)
        self.assertIn('Plain needs 9 registers', done.stderr)

    def test_lines_and_kernels_that_miss_each_other(self):
        done = self.check(KERNEL.format(name=PLAIN, stack=0, spill=0, registers=9), table='Gone 8\n')
        self.assertEqual(done.returncode, 1)
        self.assertIn('no line for Plain (9 registers)', done.stderr)
        self.assertIn('Gone is no kernel of these files', done.stderr)

    def test_what_does_not_compile_or_has_no_kernel(self):
        done = self.check('x.cu(3): error: nonsense', rc=1)
        self.assertEqual(done.returncode, 1)
        self.assertIn('error: nonsense', done.stderr)
        self.assertEqual(self.check('').returncode, 1)

    def test_without_nvcc_it_says_that_it_skips(self):
        done = subprocess.run([sys.executable, CHECK, '--nvcc', '/nowhere/nvcc', '--out', self.folder.name, 'kernels/x.cu'],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77)
        self.assertIn('skipped: no nvcc on PATH', done.stdout)


if __name__ == '__main__':
    unittest.main()
