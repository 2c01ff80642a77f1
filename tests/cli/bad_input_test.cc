// What bad input gets: one line that says what, where, found, expected; the exit code of its class (DESIGN section 9).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunProgram;
using testing::TempDir;

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model::MakeFakeCheckpoint(Path("fake"), {.style = model::FakeStyle::kWords}).ok());
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }

  // The last line of stderr is the message; nothing may follow or spread over several lines.
  void Expect(std::vector<std::string> argv, int code, const std::string& message, const std::string& input = "") {
    SCOPED_TRACE(::testing::PrintToString(argv));
    const RunResult result = RunProgram(std::move(argv), input);
    EXPECT_EQ(result.exit.code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  TempDir dir_;
};

TEST_F(BadInput, UsageErrorsExit2) {
  Expect({"iha-eval"}, 2, "see iha-eval --help");
  Expect({"iha-eval", "tabel"}, 2, "did you mean \"table\"?");
  Expect({"iha-eval", "run", "--no-such-flag"}, 2, "see iha-eval run --help");
  Expect({"iha-eval", "run", "--workers", "0"}, 2, "--workers");
  Expect({"iha-eval", "run", "--max-new-tokens", "-3"}, 2, "--max-new-tokens");
  Expect({"iha-eval", "run", "--temperature", "-1"}, 2, "--temperature");
  Expect({"iha-eval", "sweep", "example", "bogus"}, 2, "expected one of: table1, table2, ruler");
  Expect({"iha-eval", "vote", "--metric", "bogus"}, 2, "gsm8k.robust");
  Expect({"iha-eval", "vote", "--metric", "gsm8k.robust", "--rule", "bogus"}, 2, "ns_tie_mean, first_seen, lm_eval");
  Expect({"iha-eval", "table", "--db", "x", "--sweep", "ab", "--format", "md", "--json"}, 2,
         "--json excludes --format");
  Expect({"iha-eval", "bench", "show", "gsm8k?fewshot=8"}, 2, "give its name alone, gsm8k");
  Expect({"iha-worker"}, 2, "--coordinator is required");
  Expect({"iha-coordinator", "--db", "x"}, 2, "--listen is required");
}

TEST_F(BadInput, AMistypedWordIsNamedWithTheNearestOne) {
  const std::string temperature = "unknown option --temprature (did you mean --temperature?)";
  Expect({"iha-eval", "run", "--temprature", "0.6"}, 2, temperature + "; see iha-eval run --help");
  Expect({"iha-eval", "generate", "--model", Path("fake"), "--temprature", "0.6"}, 2,
         "iha-eval: " + temperature + "; see iha-eval generate --help");
  Expect({"iha-tool", "generate", "--temprature=0.6"}, 2, "iha-tool: " + temperature);
  // Said before what is missing for it.
  Expect({"iha-eval", "generate", "--modle", "x"}, 2, "unknown option --modle (did you mean --model?)");
  Expect({"iha-worker", "--coordinater", "x"}, 2, "(did you mean --coordinator?); see iha-worker --help");
  Expect({"iha-coordinator", "--lisen", "x"}, 2, "(did you mean --listen?); see iha-coordinator --help");
  // The value of an option is no option.
  Expect({"iha-eval", "generate", "--stop", "--temprature"}, 2, "--model is required");
  Expect({"iha-eval", "bench", "lst"}, 2,
         "unknown command \"lst\" (did you mean \"list\"?); see iha-eval bench --help");
  Expect({"iha-eval", "bench", "lst", "--json"}, 2, "unknown command \"lst\"");
  Expect({"iha-eval", "import", "ggfu", "x"}, 2, "did you mean \"gguf\"?");
  Expect({"iha-eval", "data", "check"}, 2, "unknown command \"check\", expected one of: import");
  Expect({"iha-eval", "bench"}, 2, "a command is missing; see iha-eval bench --help");
  Expect({"iha-eval", "score", "gsm8k"}, 2, "--metric is required; see iha-eval score gsm8k --help");
  Expect({"iha-eval", "bench", "show", "gsm8k", "b", "c"}, 2, "unexpected argument \"b\"");
}

TEST_F(BadInput, NoOptionIsTakenForAValue) {
  Expect({"iha-worker", "--coordinator", "unix:/x", "--model", "x", "--deadline", "1"}, 2,
         "iha-worker: --model: expected 2 values, found the option --deadline; see iha-worker --help");
  Expect({"iha-worker", "--coordinator", "unix:/x", "--model", "--device"}, 2, "found the option --device");
  Expect({"iha-coordinator", "--listen", "unix:/x", "--db", "--token-file=x"}, 2,
         "--db: expected a value, found the option --token-file; see iha-coordinator --help");
  Expect({"iha-eval", "import", "gguf", "x", "--out", "--dtype", "f32"}, 2,
         "--out: expected a value, found the option --dtype; see iha-eval import gguf --help");
  Expect({"iha-tool", "generate", "--model", "x", "--stop", "-h"}, 2, "--stop: expected a value, found the option -h");
  // One that is meant to be the value; and what lies behind "--".
  Expect({"iha-eval", "generate", "--model", Path("none"), "--stop=--json"}, 3, "no such folder");
  Expect({"iha-eval", "inspect", "--", "--json"}, 3, "--json: no such folder");
  EXPECT_FALSE(std::filesystem::exists("--dtype"));
}

TEST_F(BadInput, AWorkersNameIsCheckedBeforeItConnects) {
  for (const std::string& id : {std::string(), std::string("a b"), std::string("a\nb"), std::string(129, 'x')}) {
    Expect({"iha-worker", "--coordinator", "unix:" + Path("none"), "--id", id}, 2,
           "expected 1 to 128 characters of [A-Za-z0-9._:-]; see iha-worker --help");
  }
  Expect({"iha-worker", "--coordinator", "unix:" + Path("none"), "--id", std::string(128, 'x'), "--deadline", "0",
          "--models-root", Path("none")},
         3, "no such folder");
}

TEST_F(BadInput, MessagesSpeakOfTheProgramThatWasTyped) {
  Expect({"iha-eval", "generate", "--model", Path("none")}, 3,
         "iha-eval generate: " + Path("none") + ": no such folder");
  Expect({"iha-tool", "generate", "--model", Path("none")}, 3, "iha-tool generate: ");
  EXPECT_THAT(RunProgram({"iha-eval", "logits", "--help"}).out, HasSubstr("Usage: iha-eval logits"));
}

TEST_F(BadInput, RunNamesTheFlag) {
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo?limit=3"}, 2, "give --limit 3");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo&samples=5"}, 2, "options begin with '?'");
  Expect({"iha-eval", "run"}, 2, "give --model DIR and --bench SPEC, or --sweep FILE");
  Expect({"iha-eval", "run", "--model", Path("fake")}, 2, "--bench is missing; give --model DIR and --bench SPEC");
  Expect({"iha-eval", "run", "--bench", "gsm8k_demo"}, 2, "--model is missing");
  Expect({"iha-eval", "run"}, 2, "nothing to run");
  Expect({"iha-eval", "run", "--model", Path("none"), "--bench", "gsm8k_demo"}, 3, "not a directory");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_dmeo"}, 2, "did you mean \"gsm8k_demo\"?");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--limit", "0"}, 2, "--limit");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--seed", "-1"}, 2, "--seed");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--numerics", "fake", "--baseline", "x",
          "--out", Path("o")},
         3, "--baseline \"x\": no such row; the table has fake");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo?fewshoot=2", "--numerics", "fake", "--out",
          Path("o")},
         2, "fewshoot");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--model", Path("fake"), "--bench", "gsm8k_demo"}, 2,
         "given twice");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--device", "cuda"}, 4, "--device cuda");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--numerics", "torch", "--device",
          "emulated"},
         4, "--numerics torch: --device emulated; expected cpu or cuda");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k", "--numerics", "fake", "--data-root",
          Path("nodata"), "--out", Path("o")},
         3, "data import");
}

