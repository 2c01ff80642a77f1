#!/usr/bin/env python3
"""Operators of torch.ops.iha beside plain torch expressions: torch_ops_test.py LIBRARY [PYTHON WITH TORCH].

Runs itself with the given interpreter, or that of IHA_EVAL_TORCH_PYTHON, where this one has no torch. Exit 77 (skipped)
with the reason where none has.
"""
import os
import subprocess
import sys
import unittest

try:
    import torch
except ImportError:
    torch = None

LIBRARY = sys.argv[1] if len(sys.argv) > 1 else ''


def rotate(x, cos, sin):
    """x [.., T, H, d] by tables [T, d / 2], pairs half a row apart."""
    half = x.shape[-1] // 2
    u, v = x[..., :half], x[..., half:]
    c, s = cos[:, None, :], sin[:, None, :]
    return torch.cat([u * c - v * s, v * c + u * s], dim=-1)


def visible(rows, keys, pseudo, window, token_causal, token_window):
    """[rows][keys]: what each row sees, the last at the last key's position."""
    position = torch.arange(keys - rows, keys)[:, None]
    key = torch.arange(keys)[None, :]
    last = position // pseudo * pseudo + pseudo - 1 if token_causal else position
    seen = key <= last
    if window and token_window:
        seen = seen & (key // pseudo > position // pseudo - window)
    elif window:
        seen = seen & (key > position - window)
    return seen


def attend(q, k, v, scale, seen):
    heads, kv_heads = q.shape[2], k.shape[2]
    k = k.repeat_interleave(heads // kv_heads, dim=2)
    v = v.repeat_interleave(heads // v.shape[2], dim=2)
    scores = torch.einsum('bqhd,bkhd->bhqk', q, k) * scale
    weights = torch.softmax(scores.masked_fill(~seen, float('-inf')), dim=-1)
    return torch.einsum('bhqk,bkhd->bqhd', weights, v)


class Ops(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    # Sums of at most a few hundred products of size 1 in fp32, in another order: 1e-5 is a hundred of their roundings.
    def same(self, got, want):
        self.assertEqual(got.shape, want.shape)
        self.assertEqual(got.dtype, torch.float32)
        torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)

    def test_mix_rope(self):
        batch, tokens, heads, pseudo, d = 2, 7, 3, 2, 16
        q, k, v = (torch.randn(batch, tokens, heads, d) for _ in range(3))
        alphas = [torch.randn(heads, heads, pseudo) for _ in range(3)]
        frequency = 10000.0 ** (-torch.arange(d // 2, dtype=torch.float64) * 2 / d)
        angles = torch.arange(tokens * pseudo, dtype=torch.float64)[:, None] * frequency
        cos, sin = angles.cos(), angles.sin()
        got = torch.ops.iha.mix_rope(q, k, v, *alphas, cos[::pseudo].float().contiguous(),
                                     sin[::pseudo].float().contiguous(), cos[:pseudo].float(), sin[:pseudo].float())
        for i, (x, alpha) in enumerate(zip((q, k, v), alphas)):
            mixed = torch.einsum('btmd,mhj->btjhd', x.double(), alpha.double())
            virtual = mixed.reshape(batch, tokens * pseudo, heads, d)
            self.same(got[i], virtual if i == 2 else rotate(virtual, cos, sin))

    def test_collapse(self):
        batch, tokens, heads, pseudo, d = 2, 5, 3, 4, 8
        a, v = (torch.randn(batch, tokens * pseudo, heads, d) for _ in range(2))
        rows = a.double().reshape(batch, tokens, pseudo, heads, d)
        unit = torch.nn.functional.normalize(v.double(), dim=-1)
        exclusive = a.double() - (a.double() * unit).sum(-1, keepdim=True) * unit
        per_head, whole = torch.randn(heads, pseudo), torch.randn(heads, heads * pseudo)
        self.same(torch.ops.iha.collapse(a, per_head, pseudo), torch.einsum('btjhd,hj->bthd', rows, per_head.double()))
        r = whole.double().reshape(heads, heads, pseudo)
        self.same(torch.ops.iha.collapse(a, whole, pseudo), torch.einsum('btjid,hij->bthd', rows, r))
        rows = exclusive.reshape(batch, tokens, pseudo, heads, d)
        self.same(torch.ops.iha.collapse(a, whole, pseudo, v), torch.einsum('btjid,hij->bthd', rows, r))

    def test_attention(self):
        for rows, keys, heads, kv_heads, pseudo, window, token_causal, token_window in [
                (70, 70, 4, 2, 1, 0, False, False), (6, 134, 3, 3, 2, 0, False, False),
                (8, 72, 2, 2, 4, 0, True, False), (20, 68, 4, 1, 2, 5, False, False), (9, 69, 2, 2, 3, 4, True, True)]:
            q, k, v = torch.randn(2, rows, heads, 8), torch.randn(2, keys, kv_heads, 8), torch.randn(2, keys, kv_heads, 8)
            got = torch.ops.iha.attention(q, k, v, pseudo=pseudo, window=window, token_causal=token_causal,
                                          token_window=token_window)
            seen = visible(rows, keys, pseudo, window, token_causal, token_window)
            self.same(got, attend(q.double(), k.double(), v.double(), 8 ** -0.5, seen))
        # Pairs of key heads that share a value.
        q, k, v = torch.randn(1, 5, 4, 8), torch.randn(1, 9, 4, 8), torch.randn(1, 9, 2, 16)
        got = torch.ops.iha.attention(q, k, v, scale=0.25)
        self.same(got, attend(q.double(), k.double(), v.double(), 0.25, visible(5, 9, 1, 0, False, False)))

    def test_talking_heads(self):
        q, k, v = torch.randn(2, 9, 4, 8), torch.randn(2, 70, 2, 8), torch.randn(2, 70, 2, 8)
        pre, post = torch.randn(4, 4), torch.randn(4, 4)
        scores = torch.einsum('bqhd,bkhd->bhqk', q.double(), k.double().repeat_interleave(2, dim=2)) * 8 ** -0.5
        mixed = torch.einsum('baqk,ac->bcqk', scores, pre.double())
        weights = torch.softmax(mixed.masked_fill(~visible(9, 70, 1, 12, False, False), float('-inf')), dim=-1)
        weights = torch.einsum('bcqk,ce->beqk', weights, post.double())
        want = torch.einsum('bhqk,bkhd->bqhd', weights, v.double().repeat_interleave(2, dim=2))
        self.same(torch.ops.iha.talking_heads(q, k, v, pre, post, window=12), want)

    def test_epilogues(self):
        y, v = torch.randn(2, 5, 4, 16), torch.randn(2, 5, 2, 16)
        unit = torch.nn.functional.normalize(v.double().repeat_interleave(2, dim=2), dim=-1)
        self.same(torch.ops.iha.xsa(y, v), y.double() - (y.double() * unit).sum(-1, keepdim=True) * unit)
        for g in (torch.randn(2, 5, 4), torch.randn(2, 5, 4, 16)):
            gate = torch.sigmoid(g.double())
            self.same(torch.ops.iha.gate(y, g), y.double() * (gate if g.dim() == 4 else gate[..., None]))
        even, odd = y.double()[:, :, ::2], y.double()[:, :, 1::2]
        logits = torch.randn(2, 5, 2)
        self.same(torch.ops.iha.diff_gated(y, logits), even - torch.sigmoid(logits.double())[..., None] * odd)
        weight = torch.randn(16)
        x = even - 0.3 * odd
        want = x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double() * 0.8
        self.same(torch.ops.iha.diff_normed(y, weight, 0.3, 1e-5, 0.8), want)

    def test_refusals_say_what_was_expected(self):
        y = torch.randn(1, 2, 4, 16)
        for message, call in [
                (r'iha::gate: g is \[1, 2, 3\]; expected', lambda: torch.ops.iha.gate(y, torch.randn(1, 2, 3))),
                (r'iha::xsa: v is float64|iha::xsa: v is Double', lambda: torch.ops.iha.xsa(y, y.double())),
                (r'iha::gate has no gradient', lambda: torch.ops.iha.gate(y.requires_grad_(), y)),
                (r'12 virtual tokens; expected a multiple of pseudo = 5',
                 lambda: torch.ops.iha.collapse(torch.randn(1, 12, 2, 8), torch.randn(2, 5), 5))]:
            with self.assertRaisesRegex(RuntimeError, message):
                call()
        with torch.no_grad():
            torch.ops.iha.gate(y, y)


def main():
    if torch is None:
        for python in (os.environ.get('IHA_EVAL_TORCH_PYTHON', ''), *sys.argv[2:3]):
            if python and os.access(python, os.X_OK):
                sys.exit(subprocess.run([python, __file__, LIBRARY]).returncode)
        print('skipped: no Python with torch; ./dev deps parity installs one, or IHA_EVAL_TORCH_PYTHON names it')
        sys.exit(77)
    torch.ops.load_library(LIBRARY)
    unittest.main(argv=sys.argv[:1])


if __name__ == '__main__':
    main()
