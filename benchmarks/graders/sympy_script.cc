#include "benchmarks/graders/sympy_script.h"

namespace iha::benchmarks {

// Rules: protocols.md section 2. The steps keep the order of the tools that they reproduce, since later ones see what
// earlier ones made; whatever raises there is a miss of that step here too. Clock time-outs of the tools are left out:
// each question says how much CPU time it may take; one that takes more ends this process.
const char kSympyScript[] = R"PY(
import json, math, re, resource, sys, time

def answer(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()

# ---- shared: the boxed answer of a text -----------------------------------------------------------------------------

def balanced_end(text, start):
    depth = 0
    for i in range(start, len(text)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return i + 1
    return None

def boxed(text):
    """The inside of the last box; None where there is none or the tools' assertions fail."""
    if "\\boxed " in text:
        return text.rsplit("\\boxed ", 1)[1].split("$")[0]
    start = text.rfind("\\boxed")
    if start < 0:
        start = text.rfind("\\fbox")
    end = balanced_end(text, start) if start >= 0 else None
    if end is None or not text.startswith("\\boxed{", start):
        return None
    return text[start + len("\\boxed{"):end - 1]

def is_zero(difference):
    """simplify(difference) == 0. Of 0/0 SymPy says nan or 0 as the addresses of its objects happen to lie; nan it is."""
    from sympy import nan, simplify
    return bool(difference.doit() is not nan and simplify(difference) == 0)

# ---- math.minerva: lm-evaluation-harness 0.4.13, minerva_math 3.1 ---------------------------------------------------

INVALID = "[invalidanswer]"
CLOSING = "I hope it is correct."
FINAL = re.compile(r"Final Answer: The final answer is(.*?). I hope it is correct.")
REWRITES = (("an ", ""), ("a ", ""), (".$", "$"), ("\\$", ""), ("\\ ", ""), (" ", ""), ("mbox", "text"),
            (",\\text{and}", ","), ("\\text{and}", ","), ("\\text{m}", "\\text{}"))
DROPPED = ("square", "ways", "integers", "dollars", "mph", "inches", "ft", "hours", "km", "units", "\\ldots", "sue",
           "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds", "meters", "meals", "edges",
           "students", "childrentickets", "multiples", "\\text{s}", "\\text{.}", "\\text{\ns}", "\\text{}^2",
           "\\text{}^3", "\\text{\n}", "\\text{}", "\\mathrm{th}", "^\\circ", "^{\\circ}", "\\;", ",\\!", "{,}", '"',
           "\\dots")
UNWRAPS = ((r"(.*?)\$(.*?)\$(.*)", r"$\2$"), (r"\\text\{(.*?)\}", r"\1"), (r"\\textbf\{(.*?)\}", r"\1"),
           (r"\\overline\{(.*?)\}", r"\1"), (r"\\boxed\{(.*)\}", r"\1"), (r"frac([^{])(.)", r"frac{\1}{\2}"),
           (r"sqrt(\[[^\]]*\])(\w)", r"sqrt\1{\2}"), (r"sqrt(?!\[)([^{])", r"sqrt{\1}"))
COMMAND = re.compile(r"(\\[a-zA-Z]+)")

def minerva_normal(text):
    text = text.rpartition("=")[2]
    words = [w for w in DROPPED if w.isalpha()]
    for word in words:
        text = re.sub(r"(?<!\\)\b" + word + r"\b", "", text)
    for old, new in REWRITES:
        text = text.replace(old, new)
    for piece in DROPPED:
        if piece in words:  # glued to its neighbours by now; names of commands stay whole
            text = "".join(part if i % 2 else part.replace(piece, "") for i, part in enumerate(COMMAND.split(text)))
        else:
            text = text.replace(piece, "")
    for pattern, new in UNWRAPS:
        text = re.sub(pattern, new, text)
    text = text.replace("$", "")
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+", text):
        text = text.replace(",", "")
    return text

def minerva_equal(given, gold):
    if given and given == gold:
        return True, "equal texts"
    from sympy.parsing.latex import parse_latex
    try:
        difference = parse_latex(given) - parse_latex(gold)
    except MemoryError:
        raise
    except Exception as error:
        return False, "SymPy can't read or subtract them (%s)" % type(error).__name__
    try:
        equal = is_zero(difference)
    except MemoryError:
        raise
    except Exception as error:
        return False, "SymPy can't simplify the difference (%s)" % type(error).__name__
    return equal, "SymPy: the difference is %s" % ("zero" if equal else "not zero")

def minerva_answer(text):
    match = FINAL.search(text + CLOSING)
    return match.group(1).strip() if match else None

def minerva(gold, given):
    gold, given = minerva_normal(gold), minerva_normal(given)
    equal, why = minerva_equal(given, gold)
    return dict(normal=given, gold=gold, correct=equal, reason=why)

# ---- math.prm800k: the grader of openai/prm800k ---------------------------------------------------------------------

def unwrapped_text(text):
    match = re.search(r"^\\text\{(.+?)\}$", text)
    return text if match is None else match.group(1)

def first_arguments(text, command, count):
    """Braces the bare one-character arguments behind each command; IndexError where one has nothing behind it."""
    head, *tails = text.split(command)
    out = head
    for tail in tails:
        if tail[0] == "{":
            out += command + tail
        elif count == 1:
            out += command + "{" + tail[0] + "}" + tail[1:]
        elif len(tail) < 2:
            return text
        elif tail[1] == "{":
            out += command + "{" + tail[0] + "}" + tail[1:]
        else:
            out += command + "{" + tail[0] + "}{" + tail[1] + "}" + tail[2:]
    return out

def slash_as_frac(text):
    parts = text.split("/")
    if len(parts) != 2:
        return text
    try:
        a, b = int(parts[0]), int(parts[1])
    except ValueError:
        return text
    return "\\frac{%d}{%d}" % (a, b) if text == "%d/%d" % (a, b) else text

def mathd_strip(text):
    for old, new in (("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\left", ""),
                     ("\\right", ""), ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", "")):
        text = text.replace(old, new)
    if text.count("\\text{ ") > 1:
        raise ValueError("two units")
    text = text.split("\\text{ ")[0]
    for old, new in (("\\%", ""), (" .", " 0."), ("{.", "{0.")):
        text = text.replace(old, new)
    if not text:
        return text
    if text[0] == ".":
        text = "0" + text
    name = text.split("=")
    if len(name) == 2 and len(name[0]) <= 2:
        text = name[1]
    text = first_arguments(text, "\\sqrt", 1).replace(" ", "")
    text = first_arguments(text, "\\frac", 2)
    return slash_as_frac("\\frac{1}{2}" if text == "0.5" else text)

def mathd_normal(text):
    text = text.strip()
    try:
        inner = unwrapped_text(text)
        text = inner.strip() if inner is not text else text
        return mathd_strip(text)
    except (IndexError, ValueError):
        return text

UNITS = ("degree", "cm", "centimeter", "meter", "mile", "second", "minute", "hour", "day", "week", "month", "year",
         "foot", "feet", "inch", "yard")

def as_float(text):
    try:
        return float(text)
    except ValueError:
        return None

def near_int(x):
    try:
        return x is not None and abs(x - int(round(x))) <= 1e-7
    except (OverflowError, ValueError):
        return False

def without_thousands(text):
    while True:
        shorter = re.sub(r"(\d),(\d\d\d)($|\D)", r"\1\2\3", text)
        if shorter == text:
            return text
        text = shorter

def is_int_text(text):
    return near_int(as_float(without_thousands(text)))

def plain_of_latex(text):
    from pylatexenc.latex2text import LatexNodes2Text
    for old, new in (("\\tfrac", "\\frac"), ("\\dfrac", "\\frac"), ("\\frac", " \\frac")):
        text = text.replace(old, new)
    text = LatexNodes2Text().latex_to_text(text)
    for old, new in (("\u221a", "sqrt"), ("\u03c0", "pi"), ("\u221e", "inf"), ("\u222a", "U"), ("\u00b7", "*"),
                     ("\u00d7", "*")):
        text = text.replace(old, new)
    return text.strip()

def prm_normal(text):
    text = unwrapped_text(text)
    for old, new in (("\\%", "%"), ("\\$", "$"), ("$", ""), ("%", ""), (" or ", " , "), (" and ", " , "),
                     ("million", "*10^6"), ("billion", "*10^9"), ("trillion", "*10^12")):
        text = text.replace(old, new)
    for unit in UNITS:
        text = re.sub(unit + r"(es)?(s)? *(\^[0-9]+)?", "", text)
    text = re.sub(r"\^ *\\circ", "", text)
    if text and text[0] == "{" and text[-1] == "}":
        text = text[1:-1]
    text = re.sub(r",\\! *", "", text)
    number = as_float(text)
    if near_int(number):
        text = str(int(round(number)))
    if "\\" in text:
        try:
            text = plain_of_latex(text)
        except MemoryError:
            raise
        except Exception:
            pass
    text = re.sub("- *", "-", text)
    text = re.sub("([0-9]) +([0-9])", r"\1+\2", text)
    text = text.replace(" ", "").replace("{", "").replace("}", "").lower()
    if is_int_text(text):
        text = str(int(float(text.replace(",", ""))))
    return text

BRACKETS = "()[]"

def elements(text):
    text = without_thousands(text)
    if not text:
        return []
    inside = text[1:-1]
    if len(text) > 2 and text[0] in BRACKETS and text[-1] in BRACKETS and not any(c in inside for c in BRACKETS):
        return [part.strip() for part in inside.split(",")]
    return [text]

def is_fraction_text(text):
    return re.search(r"^-?[0-9]+.?/0*[1-9][0-9]*.?$", text) is not None

def sympy_zero(gold, given):
    text = "(%s)-(%s)" % (gold, given)
    letters = {c for c in text.replace("sqrt", "").replace("frac", "") if c.isalpha()}
    if len(letters) > 2 or re.search(r"\^\{|\^\(|\^[0-9]+\^|\^[0-9][0-9]+", text):
        return False, "refused before SymPy (more than 2 letters, or a long exponent)"
    import sympy
    from sympy.parsing import sympy_parser as parser
    rules = parser.standard_transformations + (parser.implicit_multiplication_application,)
    try:
        equal = is_zero(parser.parse_expr(text.replace("^", "**"), transformations=rules))
    except MemoryError:
        raise
    except Exception as error:
        return False, "SymPy raises %s" % type(error).__name__
    return equal, "SymPy: the difference is %s" % ("zero" if equal else "not zero")

def prm_equal(given, gold):
    if mathd_normal(given) == mathd_normal(gold):
        return True, "equal after mathd normalisation"
    left, right = prm_normal(given), prm_normal(gold)
    if left == right:
        return True, "equal normal forms"
    if not left:
        return False, "empty"
    golds, givens = elements(right), elements(left)
    if len(golds) > 1 and (left[0] != right[0] or left[-1] != right[-1]):
        return False, "different brackets"
    if len(golds) != len(givens):
        return False, "different number of elements"
    why = "no elements"
    for one, other in zip(golds, givens):
        if is_fraction_text(one) and is_fraction_text(other):
            equal, why = one == other, "fractions compare as texts"
        elif is_int_text(one) != is_int_text(other):
            equal, why = False, "exactly one is an integer"
        else:
            equal, why = sympy_zero(one, other)
        if not equal:
            return False, why
    return True, why

def prm800k(gold, given):
    equal, why = prm_equal(given, gold)
    return dict(normal=prm_normal(given), gold=prm_normal(gold), correct=equal, reason=why)

# ---- the loop -------------------------------------------------------------------------------------------------------

WANTED = {"sympy": "1.14.0", "antlr4-python3-runtime": "4.11.0", "pylatexenc": "2.11"}

def check_libraries():
    from importlib import metadata
    for name, wanted in WANTED.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            return "%s is not installed (expected %s)" % (name, wanted)
        if found != wanted:
            return "%s is %s, expected %s" % (name, found, wanted)
    return None

GRADERS = {"math.minerva": minerva, "math.prm800k": prm800k}
ANSWERS = {"math.minerva": minerva_answer, "math.prm800k": boxed}

def bare(text, answer):
    inside = answer(text)
    return text if inside is None else inside

def grade(metric, form, gold, given):
    """form "output": given is a model's whole text and gold a solution or an answer; "pair": two answers."""
    if form == "output":
        gold = bare(gold, boxed)
        extracted = ANSWERS[metric](given)
        if metric == "math.minerva":
            valid = extracted is not None
            extracted = extracted if valid else INVALID
        else:
            extracted = given if extracted is None else extracted
            valid = bool(extracted.strip())
    else:
        if metric == "math.minerva":
            gold, given = bare(gold, minerva_answer), bare(given, minerva_answer)
        extracted, valid = given, True
    return dict(extracted=extracted, valid=valid, **GRADERS[metric](gold, extracted))

def forget(sympy):
    """What SymPy keeps from one question must not decide another."""
    sympy.core.cache.clear_cache()
    sympy.core.random.seed(0)

def allow(seconds):
    """The limit is on the process' whole life, so it moves with each question."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))

problem = check_libraries()
if problem is None:
    import sympy, sympy.core.random, sympy.parsing.latex, pylatexenc.latex2text
    import sympy.parsing.latex._parse_latex_antlr
answer(ready=problem is None, missing=problem)
for line in sys.stdin:
    question = json.loads(line)
    allow(question["cpu_seconds"])
    forget(sympy)
    try:
        answer(**grade(question["metric"], question["form"], question["gold"], question["given"]))
    except MemoryError:
        answer(error="out of memory")
    except RecursionError:
        answer(error="nested too deeply")
)PY";

}  // namespace iha::benchmarks