TEST_F(BadInput, NumbersAreTakenAsTheyAreWrittenOrRefused) {
  const auto run = [&](const std::string& flag, const std::string& value) {
    return std::vector<std::string>{"iha-eval",   "run",     "--model",   Path("fake"), "--bench",
                                    "gsm8k_demo", "--limit", "1",         "--numerics", "fake",
                                    "--out",      Path("o"), "--dry-run", flag,         value};
  };
  Expect(run("--samples", "0"), 2, "--samples: found \"0\", expected a whole number from 1 to 2147483647");
  Expect(run("--samples", "99999999999"), 2, "--samples: found \"99999999999\", expected");
  Expect(run("--samples", "4097"), 2, "samples 4097; expected 1 to 4096");
  Expect(run("--seed", "-1"), 2, "--seed: found \"-1\", expected a whole number from 0;");
  // The parser's own conversion takes the largest seed for this.
  Expect(run("--seed", "18446744073709551616"), 2, "--seed: found \"18446744073709551616\"");
  Expect(run("--seed", "0x10"), 2, "--seed: found \"0x10\"");
  Expect(run("--fewshot", "99999999999999999999"), 2, "--fewshot: found \"99999999999999999999\"");
  Expect(run("--top-k", "-1"), 2, "--top-k: found \"-1\", expected a whole number from 0");
  Expect(run("--temperature", "nan"), 2, "--temperature: found \"nan\", expected a number from 0 to 1000");
  Expect(run("--temperature", "inf"), 2, "--temperature: found \"inf\"");
  Expect(run("--temperature", ""), 2, "--temperature: found \"\"");
  Expect(run("--temperature", "1x"), 2, "--temperature: found \"1x\"");
  Expect(run("--top-p", "2"), 2, "--top-p: found \"2\", expected a number from 0 to 1");
  Expect(run("--top-p", "0"), 2, "top_p 0; expected a number in (0, 1]");
  Expect(run("--max-new-tokens", "1048577"), 2, "max_new_tokens 1048577; expected 1 to 1048576");
  Expect(run("--kv-memory-mib", "-1"), 2,
         "--kv-memory-mib: found \"-1\", expected a whole number from 0 to 1073741824");
  Expect(run("--limit", "1"), 2, "--limit is given more than once");
  EXPECT_EQ(RunProgram(run("--seed", "18446744073709551615")).exit.code, 0);
  EXPECT_EQ(RunProgram(run("--kv-memory-mib", "0")).exit.code, 0);
  Expect({"iha-eval", "vote", "--metric", "gsm8k.robust", "--k", "-1"}, 2, "--k: found \"-1\"");
  Expect({"iha-eval", "list", "--coordinator", "unix:" + Path("c"), "--deadline", "nan"}, 2,
         "--deadline: found \"nan\"");
  Expect({"iha-worker", "--coordinator", "unix:" + Path("c"), "--threads", "-1"}, 2, "--threads: found \"-1\"");
  Expect({"iha-eval", "generate", "--model", Path("fake"), "--n", "0"}, 2, "--n: found \"0\", expected a whole number");
}

