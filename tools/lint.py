#!/usr/bin/env python3
"""Checks of the whole tree that no compiler makes: ./dev lint [--root DIR] [--no-format].

One line per finding, "file:line: what; what to do"; exit 1 if there is any. Standard library only. Each rule is a
function from the tree to findings and has a seeded violation in tests/lint/lint_test.py.
"""
import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

CPP = ('.h', '.cc', '.cu', '.cuh')
BUDGET = {'.h': 200, '.cc': 500, '.cu': 600, '.cuh': 600}

# DESIGN section 3: what a folder may include of ours, the longest matching prefix decides. A folder may always include
# itself. Folders that are not listed (tests, bench, tools) may include anything.
MAY_INCLUDE = {
    'common': [],
    'kernels': ['common/philox.h'],
    'proto': ['common'],
    'model/tokenizer': ['common'],
    'model/checkpoint': ['common', 'kernels', 'model/tokenizer'],
    'model': ['common', 'kernels'],
    'benchmarks': ['common', 'model/tokenizer'],
    'reports': ['common', 'benchmarks/scoring'],
    'coordinator': ['common', 'proto', 'benchmarks', 'reports'],
    'worker/engine': ['common', 'model', 'benchmarks'],
    'worker/tools': ['common', 'model', 'benchmarks', 'worker/engine', 'worker/sandbox'],
    'worker': ['common', 'proto', 'benchmarks', 'model'],
    'cli': ['common', 'proto', 'reports', 'benchmarks', 'model/tokenizer', 'model/checkpoint', 'coordinator'],
}
OURS = ('common', 'kernels', 'proto', 'model', 'benchmarks', 'reports', 'coordinator', 'worker', 'cli', 'tests', 'bench')

# Libraries that stop at a border: (include pattern, folders that may, folders within those that may not, name).
BORDERS = [
    (re.compile(r'^(torch|ATen|c10|caffe2)/'), ('model/', 'worker/engine/'), ('model/tokenizer/', 'model/checkpoint/'),
     'Torch'),
    (re.compile(r'^sqlite3(ext)?\.h$'), ('coordinator/store/',), (), 'SQLite'),
    (re.compile(r'^(grpcpp|grpc)/|\.grpc\.pb\.h$'), ('coordinator/rpc/', 'worker/link/', 'proto/link/', 'cli/'), (), 'gRPC'),
    (re.compile(r'^(absl|nlohmann|spdlog|fmt)/'), tuple(f + '/' for f in OURS if f != 'kernels'), (),
     'abseil, fmt, spdlog and JSON'),
]
BORDER_FREE = ('tests/', 'bench/', 'tools/')

# Split so that this file does not find itself.
UNFINISHED = re.compile(r'\b(' + '|'.join(['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK']) + r')\b')
MACHINE_PATH = re.compile(r'(?<![\w.\-}*])/(?:wo' + r'rk|ro' + r'ot)/|(?<![\w.])/t' + r'mp/w(?:/|\b)')
NOLINT = re.compile(r'//\s*NO' + r'LINT(?:NEXTLINE|BEGIN)?(?!END)\b(\([^)]+\))?(:\s*\S.*)?')
SKIP = re.compile(r'GTEST_' + r'SKIP\(\)\s*(;|$)')
DISABLED = re.compile(r'\bDIS' + r'ABLED_\w')
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
GETENV = re.compile(r'\b(?:secure_)?getenv\s*\(')


class Tree:
    """The files of a checkout: what git tracks and what it would track; outside of git, all files."""

    def __init__(self, root):
        self.root = root
        self.names = sorted(n for n in self._list() if os.path.isfile(os.path.join(root, n)))
        self._text = {}

    def _list(self):
        done = subprocess.run(['git', '-C', self.root, 'ls-files', '-z', '-co', '--exclude-standard'],
                              capture_output=True, check=False)
        if os.path.exists(os.path.join(self.root, '.git')) and done.returncode == 0:
            return [n for n in done.stdout.decode().split('\0') if n]
        return [os.path.relpath(os.path.join(d, f), self.root) for d, _, fs in os.walk(self.root) for f in fs]

    def lines(self, name):
        """The lines of a text file; none for a binary one."""
        if name not in self._text:
            with open(os.path.join(self.root, name), 'rb') as file:
                data = file.read()
            self._text[name] = [] if b'\0' in data[:4096] else data.decode('utf-8', 'replace').splitlines()
        return self._text[name]

    def cpp(self):
        return [n for n in self.names if n.endswith(CPP)]


def longest(prefixes, name):
    """The longest of the folder names that holds the file, or None."""
    return max((p for p in prefixes if name.startswith(p + '/')), key=len, default=None)


def check_size(tree):
    for name in tree.cpp():
        budget, count = BUDGET[os.path.splitext(name)[1]], len(tree.lines(name))
        if count > budget:
            yield name, budget + 1, f'{count} lines, budget {budget}; split it by concept'


