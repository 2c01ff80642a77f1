"""Generated strings and id sequences on which tokenizers like to differ. Equal seeds give equal streams.

A string is built of atoms: one atom is a short text of one kind of trouble (a combining mark, a ZWJ emoji, a special
token, a run of spaces ...). The kinds are drawn per string, so that some strings hold one kind only and others mix all.
"""
import random

MARKS = ["\u0300", "\u0301", "\u0308", "\u030a", "\u0323", "\u0345", "\u05b4", "\u064e", "\u093f", "\u0e31", "\u20dd",
         "\u3099", "\ufe0f", "\U0001d165"]
COMPOSED = ["é", "e\u0301", "Å", "\u212b", "A\u030a", "ạ̈", "가", "각", "ᄀ", "ᅡ", "ᆨ", "ﬁ", "ﬀ", "①", "½", "Ⅷ", "ﾊﾟ", "が", "か\u3099",
            "\u0958", "\u2126", "ŉ", "ǅ", "İ", "ı", "ß", "ẞ", "Σ", "ς", "\u1e9b\u0323", "\ufb1d", "\ufdfa"]
EMOJI = ["🎉", "👨‍👩‍👧", "👩🏽‍🚀", "🏳️‍🌈", "🇩🇪", "🇩🇪🇫🇷", "❤️", "☎", "1️⃣", "🧑🏿", "\u200d", "\U0001f3fb", "🅰", "ⓐ"]
CJK = ["世界", "漢字", "日本語", "かな", "カタカナ", "ー", "、", "。", "「", "」", "，", "한국어", "ㄱ", "𠀀", "\U0002ebf0", "〇", "々", "㍿", "１２", "Ａ"]
RTL = ["שלום", "مرحبا", "\u200f", "\u202e", "\u202c", "\u061c", "٣٤", "۴", "׳", "ـ", "اَلْ"]
SCRIPTS = ["Привет", "Ελλάδα", "हिन्दी", "ไทย", "ไทย๓", "தமிழ்", "ქართ", "አማ", "Ἀθ", "ﬂ", "ʰ", "ª", "º", "\u0378", "\uf8ff", "\U0001d7d8", "𝐀",
           "\U00010400", "\U0001e900"]
CONTROLS = ["\x00", "\x01", "\x07", "\x08", "\x0b", "\x0c", "\x1b", "\x1c", "\x1f", "\x7f", "\x80", "\x85", "\x9f", "\xa0", "\xad",
            "\u180e", "\u200b", "\u200c", "\u2028", "\u2029", "\u205f", "\u2060", "\u3000", "\u1680", "\ufeff", "\ufffd", "\ufffe", "\uffff",
            "\U0010ffff", "\U000e0041"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\t\t ", " \u00a0 ", "\u3000"]
RUNS = [" ", "\n", "\t", "\r\n", "0", "7", "a", "A", "=", "-", ".", "▁", "é", "世", "🎉", "ab", " a", "\u0301", "'", "\u200d"]
WORDS = ["the", "The", "THE", "don't", "I'LL", "it's", "we've", "'S", "\u017f", "x\u017f", "you're", "hello", "world", "hello world",
         "function", "camelCase", "snake_case", "HTTPServer", "naïve", "café", "café", "İstanbul", "a", "I", "_", "__init__"]
CODE = ["def f(x):\n    return x", "if (a && b) {\n\t", "};\n", "// ", "/* */", "#include <", "->", "::", "!=", "<<48/2=24>>", "0x1F", "1e-9",
        "3.14", "1,000", "$18", "50%", "\\frac{1}{2}", "\\boxed{", "`", "```python\n", '"', "'''", "{}", "[]", "()", "<|", "|>", "&amp;"]
DIGITS = ["0", "12", "123", "1234", "12345", "1234567890", "٣", "๓", "²", "½", "Ⅷ", "④", "\U0001d7d9", "1st", "v2"]
BYTE_LIKE = ["<0x41>", "<0xFF>", "<0x0A>", "<0x", "▁", "▁▁", "▁a", " ▁", "Ġ", "Ċ", "Ġa", "</w>", "##"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["…", "—", "«", "»", "¿", "€", "©", "™", "‿", "°", "±", "→", "∑", "。"]

KINDS = [MARKS, COMPOSED, EMOJI, CJK, RTL, SCRIPTS, CONTROLS, SPACES, WORDS, CODE, DIGITS, BYTE_LIKE, PUNCTUATION]


def any_char(rng):
    """A code point of a random plane; surrogates excluded, unassigned ones included."""
    low, high = rng.choice([(0, 0x7F), (0x80, 0x2FF), (0x300, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF),
                            (0x20000, 0x10FFFF)])
    return chr(rng.randint(low, high))


def atom(rng, kinds, added):
    kind = rng.random()
    if kind < 0.08:
        return any_char(rng)
    if kind < 0.16 and added:
        token = rng.choice(added)
        cut = rng.randint(1, len(token))
        return rng.choice([token, token, token, token[:cut], token[cut:], token.upper(), token + token])
    if kind < 0.22:
        return rng.choice(RUNS) * rng.randint(2, rng.choice([4, 9, 40]))
    return rng.choice(rng.choice(kinds))


def strings(seed, count, added=(), samples=()):
    """`count` strings. `added`: texts of the tokenizer's added tokens; `samples`: ordinary texts to cut pieces from."""
    rng = random.Random(seed)
    added = list(added)
    for _ in range(count):
        kinds = rng.sample(KINDS, rng.choice([1, 2, 3, len(KINDS)]))
        parts = [atom(rng, kinds, added) for _ in range(rng.choice([1, 2, 3, 5, 8, 13, 21]))]
        if samples and rng.random() < 0.15:
            sample = rng.choice(samples)
            at = rng.randint(0, max(0, len(sample) - 1))
            parts.insert(rng.randint(0, len(parts)), sample[at:at + rng.randint(1, 60)])
        yield rng.choice(["", "", "", " "]).join(parts)


def id_sequences(seed, count, limit, loud=()):
    """Random ids below `limit` + 3 (some name no token), with the ids of `loud` (bytes, special tokens) often."""
    rng = random.Random(seed)
    loud = list(loud)
    for _ in range(count):
        share = rng.choice([0.0, 0.3, 0.9]) if loud else 0.0
        yield [rng.choice(loud) if rng.random() < share else rng.randint(0, limit + 2)
               for _ in range(rng.choice([0, 1, 2, 4, 8, 16, 32]))]