// A name that the command line gets wrong is a usage error in every command; in a file it is bad input.
TEST_F(BadInput, UnknownNamesAreUsageErrorsOnTheCommandLineOnly) {
  const std::vector<std::string> run = {"iha-eval", "run", "--model", Path("fake"), "--numerics", "fake", "--bench"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), run.begin(), run.end());
    return more;
  };
  Expect(with({"gsm8k_dem"}), 2, "--bench: unknown benchmark \"gsm8k_dem\" (did you mean \"gsm8k_demo\"?)");
  Expect(with({"gsm8k_demo", "--metric", "gsm8k.robst"}), 2, "(did you mean \"gsm8k.robust\"?)");
  Expect(with({"gsm8k_demo", "--metric", "maj@0"}), 2, "metric 'maj@0'");
  Expect(with({"gsm8k_demo", "--fewshot", "99"}), 2, "option fewshot: found '99', expected an integer from 0 to 5");
  Expect(with({"gsm8k_demo?template_date=2024-02-30"}), 2, "option template_date: found \"2024-02-30\"");
  Expect(with({"gsm8k_demo", "--layout", "table3"}), 2, "--layout");
  Expect({"iha-eval", "table", "--db", Path("x.db"), "--sweep", "ab", "--layout", "table3"}, 2, "--layout");
  Expect({"iha-eval", "bench", "show", "gsm8kk"}, 2, "unknown benchmark \"gsm8kk\" (did you mean \"gsm8k\"?)");
  const std::string metric = "unknown metric \"gsm8k.robst\" (did you mean \"gsm8k.robust\"?)";
  Expect({"iha-eval", "score", "gsm8k", "--metric", "gsm8k.robst"}, 2, metric);
  Expect({"iha-eval", "vote", "--metric", "gsm8k.robst"}, 2, metric);
  Expect({"iha-eval", "score", "math", "--metric", "math.robst"}, 2, "(did you mean \"math.robust\"?)");
  Expect({"iha-eval", "score", "equiv", "--metric", "math.robst"}, 2, "(did you mean \"math.robust\"?)");

  const auto sweep = [&](const std::string& entry) {
    Write("names.json", R"({"version": 1, "models": ["fake"], "benchmarks": [)" + entry + "]}");
    return std::vector<std::string>{"iha-eval", "run", "--sweep", Path("names.json")};
  };
  Expect(sweep(R"("gsm8k_demo", "gsm8k_dem")"), 3, "names.json: benchmarks[1]: unknown benchmark \"gsm8k_dem\" (did");
  Expect(sweep(R"({"spec": "gsm8k_demo", "metrics": ["gsm8k.robst"]})"), 3,
         "names.json: benchmarks[0] (gsm8k_demo): gsm8k_demo: unknown metric \"gsm8k.robst\" (did you mean");
  Expect(sweep(R"("gsm8k_demo", "gsm8k_demo")"), 3, "benchmarks[1] (gsm8k_demo): equal to benchmarks[0]");
}

