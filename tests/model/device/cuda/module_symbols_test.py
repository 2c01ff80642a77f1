#!/usr/bin/env python3
"""The CUDA module's file: module_symbols_test.py MODULE CUDA_LIBRARY EMULATED_LIBRARY...

It shows one symbol; it needs no library of CUDA's and none of LibTorch's to load; it has code for GPUs in it; and the
library that nvcc made has the launchers that the emulated one has.
"""
import re
import subprocess
import sys

# One of a template begins with what it returns.
LAUNCHER = re.compile(r'(?:int )?(iha::kernels::\w+(?:<[^>]*>)?\(.*), (?:iha::kernels::simt::Device|CUstream_st)\*\)$')


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def defined(*files):
    names = set()
    for line in lines('nm', '-C', '--defined-only', *files):
        words = line.split(' ', 2)
        if len(words) == 3 and words[1] in 'TW' and (found := LAUNCHER.match(words[2])):
            names.add(found.group(1))
    return names


def main():
    module, cuda, emulated = sys.argv[1], sys.argv[2].split(','), sys.argv[3].split(',')
    bad = []
    shown = [line.split()[-1] for line in lines('nm', '-D', '--defined-only', module)]
    if shown != ['iha_backend_module']:
        bad.append(f'{module} shows {shown}; expected iha_backend_module alone')
    open_ends = [line for line in lines('nm', '-DC', '--undefined-only', module) if re.search(r'iha::|\bcu[A-Z]|\bcuda|c10|at::', line)]
    if open_ends:
        bad.append(f'{module} leaves open: {open_ends}')
    needed = [line for line in lines('readelf', '-d', module) if 'NEEDED' in line and re.search(r'cuda|torch|c10|nv', line)]
    if needed:
        bad.append(f'{module} needs {needed}')
    if not any('.nv_fatbin' in line for line in lines('readelf', '-SW', module)):
        bad.append(f'{module} has no code for a GPU')
    there, here = defined(*emulated), defined(*cuda)
    if len(there) < 90 or there != here:
        bad.append(f'launchers: {len(there)} emulated, {len(here)} of nvcc; in one only: {sorted(there ^ here)}')
    print(f'{len(here)} launchers')
    print('\n'.join(bad), file=sys.stderr, end='')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
