#!/usr/bin/env python3
"""Compiles kernels with nvcc, as the build does, and holds ptxas to a table: nvcc_check.py --nvcc PATH --arch sm_90a --out DIR [--table FILE] FILE...

Fails if a file does not compile, a kernel spills registers or keeps a stack frame, or, with a table (lines "kernel
registers", '#' comments), a kernel needs more registers than its line says, has no line, or a line has no kernel. Prints
one line per kernel. Exit 77 (skipped) with the reason if there is no nvcc.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '([^']+)' for")
STACK = re.compile(r'(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads')
REGISTERS = re.compile(r'Used (\d+) registers')


def demangle(names):
    tool = shutil.which('c++filt')
    if tool is None or not names:
        return {n: n for n in names}
    said = subprocess.run([tool, *names], capture_output=True, text=True, check=True).stdout.splitlines()
    # iha::kernels::(anonymous namespace)::Foo<64, true>(Args) -> Foo<64,true>; nvcc numbers anonymous namespaces
    short = []
    for name in said:
        name = re.sub(r'\(anonymous namespace\)::|_GLOBAL__N__\w+::', '', name)
        name = re.sub(r'\([\w: ]+\)(?=\d|true|false)|(?<=\d)u\b', '', name)  # (bool)1, (Enum)2, 3u
        name = re.sub(r'^void |^iha::kernels::', '', re.sub(r'^void ', '', name).split('(')[0])
        short.append(name.replace(' ', ''))
    return dict(zip(names, short))


def kernels(text):
    """(kernel, registers, stack bytes, spilled bytes) of each entry in what ptxas -v said."""
    found, name, stack, spill = [], None, 0, 0
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            name, stack, spill = entry.group(1), 0, 0
        elif frame := STACK.search(line):
            stack, spill = int(frame.group(1)), int(frame.group(2)) + int(frame.group(3))
        elif (used := REGISTERS.search(line)) and name:
            found.append((name, int(used.group(1)), stack, spill))
            name = None
    return found


def read_table(path):
    table = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = line.split('#')[0].split()
            if words:
                table[words[0]] = int(words[1])
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--nvcc', default='nvcc')
    parser.add_argument('--arch', default='sm_90a')
    parser.add_argument('--launcher', help='a compiler cache to call nvcc through')
    parser.add_argument('--out', required=True)
    parser.add_argument('--table')
    parser.add_argument('--allow-stack', action='store_true', help='kernels may keep a stack frame (test kernels do)')
    parser.add_argument('files', nargs='+')
    args = parser.parse_args()
    if shutil.which(args.nvcc) is None:
        print('skipped: no nvcc on PATH; install the CUDA 13 toolkit to compile the kernels')
        return 77
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    os.makedirs(args.out, exist_ok=True)
    bad, seen = [], {}
    launcher = [args.launcher] if args.launcher else []
    for name in args.files:
        target = os.path.join(args.out, os.path.basename(name) + '.o')
        done = subprocess.run([*launcher, args.nvcc, '-std=c++20', '-O3', '-fmad=false', '-arch=' + args.arch, '-I', root, '-Xptxas', '-v',
                               '-x', 'cu', '-c', os.path.join(root, name), '-o', target],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            bad.append(f'{name}: nvcc -arch={args.arch} fails:\n{done.stderr.strip()}')
            continue
        found = kernels(done.stderr)
        if not found:
            bad.append(f'{name}: no kernel in what ptxas says')
        names = demangle([f[0] for f in found])
        for mangled, registers, stack, spill in found:
            kernel = names[mangled]
            seen[kernel] = registers
            print(f'{kernel} {registers} registers, {stack} bytes of stack, {spill} spilled')
            if spill > 0 or (stack > 0 and not args.allow_stack):
                bad.append(f'{name}: {kernel} spills {spill} bytes and keeps {stack} bytes of stack, expected none')
    if args.table:
        table = read_table(args.table)
        for kernel, registers in seen.items():
            if kernel not in table:
                bad.append(f'{args.table}: no line for {kernel} ({registers} registers); add one')
            elif registers > table[kernel]:
                bad.append(f'{kernel} needs {registers} registers, {args.table} allows {table[kernel]}')
        bad += [f'{args.table}: {kernel} is no kernel of these files; remove its line' for kernel in table if kernel not in seen]
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