TEST_F(BadInput, ScoresAreReadOrRefusedByRowAndColumn) {
  Expect({"iha-eval", "rank", "--baseline", "x", "--json", "-"}, 3, "-: --json: column \"a\" appears twice",
         "m,a,a\nx,1,2\n");
  Expect({"iha-eval", "rank", "--baseline", "x", "-"}, 3, "-: row 1 (x), column a: \"nan\" is not a decimal number",
         "m,a\nx,nan\n");
  Write("old.csv", "m,a\nx,250\n");
  Expect({"iha-eval", "table", "--import", Path("old.csv")}, 3,
         "row 1 (x), column a: 250 is no percentage between 0 and 100");
}

TEST_F(BadInput, SweepFilesNameThePlace) {
  Write("broken.json", "{\"version\": 1,");
  Expect({"iha-eval", "run", "--sweep", Path("broken.json")}, 3, "broken.json:1:15: JSON ends too early");
  Write("field.json", R"({"version": 1, "models": ["fake"], "benchmarks": [{"spec": "gsm8k_demo", "temprature": 1}]})");
  Expect({"iha-eval", "run", "--sweep", Path("field.json")}, 3, "benchmarks[0]: unknown field \"temprature\"");
  Write("type.json", R"({"version": 1, "models": ["fake"], "benchmarks": [{"spec": "gsm8k_demo", "samples": "5"}]})");
  Expect({"iha-eval", "run", "--sweep", Path("type.json")}, 3,
         "benchmarks[0].samples: found \"5\"; expected a whole number");
  Write("version.json", R"({"version": 2, "models": ["fake"], "benchmarks": ["gsm8k_demo"]})");
  Expect({"iha-eval", "run", "--sweep", Path("version.json")}, 3, "version: found 2; expected 1");
  Expect({"iha-eval", "run", "--sweep", Path("absent.json")}, 3, "absent.json");
  const auto with = [&](const std::string& fields) {
    Write("s.json", R"({"version": 1, "models": ["fake"], "benchmarks": ["gsm8k_demo"])" + fields + "}");
    return std::vector<std::string>{"iha-eval",      "run",       "--sweep", Path("s.json"),
                                    "--models-root", dir_.path(), "--out",   Path("o")};
  };
  Expect(with(R"(, "run_tag": "a", "run_tag": "b")"), 3, "s.json: field \"run_tag\" is there twice in one object");
  Expect(with(R"(, "run_tag": "a\nb")"), 3, "s.json: run_tag: \"a\\nb\"; expected one line of printable UTF-8");
  Expect(with(R"(, "template_date": "2024-02-30")"), 3, "s.json: template_date: found \"2024-02-30\"");
  Expect(with(R"(, "run_tag": ")" + std::string(17 << 20, 'x') + "\""), 3, "expected at most 16777216");
  // Local workers would wait for good.
  Expect(with(R"(, "numerics": {"backend": "cuda-fast"})"), 4, "--device cuda: ");
  Expect(with(R"(, "numerics": {"weights_dtype": "bf16"})"), 4, "not in this build; it runs cpu-exact/");
  // What the file says is not overruled, nor passed over in silence.
  std::vector<std::string> both = with("");
  both.insert(both.end(), {"--temperature", "0.6"});
  Expect(both, 2, "--temperature: not together with --sweep; say it in the file");
}

