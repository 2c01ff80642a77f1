#include "worker/sandbox/slot.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"
#include "worker/sandbox/filter.h"
#include "worker/sandbox/scripts.h"

namespace iha::sandbox {
namespace {

using Json = nlohmann::json;

constexpr const char* kPython = "/usr/bin/python3";
constexpr const char* kPackages = "/usr/lib/python3";  // Debian's packages beside the standard library
// Above all ranges that Debian and systemd give to users, services and containers.
constexpr uint32_t kFirstUser = 0x70000000;
constexpr absl::Duration kStartTimeout = absl::Seconds(120);  // importing on a busy machine
constexpr absl::Duration kProbeTimeout = absl::Seconds(300);
constexpr int64_t kMiB = int64_t{1} << 20;

std::string Base64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

// What a candidate may have. Of memory and processes honest programs need a small part; the rest of the host must live
// on whatever it does with all of it.
Json Config(const std::string& filter) {
  return {{"filter", Base64(filter)},
          {"limits",
           {{"RLIMIT_AS", 4096 * kMiB},
            {"RLIMIT_DATA", 4096 * kMiB},
            {"RLIMIT_STACK", 8 * kMiB},  // how deep a recursion can go: everywhere the same
            {"RLIMIT_NPROC", 64},
            {"RLIMIT_FSIZE", 48 * kMiB},
            {"RLIMIT_NOFILE", 128},
            {"RLIMIT_CORE", 0},
            {"RLIMIT_MEMLOCK", 0},
            {"RLIMIT_MSGQUEUE", 0}}},
          {"memory_bytes", 4096 * kMiB},  // of all its processes together
          {"tmp_bytes", 32 * kMiB},
          {"tmp_files", 1024},
          {"output_bytes", 64 * 1024},
          {"report_bytes", 64 * 1024}};
}

std::vector<std::string> Bubblewrap() {
  std::vector<std::string> argv = {
      "bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--unshare-pid", "--unshare-net", "--unshare-ipc",
      "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox", "--new-session", "--die-with-parent",
      // The fork server makes the samples' namespaces; a candidate has no capability at all.
      "--cap-add", "CAP_SYS_ADMIN", "--tmpfs", "/tmp", "--proc", "/proc", "--dir", "/dev", "--dir", "/dev/shm"};
  // What CPython and its libraries lie in. The rest of /usr may hold anything, data sets with their answers among it.
  for (const char* name : {"bin", "lib", "lib64"}) {
    const std::string folder = std::string("/usr/") + name;
    argv.insert(argv.end(), {"--ro-bind-try", folder, folder, "--symlink", folder.substr(1), folder.substr(4)});
  }
  argv.insert(argv.end(), {"--ro-bind-try", "/usr/share/zoneinfo", "/usr/share/zoneinfo"});
  std::error_code error;
  if (std::filesystem::is_directory(kPackages, error)) {
    argv.insert(argv.end(), {"--tmpfs", kPackages, "--remount-ro", kPackages});
  }
  // No /dev/zero: what is mapped of it is memory that no limit counts.
  for (const char* device : {"/dev/null", "/dev/random", "/dev/urandom"}) {
    argv.insert(argv.end(), {"--dev-bind", device, device});
  }
  // A fixed hash seed and address layout: equal programs have equal orders of their sets.
  argv.insert(argv.end(),
              {"--remount-ro", "/",    "--chdir", "/",  "--clearenv",       "--setenv", "PYTHONHASHSEED", "0",
               "--setenv",     "LANG", "C.UTF-8", "--", "/usr/bin/setarch", "-R",       kPython,          "-s",
               "-S",           "-P",   "-B",      "-c", kServerScript});
  return argv;
}

}  // namespace

absl::StatusOr<SlotSetup> SetupOf(int index) {
  IHA_ASSIGN_OR_RETURN(const std::string filter, CandidateFilter());
  SlotSetup setup{.child = {}, .config = Config(filter).dump()};
  setup.child.argv = Bubblewrap();
  if (geteuid() == 0) {
    const std::string user = std::to_string(kFirstUser + static_cast<uint32_t>(index));
    const std::vector<std::string> become = {"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"};
    setup.child.argv.insert(setup.child.argv.begin(), become.begin(), become.end());
  }
  return setup;
}

absl::StatusOr<std::unique_ptr<Slot>> Slot::Start(const SlotSetup& setup) {
  IHA_ASSIGN_OR_RETURN(auto helper, LineHelper::Start(setup.child));
  IHA_RETURN_IF_ERROR(helper->WriteLine(setup.config, kStartTimeout));
  std::unique_ptr<Slot> slot(new Slot(std::move(helper)));
  IHA_ASSIGN_OR_RETURN(const Json ready, slot->Read(kStartTimeout));
  slot->alone_in_network_ = ready.value("interfaces", Json()) == Json({"lo"});
  return slot;
}

absl::StatusOr<Json> Slot::Read(absl::Duration timeout) {
  IHA_ASSIGN_OR_RETURN(const std::string line, helper_->ReadLine(timeout));
  Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return DataLoss("sandbox: the fork server's answer is not a JSON object");
  return answer;
}

absl::StatusOr<Json> Slot::Ask(const Json& job, absl::Duration timeout) {
  const std::string line = job.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  IHA_RETURN_IF_ERROR(helper_->WriteLine(line, timeout));
  return Read(timeout);
}

absl::Status Slot::SelfTest(bool cpu) {
  std::vector<std::string> failed;
  IHA_ASSIGN_OR_RETURN(const Json probed, Ask({{"op", "probe"}}, kProbeTimeout));
  for (const Json& name : probed.value("failed", Json::array())) {
    failed.push_back(name.is_string() ? TerminalSafe(name.get<std::string>(), 300) : "?");
  }
  if (!alone_in_network_) failed.push_back("network namespace");
  if (cpu) {
    const Json endless = {{"op", "run"}, {"program", "while True: pass"}, {"cpu", 1}, {"wall", 60}};
    IHA_ASSIGN_OR_RETURN(const Json run, Ask(endless, kProbeTimeout));
    if (run.value("end", "") != "cpu") failed.push_back("CPU time");
  }
  if (failed.empty()) return absl::OkStatus();
  return FailedPrecondition("sandbox: these limits did not hold in its self-test: {}; no code is run on this machine",
                            fmt::join(failed, ", "));
}

}  // namespace iha::sandbox
