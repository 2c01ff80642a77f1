#!/usr/bin/env python3
"""Validates what the built programs print and write against docs/schemas (JSON Schema 2020-12).

Usage: check_formats.py PROGRAM_FOLDER SCHEMA_FOLDER FAKE_CHECKPOINT SCRATCH_FOLDER [CASES_ROOT [DATA_ROOT]]
Every schema must be used by at least one output; objects are closed, so a new or lost field fails here.
"""
import json
import pathlib
import re
import subprocess
import sys

import jsonschema

bin_folder, schema_folder, model, scratch = map(pathlib.Path, sys.argv[1:5])
cases = pathlib.Path(sys.argv[5]) if len(sys.argv) > 5 else None
data = pathlib.Path(sys.argv[6]) if len(sys.argv) > 6 else None
schemas, used = {}, set()
for path in sorted(schema_folder.glob("*.schema.json")):
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    schemas[path.name.split(".")[0]] = jsonschema.Draft202012Validator(schema)


def run(*args, stdin="", code=0):
    done = subprocess.run([bin_folder / "iha-eval", *map(str, args)], input=stdin, capture_output=True, text=True,
                          timeout=120)
    if done.returncode != code:
        sys.exit(f"iha-eval {args[0]}: exit {done.returncode}, expected {code}: {done.stderr}")
    return done.stdout


def check(name, value, where):
    used.add(name)
    for error in schemas[name].iter_errors(value):
        sys.exit(f"{where}: {error.json_path}: {error.message} (docs/schemas/{name}.schema.json)")


def check_lines(name, text, where):
    lines = text.splitlines()
    if not lines:
        sys.exit(f"{where}: printed nothing")
    for line in lines:
        check(name, json.loads(line), where)


def check_refusals():
    """The schemas are tight: a field that nobody knows is refused, at the top and inside."""
    table = json.loads((scratch / "o/table.json").read_text())
    for spot in (table, table["rows"][0], table["rows"][0]["cells"][0], table["provenance"]):
        spot["surprise"] = 1
        if schemas["table"].is_valid(table):
            sys.exit("table.schema.json accepts an unknown field")
        del spot["surprise"]


def check_run():
    bench = "gsm8k_demo?samples=3&temperature=0.8"
    flags = ["run", "--model", model, "--bench", bench, "--bench", "gsm8k_demo", "--limit", 3, "--max-new-tokens", 48,
             "--numerics", "fake", "--threads", 1, "--quiet", "--db", scratch / "x.db", "--out", scratch / "o"]
    check("plan", json.loads(run(*flags, "--dry-run", "--json")), "run --dry-run")
    check("table", json.loads(run(*flags, "--json")), "run --json")
    for name in ("table", "run"):
        check(name, json.loads((scratch / f"o/{name}.json").read_text()), f"{name}.json")
    check_lines("samples", (scratch / "o/samples.jsonl").read_text(), "samples.jsonl")
    check_refusals()
    (scratch / "old.csv").write_text("Model,acc\nold,50.5\nnone,\n")
    check("table", json.loads(run("table", "--import", scratch / "old.csv", "--json")), "table of imported rows")
    listed = run("list", "--db", scratch / "x.db", "--json")
    check_lines("list", listed, "list")
    sweep = json.loads(listed)["sweep"]
    both = json.loads(run("table", "--db", scratch / "x.db", "--sweep", sweep, "--import", scratch / "old.csv", "--json"))
    check("table", both, "table with imported rows")
    check("fsck", json.loads(run("fsck", "--db", scratch / "x.db", "--json")), "fsck")
    check("explain", json.loads(run("explain", "--db", scratch / "x.db", "--sweep", sweep, "--model", model.name,
                                    "--item", 1, "--json")), "explain")
    check("profile", json.loads(run("profile", "--db", scratch / "x.db", "--sweep", sweep, "--json")), "profile")
    check_gate(sweep)
    check_choices()
    check_lines("regrade", run("regrade", "--db", scratch / "x.db", "--sweep", sweep, "--json"), "regrade")
    return sweep


def check_gate(sweep):
    name, db = f"{sweep[:12]}/{model.name}", ["--db", scratch / "x.db"]
    run("export", "--baseline", name, *db, "--out", scratch / "baseline.json")
    check("baseline", json.loads((scratch / "baseline.json").read_text()), "export --baseline")
    for margin in ("auto", "1.5"):
        gate = run("gate", *db, "--candidate", name, "--baseline", scratch / "baseline.json", "--margin", margin, "--json")
        check("gate", json.loads(gate), "gate")
    sequential = run("gate", *db, "--candidate", name, "--baseline", name, "--sequential", "--json", code=6)
    check("gate_sequential", json.loads(sequential), "gate --sequential")
    check("compare", json.loads(run("compare", *db, name, name, "--json")), "compare")


def check_choices():
    (scratch / "c.jsonl").write_text('{"question":"q","choices":["a","b"],"answer":1}\n')
    run("run", "--model", model, "--bench", f"choice:{scratch}/c.jsonl", "--numerics", "fake", "--threads", 1, "--quiet",
        "--db", scratch / "c.db", "--out", scratch / "c")
    samples = (scratch / "c/samples.jsonl").read_text()
    check_lines("samples", samples, "samples.jsonl of choices")
    if "choices" not in json.loads(samples):
        sys.exit(f"samples.jsonl of choices shows none: {samples}")
    sweep = json.loads(run("list", "--db", scratch / "c.db", "--json"))["sweep"]
    check("explain", json.loads(run("explain", "--db", scratch / "c.db", "--sweep", sweep, "--model", model.name,
                                    "--item", 0, "--json")), "explain of choices")
    check("bench", json.loads(run("bench", "show", "choice:FILE", "--json")), "bench show choice:FILE")