TEST_F(BadInput, DatabasesAreCheckedBeforeUse) {
  const std::vector<std::string> run = {"iha-eval",   "run",  "--model", Path("fake"), "--bench", "gsm8k_demo",
                                        "--numerics", "fake", "--out",   Path("o"),    "--quiet", "--db"};
  auto with = [&](const std::string& db) {
    std::vector<std::string> argv = run;
    argv.push_back(db);
    return argv;
  };
  Write("text.db", "this is no database, it only looks long enough to be one: " + std::string(4096, 'x'));
  Expect(with(Path("text.db")), 3, "text.db");
  Expect(with(Path("no/such/folder/x.db")), 3, "no/such/folder");
  Expect({"iha-eval", "fsck", "--db", Path("absent.db")}, 3, "absent.db");
  Expect({"iha-eval", "table", "--db", Path("absent.db"), "--sweep", "ab"}, 3, "absent.db");
  // Full: a device on which every write fails.
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--numerics", "fake", "--out",
          "/dev/full/x"},
         3, "/dev/full/x");
}

TEST_F(BadInput, AnUnreachableCoordinatorIsSaidAndGivenUpOn) {
  const RunResult result =
      RunProgram({"iha-eval", "list", "--coordinator", "unix:" + Path("nobody.sock"), "--deadline", "0.5"});
  EXPECT_EQ(result.exit.code, 4);
  EXPECT_THAT(result.err, HasSubstr("trying again for up to 500ms"));
  EXPECT_THAT(result.err, HasSubstr("did not answer within 500ms"));
  for (const std::string& address : {"unix:" + Path("nobody.sock"), std::string("127.0.0.1:1")}) {
    const RunResult away = RunProgram({"iha-eval", "list", "--coordinator", address, "--deadline", "0.5"});
    EXPECT_EQ(away.exit.code, 4);
    for (const char* noise : {"UNKNOWN", "UNAVAILABLE", "handshaker", "all addresses"}) {
      EXPECT_THAT(away.err, Not(HasSubstr(noise)));
    }
  }
  Expect({"iha-eval", "list"}, 2, "give --db FILE or --coordinator HOST:PORT");
  Expect({"iha-eval", "table", "--sweep", "ab"}, 2, "give --db FILE or --coordinator HOST:PORT");
  Expect({"iha-eval", "status", "ab"}, 2, "status: give --coordinator HOST:PORT");
}

TEST_F(BadInput, AddressesOfAnotherFormAreUsageErrors) {
  Write("sweep.json", R"({"version": 1, "models": ["m"], "benchmarks": ["gsm8k_demo"]})");
  const std::string form = ": expected HOST:PORT or unix:/path";
  for (const char* value : {"7392", "nowhere", ":7392", "host:", "host:70000", "host:7x", "unix:"}) {
    const std::string bad = value;
    Expect({"iha-eval", "list", "--coordinator", bad}, 2, "--coordinator " + bad + form);
    Expect({"iha-eval", "submit", "--coordinator", bad, Path("sweep.json")}, 2, "--coordinator " + bad + form);
    Expect({"iha-worker", "--coordinator", bad}, 2, "--coordinator " + bad + form);
    Expect({"iha-coordinator", "--listen", bad, "--db", Path("c.db")}, 2, "--listen " + bad + form);
  }
}

