#!/usr/bin/env python3
"""The module of numerics `fast`: fast_module_symbols_test.py MODULE LIBTORCH_LIB.

It shows one symbol; it names LibTorch's CUDA part among what it needs; each symbol of LibTorch's that it leaves open,
the caching allocator among them, is there in the LibTorch that it was linked against; and it has code for GPUs in it.
"""
import re
import subprocess
import sys

ALLOCATOR = '_ZN3c104cuda20CUDACachingAllocator9allocatorE'
LIBRARIES = ('libtorch_cuda.so', 'libc10_cuda.so', 'libtorch_cpu.so', 'libc10.so')


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def main():
    module, torch = sys.argv[1:]
    bad = []
    shown = [line.split()[-1] for line in lines('nm', '-D', '--defined-only', module)]
    # What is thrown on one side and caught on the other is known by its type's name.
    shown = [name for name in shown if not re.match(r'_ZT[ISV]N3c10', name)]
    if shown != ['iha_backend_module']:
        bad.append(f'{module} shows {shown}; expected iha_backend_module alone')
    needed = set(re.findall(r'NEEDED.*\[(.*)\]', '\n'.join(lines('readelf', '-d', module))))
    for name in LIBRARIES:
        if name not in needed:
            bad.append(f'{module} does not need {name}; it needs {sorted(needed)}')
    there = {line.split()[-1].split('@')[0] for name in LIBRARIES for line in lines('nm', '-D', '--defined-only', f'{torch}/{name}')}
    names = [line.split()[-1].split('@')[0] for line in lines('nm', '-D', '--undefined-only', module)]
    torches = [name for name in names if re.match(r'_ZNK?(2at|3c10|5torch)', name)]
    absent = [name for name in torches if name not in there]
    if absent or len(torches) < 10:
        bad.append(f'{module} leaves {len(torches)} symbols to LibTorch, of which it lacks {absent}')
    if ALLOCATOR not in names:
        bad.append(f'{module} does not use the caching allocator of LibTorch ({ALLOCATOR})')
    ours = [name for name in names if re.search(r'3iha|^cu[A-Z]|^cuda', name)]
    if ours:
        bad.append(f'{module} leaves open: {ours}')
    if not any('.nv_fatbin' in line for line in lines('readelf', '-SW', module)):
        bad.append(f'{module} has no code for a GPU')
    print(f'{len(torches)} symbols of LibTorch')
    print('\n'.join(bad), file=sys.stderr, end='')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