def check_coordinator(sweep):
    address = f"unix:{scratch}/c.sock"
    with subprocess.Popen([bin_folder / "iha-coordinator", "--listen", address, "--db", scratch / "x.db"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            client = ["--coordinator", address, "--json"]
            check_lines("list", run("list", *client), "list")
            check_lines("progress", run("status", *client, sweep), "status")
            check_lines("progress", run("watch", *client, sweep), "watch")
        finally:
            server.terminate()


def check_tools():
    check_lines("bench", run("bench", "list", "--json"), "bench list")
    check("bench", json.loads(run("bench", "show", "gsm8k", "--json")), "bench show")
    for metric in ("gsm8k.strict_match", "gsm8k.robust"):
        check_lines("score", run("score", "gsm8k", "--metric", metric,
                                 stdin='{"id":1,"gold":"18","output":"#### 18"}\n{"id":2,"gold":"18","output":"?"}\n'),
                    "score")
    check_lines("equiv", run("score", "equiv", "--metric", "math.robust", stdin='{"id":1,"gold":"0.5","answer":"1/2"}\n'),
                "equiv")
    check_lines("score_ruler", run("score", "ruler",
                                   stdin='{"task":"cwe","outputs":["a","b","c"],"prediction":"1. A 2. C"}\n'),
                "score ruler")
    check_lines("vote", run("vote", "--metric", "gsm8k.robust", stdin='{"id":1,"gold":"7","outputs":["#### 7","?"]}\n'),
                "vote")
    ranked = run("rank", "--baseline", "a", "--json", "-", stdin="Model,acc\na,1.0\nb,2.5\nc,\n")
    check_lines("rank", ranked, "rank")
    if json.loads(ranked.splitlines()[1]) != {"Model": "b", "acc": "2.5", "acc delta": "+1.5", "Avg. Rank": "1.0"}:
        sys.exit(f"rank --json: {ranked}")
    check_lines("tokenize", run("tokenize", "--model", model, stdin='{"text":"Hello"}\n'), "tokenize")
    check_lines("detokenize", run("detokenize", "--model", model, stdin='{"ids":[72,105]}\n'), "detokenize")


def check_programs():
    if data is None:
        print("programs: skipped: no data root")
        used.add("score_code")
        return
    sample = '{"task_id":"HumanEval/28","completion":"    print(1)\\n    return \\"\\".join(strings)"}\n'
    scored = run("score", "humaneval", "--jobs", 1, "--data-root", data, stdin=sample)
    check_lines("score_code", scored, "score humaneval")
    shown = run("score", "humaneval", "--jobs", 1, "--show", "--data-root", data, stdin=sample)
    check_lines("score_code", shown, "score humaneval --show")
    run("run", "--model", model, "--bench", "humaneval", "--limit", 1, "--max-new-tokens", 8, "--numerics", "fake",
        "--threads", 1, "--quiet", "--data-root", data, "--db", scratch / "p.db", "--out", scratch / "p")
    check_lines("samples", (scratch / "p/samples.jsonl").read_text(), "samples.jsonl of programs")
    check("table", json.loads((scratch / "p/table.json").read_text()), "table.json of programs")
    sweep = json.loads(run("list", "--db", scratch / "p.db", "--json"))["sweep"]
    story = ["explain", "--db", scratch / "p.db", "--sweep", sweep, "--model", model.name, "--item", 0, "--data-root",
             data, "--json"]
    check("explain", json.loads(run(*story)), "explain of programs")
    check("explain", json.loads(run(*story, "--run")), "explain --run")
    check_lines("regrade", run("regrade", "--db", scratch / "p.db", "--sweep", sweep, "--data-root", data, "--json"),
                "regrade of programs")


def check_ruler():
    if data is None:
        print("ruler generate: skipped: no data root")
        used.add("ruler_generate")
        return
    flags = ["ruler", "generate", "--tokenizer", "whitespace", "--out", scratch / "rows", "--data-root", data, "--json"]
    check_lines("ruler_generate", run(*flags, "--tasks", "vt,fwe", "--lengths", "1024,2048", "--samples", 2),
                "ruler generate")
    ended = run(*flags, "--tasks", "qa_2", "--mode", "seeded", "--lengths", 4096, "--samples", 101, code=3)
    check_lines("ruler_generate", ended, "ruler generate to the last question")
    if json.loads(ended)["end"]["kind"] != "data_exhausted":
        sys.exit(f"ruler generate to the last question: {ended}")


def check_examples():
    for name in ("table1", "table2", "ruler"):
        text = "\n".join(re.sub(r"^\s*//.*", "", line) for line in run("sweep", "example", name).splitlines())
        check("sweep", json.loads(text), f"sweep example {name}")
        if json.loads(run("sweep", "example", name, "--json")) != json.loads(text):
            sys.exit(f"sweep example {name} --json: not the commented one")


def check_inspect():
    if cases is None:
        print("inspect: skipped: no data root")
        used.update(("inspect", "audit", "upcycle"))
        return
    oracle = cases / "attention_oracles/iha_p2_algorithm1"
    check("inspect", json.loads(run("inspect", oracle, "--json")), "inspect")
    check("audit", json.loads(run("inspect", oracle, "--against", oracle, "--json")), "inspect --against")
    upcycled = run("upcycle", "--model", cases / "attention_oracles/global_mha", "--kind", "iha", "--pseudo-heads", 2,
                   "--out", scratch / "upcycled", "--json")
    check("upcycle", json.loads(upcycled), "upcycle")


check_coordinator(check_run())
check_tools()
check_programs()
check_ruler()
check_examples()
check_inspect()
unused = sorted(set(schemas) - used)
if unused:
    sys.exit(f"no output was checked against: {', '.join(unused)}")
print(f"{len(used)} schemas hold")