// SQLite would take both names for a database that is gone with the process.
TEST_F(BadInput, ADatabaseIsAFile) {
  const std::string address = "unix:" + Path("c.sock");
  Expect({"iha-coordinator", "--listen", address, "--db", ""}, 2, "--db \"\": expected a file");
  Expect({"iha-coordinator", "--listen", address, "--db", ":memory:"}, 3, "is gone when the program ends; give a file");
  Expect({"iha-eval", "list", "--db", Path("x.db"), "--coordinator", address}, 2, "not both");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {std::string("/dev/null"), Path("pipe")}) {
    const std::string said = path + ": is no regular file; give a file to --db";
    Expect({"iha-coordinator", "--listen", address, "--db", path}, 3, said);
    Expect({"iha-eval", "list", "--db", path}, 3, said);
    Expect({"iha-eval", "backup", "--db", path, "--out", Path("copy.db")}, 3, said);
  }
  EXPECT_FALSE(std::filesystem::exists(Path("pipe.lock")));
  Write("empty.db", "");
  Expect({"iha-eval", "list", "--db", Path("empty.db")}, 3, "empty.db: an empty file, no sweep was ever stored in it");
  const std::string path_of_200(200, 'x');
  Expect({"iha-coordinator", "--listen", "unix:/" + path_of_200, "--db", Path("x.db")}, 2, "at most 107 bytes");
}

TEST_F(BadInput, AWorkerChecksItsFlagsBeforeItConnects) {
  const std::vector<std::string> worker = {"iha-worker", "--coordinator", "unix:" + Path("c.sock")};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), worker.begin(), worker.end());
    return more;
  };
  Expect(with({"--models-root", Path("nope")}), 3, "--models-root " + Path("nope") + ": no such folder");
  Expect(with({"--model", "a", Path("nope")}), 3, "--model a " + Path("nope") + ": no such folder");
  // A device that cannot be had here is one code in every program.
  const RunResult device = RunProgram(with({"--device", "cuda:127"}));
  EXPECT_EQ(device.exit.code, 4) << device.err;
  EXPECT_THAT(device.err, HasSubstr("--device cuda:127: "));
}

// A name that is no device's is a mistake of the command line; one whose device is not here is not.
TEST_F(BadInput, ANameThatIsNoDevicesExits2InEveryProgram) {
  const std::vector<std::vector<std::string>> commands = {
      {"iha-worker", "--coordinator", "unix:" + Path("c.sock")},
      {"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo"},
      {"iha-eval", "generate", "--model", Path("fake")},
      {"iha-eval", "logits", "--model", Path("fake"), "--ids", "-", "--out", Path("o")},
      {"iha-eval", "check-oracle", Path("fake")}};
  for (std::vector<std::string> command : commands) {
    for (const char* name : {"foo", "cuda:", "cuda:-1", "cuda:128", "CPU"}) {
      std::vector<std::string> with = command;
      with.insert(with.end(), {"--device", name});
      Expect(with, 2, fmt::format("--device: found \"{}\", expected ", name));
    }
  }
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--device", "cuda:127"}, 4,
         "--device cuda:127");
  Expect({"iha-eval", "run", "--model", Path("fake"), "--bench", "gsm8k_demo", "--numerics", "fast"}, 4,
         "--numerics fast: found --device auto (the CPU), expected cuda, cuda:N or emulated");
}

TEST_F(BadInput, HalfATlsPairExits2InEveryProgram) {
  const std::string address = "unix:" + Path("c.sock");
  Expect({"iha-coordinator", "--listen", address, "--db", Path("t.db"), "--tls-cert", Path("c")}, 2, "--tls-key");
  Expect({"iha-coordinator", "--listen", address, "--db", Path("t.db"), "--tls-key", Path("k")}, 2, "--tls-cert");
  Expect({"iha-coordinator", "--listen", address, "--db", Path("t.db"), "--tls-client-ca", Path("a")}, 2, "--tls-cert");
  for (const std::vector<std::string>& program :
       {std::vector<std::string>{"iha-worker"}, std::vector<std::string>{"iha-eval", "list"}}) {
    for (const auto& [flag, missing] : {std::pair("--tls-cert", "--tls-"), std::pair("--tls-key", "--tls-cert")}) {
      std::vector<std::string> half = program;
      half.insert(half.end(), {"--coordinator", address, flag, Path("c")});
      Expect(half, 2, missing);
    }
  }
}

