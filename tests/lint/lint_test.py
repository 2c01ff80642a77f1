"""Each rule of tools/lint.py finds its seeded violation, at the right line, and a clean tree gives no finding."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADER = '// x.h: what it is.\n#pragma once\n'
# Split so that the linter does not find them in this file.
MARK = 'TO' + 'DO'
SKIP = 'GTEST_' + 'SKIP()'
SUPPRESS = 'NO' + 'LINT'
SWITCHED_OFF = 'DIS' + 'ABLED_'
ROOT_HOME = '/ro' + 'ot/'


class LintTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def lint(self, files, fmt=False):
        for name, text in files.items():
            path = os.path.join(self.dir, name)
            os.makedirs(os.path.dirname(path) or self.dir, exist_ok=True)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
        args = [sys.executable, os.path.join(ROOT, 'tools', 'lint.py'), '--root', self.dir]
        done = subprocess.run(args + ([] if fmt else ['--no-format']), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout.splitlines()

    def finds(self, files, start, text, fmt=False):
        """Exactly one finding, and it starts with `start` (file:line) and holds `text`."""
        found = self.lint(files, fmt)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start + ': '), found)
        self.assertIn(text, found[0])
        for name in files:
            os.remove(os.path.join(self.dir, name))

    def test_clean_tree(self):
        self.assertEqual(self.lint({
            'common/a.h': HEADER,
            'model/m.cc': '#include "common/a.h"\n#include "kernels/gemm/op.h"\n#include "model/backend.h"\n',
            'worker/engine/e.cc': '#include <torch/torch.h>\n',
            'coordinator/store/s.cc': '#include <sqlite3.h>\n',
            'coordinator/rpc/r.cc': '#include <grpcpp/grpcpp.h>\n',
            'kernels/lanes-inl.h': '// what\n#if defined(X) == defined(HWY_TARGET_TOGGLE)\n#endif\n',
            'kernels/rng.cc': '#include "common/philox.h"\n',
            'cli/main.cc': 'const char* v = std::getenv("X");\n',
            'tests/common/CMakeLists.txt': 'iha_test(common_test SRCS a_test.cc)\n',
            'tests/common/a_test.cc': 'TEST(A, B) { ' + SKIP + ' << "no data root"; }\n',
            'tests/coordinator/CMakeLists.txt': 'iha_test(sim_test SRCS b_test.cc ENV DIR=tests/sim)\n',
            'tests/coordinator/b_test.cc': '#include <sqlite3.h>\n#include "coordinator/store/s.h"\n',
            'tests/sim/a.sim': 'worker 1\n',
            'common/ok.cc': 'int x;  // ' + SUPPRESS + '(some-check): the reason\n',
        }), [])

    def test_size_budgets(self):
        self.finds({'common/a.h': HEADER + '\n' * 199}, 'common/a.h:201', 'budget 200')
        self.finds({'common/a.cc': '\n' * 501}, 'common/a.cc:501', 'budget 500')
        self.finds({'kernels/a.cu': '\n' * 601}, 'kernels/a.cu:601', 'budget 600')

    def test_budget_itself_is_allowed(self):
        self.assertEqual(self.lint({'common/a.h': HEADER + '\n' * 198, 'common/a.cc': '\n' * 500}), [])

    def test_includes_by_folder(self):
        for name, include in [('common/a.cc', 'kernels/gemm/op.h'), ('kernels/a.cc', 'common/ids.h'),
                              ('proto/codec/a.cc', 'model/backend.h'), ('model/tokenizer/a.cc', 'model/backend.h'),
                              ('model/transformer/a.cc', 'benchmarks/benchmark.h'), ('benchmarks/a.cc', 'reports/snapshot.h'),
                              ('reports/a.cc', 'benchmarks/benchmark.h'), ('coordinator/a.cc', 'model/backend.h'),
                              ('worker/runner/a.cc', 'coordinator/store/store.h'), ('worker/tools/a.cc', 'proto/codec/c.h'),
                              ('worker/engine/a.cc', 'proto/codec/c.h'), ('cli/a.cc', 'model/backend.h')]:
            with self.subTest(name):
                self.finds({name: f'\n#include "{include}"\n'}, f'{name}:2', include)

    def test_libraries_stop_at_their_border(self):
        for name, include, library in [('model/checkpoint/a.cc', 'torch/torch.h', 'Torch'), ('cli/a.cc', 'ATen/ATen.h', 'Torch'),
                                       ('coordinator/lease/a.cc', 'sqlite3.h', 'SQLite'),
                                       ('coordinator/lease/a.cc', 'grpcpp/grpcpp.h', 'gRPC'),
                                       ('kernels/a.cc', 'absl/status/status.h', 'abseil')]:
            with self.subTest(name + library):
                self.finds({name: f'#include <{include}>\n'}, f'{name}:1', library)

    def test_environment_only_in_main(self):
        self.finds({'worker/runner/a.cc': 'auto v = std::getenv("X");\n'}, 'worker/runner/a.cc:1', 'environment')

    def test_unregistered_test(self):
        self.finds({'tests/common/CMakeLists.txt': '# a_test.cc is only in a comment\niha_test(t SRCS aa_test.cc)\n',
                    'tests/common/a_test.cc': ''}, 'tests/common/a_test.cc:1', 'never runs')

    def test_unregistered_fuzz_target(self):
        self.finds({'tests/fuzz/CMakeLists.txt': '', 'tests/fuzz/a_fuzz.cc': ''}, 'tests/fuzz/a_fuzz.cc:1', 'never runs')

    def test_sim_without_runner(self):
        self.finds({'tests/sim/a.sim': ''}, 'tests/sim/a.sim:1', 'no test reads')

    def test_sim_in_another_folder(self):
        self.finds({'tests/CMakeLists.txt': 'x(tests/sim)', 'tests/coordinator/a.sim': ''}, 'tests/coordinator/a.sim:1',
                   'no test reads')

    def test_skip_without_reason(self):
        self.finds({'tests/support/a.cc': '\n  ' + SKIP + ';\n'}, 'tests/support/a.cc:2', 'reason')

    def test_switched_off_test(self):
        self.finds({'tests/support/a.cc': 'TEST(A, ' + SWITCHED_OFF + 'B) {}\n'}, 'tests/support/a.cc:1', 'switched off')

    def test_unfinished_mark(self):
        self.finds({'docs/a.md': 'one\n' + MARK + ': write this\n'}, 'docs/a.md:2', MARK)

    def test_suppression_without_reason(self):
        for tail in ['', '(some-check)', ':', ' reason without a colon']:
            self.finds({'common/a.cc': 'int x;  // ' + SUPPRESS + tail + '\n'}, 'common/a.cc:1', 'suppression')

    def test_machine_path(self):
        self.finds({'tools/a.sh': '#!/usr/bin/env bash\ncd ' + ROOT_HOME + 'x\n'}, 'tools/a.sh:2', 'one machine')

    def test_header_without_contract(self):
        self.finds({'common/a.h': '#pragma once\n'}, 'common/a.h:1', 'leading comment')
        self.finds({'common/a.h': '// what\nint x;\n'}, 'common/a.h:1', 'pragma once')

    def test_scripts_parse(self):
        self.finds({'dev': '#!/usr/bin/env bash\nif true; then\n'}, 'dev:1', 'bash cannot parse')
        self.finds({'tools/a.py': 'x = 1\ndef f(:\n'}, 'tools/a.py:2', 'python cannot parse')

    def test_format(self):
        shutil.copy(os.path.join(ROOT, '.clang-format'), self.dir)
        self.finds({'common/a.cc': 'int x;\nint   y;\n'}, 'common/a.cc:2', './dev fmt', fmt=True)


if __name__ == '__main__':
    unittest.main()