def check_includes(tree):
    for name in tree.cpp():
        folder = longest(MAY_INCLUDE, name)
        for number, line in enumerate(tree.lines(name), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            path = found.group(2)
            if folder is not None and found.group(1) == '"' and path.split('/')[0] in OURS:
                if not any(path == a or path.startswith(a + '/') for a in MAY_INCLUDE[folder] + [folder]):
                    yield name, number, (f'{folder}/ may not include {path}; it may include '
                                         f'{", ".join(MAY_INCLUDE[folder]) or "nothing of ours"}')
            if name.startswith(BORDER_FREE):
                continue
            for pattern, may, but_not, library in BORDERS:
                if pattern.search(path) and (not name.startswith(may) or name.startswith(but_not)):
                    yield name, number, f'{library} stops before this folder; {path} may be included in {", ".join(may)} only'


def check_environment(tree):
    for name in tree.cpp():
        base = os.path.basename(name)
        if name.startswith(('tests/', 'bench/')) or base == 'main.cc' or base.endswith('_main.cc'):
            continue
        for number, line in enumerate(tree.lines(name), 1):
            if GETENV.search(line.split('//')[0]):
                yield name, number, 'the environment is read outside of main; read it in main.cc and pass the value in'


def cmake_texts(tree, under):
    return {os.path.dirname(n): '\n'.join(l.split('#')[0] for l in tree.lines(n))
            for n in tree.names if n.startswith(under) and n.endswith('CMakeLists.txt')}


def check_registered(tree):
    lists = cmake_texts(tree, 'tests/')
    for name in tree.names:
        if not name.startswith('tests/'):
            continue
        if name.endswith(('_test.cc', '_fuzz.cc', '_test.py')):
            folder, known = os.path.dirname(name), False
            while folder and not known:
                relative = re.escape(os.path.relpath(name, folder))
                known = re.search(r'(^|[\s"(/])' + relative + r'($|[\s")])', lists.get(folder, ''), re.M) is not None
                folder = os.path.dirname(folder)
            if not known:
                yield name, 1, 'no CMakeLists.txt names this test, so it never runs; add it to the one of its folder'
        elif name.endswith('.sim'):
            pattern = re.compile(r'tests/sim\b|\.sim\b|(^|[\s"(])' + re.escape(os.path.basename(name)) + r'\b', re.M)
            if not name.startswith('tests/sim/') or not any(pattern.search(text) for text in lists.values()):
                yield name, 1, 'no test reads this script; keep it in tests/sim and name tests/sim in the CMakeLists.txt of its runner'


def check_skips(tree):
    for name in tree.cpp():
        for number, line in enumerate(tree.lines(name), 1):
            if SKIP.search(line):
                yield name, number, 'a skip without a reason; write GTEST_SKIP() << "why"'
            if DISABLED.search(line):
                yield name, number, 'a test that is switched off; repair it or remove it'


def check_unfinished(tree):
    for name in tree.names:
        for number, line in enumerate(tree.lines(name), 1):
            found = UNFINISHED.search(line)
            if found:
                yield name, number, f'{found.group(1)} marks unfinished work; finish it or file an issue and remove the mark'


def check_suppressions(tree):
    for name in tree.cpp():
        for number, line in enumerate(tree.lines(name), 1):
            found = NOLINT.search(line)
            if found and not found.group(2):
                yield name, number, 'a suppression without a reason; write NOLINT(check): why'


def check_machine_paths(tree):
    for name in tree.names:
        for number, line in enumerate(tree.lines(name), 1):
            if MACHINE_PATH.search(line):
                yield name, number, 'a path of one machine; name files relative to the repository or take a flag'


def check_header_comment(tree):
    for name in tree.cpp():
        if not name.endswith('.h'):
            continue
        lines = tree.lines(name)
        if not lines or not lines[0].startswith(('//', '/*')):
            yield name, 1, 'no leading comment; open the header with its contract (what, units, thread, ownership, errors)'
        # Highway compiles an -inl.h once per instruction set, on purpose; it carries its own toggle guard.
        if not name.endswith('-inl.h') and not any(l.strip() == '#pragma once' for l in lines[:60]):
            yield name, 1, 'no #pragma once in the first 60 lines; add it below the contract'


def check_scripts(tree):
    for name in tree.names:
        lines = tree.lines(name)
        first = lines[0] if lines else ''
        if name.endswith('.sh') or (first.startswith('#!') and 'bash' in first):
            done = subprocess.run(['bash', '-n', os.path.join(tree.root, name)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = done.stderr.strip().splitlines()[0] if done.stderr.strip() else 'no message'
                yield name, 1, f'bash cannot parse it ({said.split(name + ": ")[-1]}); run bash -n on it'
        elif name.endswith('.py'):
            try:
                ast.parse('\n'.join(lines), name)
            except SyntaxError as error:
                yield name, error.lineno or 1, f'python cannot parse it ({error.msg}); run python3 -m py_compile on it'


def check_format(tree):
    files = tree.cpp()
    if not files:
        return
    tool = shutil.which('clang-format-14')
    if tool is None:
        yield 'dev', 1, 'clang-format-14 is not installed; run ./dev deps test'
        return

    def run(batch):
        return subprocess.run([tool, '--dry-run', '--style=file', '-ferror-limit=1', *batch], cwd=tree.root,
                              capture_output=True, text=True, check=False).stderr

    batches = [files[i:i + 16] for i in range(0, len(files), 16)]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        said = '\n'.join(pool.map(run, batches))
    seen = set()
    for found in re.finditer(r'^(\S+?):(\d+):\d+: (?:warning|error): ', said, re.M):
        if found.group(1) not in seen:
            seen.add(found.group(1))
            yield found.group(1), int(found.group(2)), 'not formatted; run ./dev fmt'


RULES = [check_size, check_includes, check_environment, check_registered, check_skips, check_unfinished, check_suppressions,
         check_machine_paths, check_header_comment, check_scripts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--root', default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument('--no-format', action='store_true', help='leave clang-format out')
    args = parser.parse_args()
    tree = Tree(args.root)
    findings = [f for rule in RULES + ([] if args.no_format else [check_format]) for f in rule(tree)]
    for name, line, text in sorted(findings):
        print(f'{name}:{line}: {text}')
    print(f'lint: {len(tree.names)} files, {len(findings)} findings', file=sys.stderr)
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