// Every program refuses an empty token the same way: none of them goes on without the secret that it was told to use.
TEST_F(BadInput, AnEmptyTokenFileIsRefusedByAll) {
  Write("token", " \n");
  const std::string address = "unix:" + Path("c.sock");
  Expect({"iha-eval", "list", "--coordinator", address, "--token-file", Path("token")}, 3,
         "--token-file: " + Path("token") + ": empty; expected a secret");
  Expect({"iha-worker", "--coordinator", address, "--token-file", Path("token")}, 3,
         "--token-file: " + Path("token") + ": empty; expected a secret");
  Expect({"iha-coordinator", "--listen", address, "--db", Path("t.db"), "--token-file", Path("token")}, 3,
         "--token-file: " + Path("token") + ": empty; expected a secret");
}

TEST_F(BadInput, ATakenPortExits4) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string taken = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  Expect({"iha-coordinator", "--listen", taken, "--db", Path("c.db")}, 4, "cannot listen on " + taken);
  close(listener);
}

TEST_F(BadInput, LineToolsReportTheLineAndGoOn) {
  const RunResult result = RunProgram({"iha-eval", "score", "gsm8k", "--metric", "gsm8k.strict_match"},
                                      "{\"id\":1,\"gold\":\"18\",\"output\":\"#### 18\",\"extra\":[1]}\n"
                                      "not json\n"
                                      "{\"id\":2,\"gold\":\"18\"}\n"
                                      "{\"id\":3,\"gold\":\"7\",\"output\":\"#### 8\"}\n");
  EXPECT_EQ(result.exit.code, 3);
  EXPECT_THAT(result.err, HasSubstr("line 2: not a JSON object"));
  EXPECT_THAT(result.err, HasSubstr("line 3: field \"output\": missing"));
  EXPECT_THAT(result.out, HasSubstr("{\"id\":1,\"extra\":[1],\"extracted\":\"18\",\"correct\":true"));
  EXPECT_THAT(result.out, HasSubstr("{\"id\":3,\"extracted\":\"8\",\"correct\":false"));
  Expect({"iha-eval", "score", "gsm8k", "--metric", "gsm8k.strict"}, 2, "gsm8k.strict_match", "{}");
}

TEST_F(BadInput, WhatCanNotBeReadOrWrittenIsNeverDone) {
  const std::vector<std::string> score = {"iha-eval", "score", "gsm8k", "--metric", "gsm8k.robust"};
  std::vector<std::string> argv = score;
  argv.push_back(Path("fake"));
  Expect(argv, 3, Path("fake") + ": read: Is a directory; expected a JSON Lines file");
  argv.back() = Path("none.jsonl");
  Expect(argv, 3, Path("none.jsonl") + ": open: No such file or directory; expected a JSON Lines file");
  const auto into_full_disk = [&](const std::string& command) {
    const RunResult result = RunProgram({"/bin/sh", "-c", testing::ProgramPath(command) + " > /dev/full"});
    EXPECT_EQ(result.exit.code, 4) << command << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr("standard output: cannot be written")) << command;
  };
  Write("in.jsonl", "{\"id\":1,\"gold\":\"18\",\"output\":\"#### 18\"}\n");
  into_full_disk("iha-eval score gsm8k --metric gsm8k.robust " + Path("in.jsonl"));
  into_full_disk("iha-eval bench list");
  into_full_disk("iha-tool machine-peak --threads 1");
}

TEST_F(BadInput, AQuestionThatItsGraderGivesUpIsUnscored) {
  std::filesystem::copy_file(testing::ProgramPath("iha-eval"), Path("iha-eval"));
  Write("iha-grader", "#!/bin/sh\nread line\nexit 1\n");
  std::filesystem::permissions(Path("iha-grader"), std::filesystem::perms::owner_all);
  for (const auto& [command, field, verdict] :
       {std::tuple("math", "output", "\"extracted\":null,\"correct\""), std::tuple("equiv", "answer", "\"equal\"")}) {
    const RunResult result = RunProgram({Path("iha-eval"), "score", command, "--metric", "math.robust"},
                                        fmt::format("{{\"id\":1.10,\"gold\":\"5\",\"{}\":\"5\"}}\n", field));
    EXPECT_EQ(result.exit.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(fmt::format("{{\"id\":1.10,{}:null,\"unscored\":\"grader_error\"", verdict)));
  }
}

TEST_F(BadInput, VotesSayWhatTheyMiss) {
  const std::vector<std::string> vote = {"iha-eval", "vote", "--metric", "gsm8k.robust"};
  Expect(vote, 3, "line 1: field \"outputs\": is empty", "{\"gold\":\"1\",\"outputs\":[]}");
  std::vector<std::string> none = vote;
  none.insert(none.end(), {"--k", "0"});
  Expect(none, 2, "--k: found \"0\"", "{}");
  Expect({"iha-eval", "score", "equiv", "--metric", "regex"}, 2, "metric regex: its gold is a pattern", "{}");
}

TEST_F(BadInput, AClosedStdinAndEmptyNamesAreNamed) {
  const RunResult closed =
      RunProgram({"/bin/sh", "-c", testing::ProgramPath("iha-eval") + " score gsm8k --metric gsm8k.robust <&-"});
  EXPECT_EQ(closed.exit.code, 3);
  EXPECT_THAT(closed.err, HasSubstr("stdin: is closed"));
  Expect({"iha-eval", "score", "gsm8k", "--metric", "gsm8k.robust", ""}, 3, "found an empty name, expected a file");
}

TEST_F(BadInput, EquivalenceCarriesKeysAndNamesItsRule) {
  const RunResult result =
      RunProgram({"iha-eval", "score", "equiv", "--metric", "math.robust"},
                 "{\"id\":1,\"gold\":\"\\\\frac12\",\"answer\":\"so \\\\boxed{0.5}\",\"extra\":[1]}\n"
                 "{\"id\":2,\"gold\":\"5\"}\n"
                 "{\"id\":3,\"gold\":\"5\",\"answer\":\"\\\\sqrt{\"}\n");
  EXPECT_EQ(result.exit.code, 3);
  EXPECT_THAT(result.err, HasSubstr("line 2: field \"answer\": missing"));
  EXPECT_THAT(result.out, HasSubstr("{\"id\":1,\"extra\":[1],\"equal\":true,\"reason\":\"equal: "));
  EXPECT_THAT(result.out, HasSubstr("{\"id\":3,\"equal\":false,\"reason\":\"undecided: "));
  Expect({"iha-eval", "score", "equiv", "--metric", "math.robus"}, 2, "math.robust", "{}");
  Expect({"iha-eval", "score", "math", "--metric", "math.minerva", "--graders", "/nonexistent"}, 4, "./dev deps test",
         "{}");
}

// math.robust without its guard would grade otherwise than the others of a sweep do: no program goes on without it.
TEST_F(BadInput, AMissingGraderIsSaidByEveryProgramThatGrades) {
  for (const char* program : {"iha-eval", "iha-coordinator", "iha-worker"}) {
    std::filesystem::copy_file(testing::ProgramPath(program), Path(program));
  }
  const std::string address = "unix:" + Path("c.sock");
  const std::string said = Path("iha-grader") + ": not found; it grades math.robust and belongs beside";
  Expect({Path("iha-eval"), "score", "math", "--metric", "math.robust"}, 4, said, "{}");
  Expect({Path("iha-eval"), "run", "--model", Path("fake"), "--numerics", "fake", "--bench", "gsm8k_demo", "--out",
          Path("o"), "--quiet"},
         4, said);
  EXPECT_FALSE(std::filesystem::exists(Path("o")));
  Expect({Path("iha-coordinator"), "--listen", address, "--db", Path("n.db")}, 4, said);
  Expect({Path("iha-worker"), "--coordinator", address}, 4, said);
}

TEST_F(BadInput, CheckpointsAreNamed) {
  Expect({"iha-eval", "tokenize", "--model", Path("empty")}, 3, "tokenizer.json");
  std::filesystem::create_directory(Path("unknown"));
  std::filesystem::copy(Path("fake/tokenizer.json"), Path("unknown/tokenizer.json"));
  Write("unknown/config.json", R"({"model_type": "mamba"})");
  const RunResult run = RunProgram({"iha-eval", "run", "--model", Path("unknown"), "--bench", "gsm8k_demo", "--limit",
                                    "1", "--out", Path("o"), "--quiet"});
  EXPECT_EQ(run.exit.code, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("mamba"));
}

}  // namespace
}  // namespace iha
