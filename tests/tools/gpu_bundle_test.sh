#!/usr/bin/env bash
# What tools/gpu_bundle.sh packs is enough for an engine-only build: gpu_bundle_test.sh SCRATCH. Configured from the
# bundle, no command of the build names a library or header folder of the packages; a program of their headers runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
dpkg -s libabsl-dev libgtest-dev >/dev/null 2>&1 || { echo "skipped: no Debian packages to pack"; exit 77; }
scratch=$1 bundle=$1/bundle
rm -rf "$scratch"
mkdir -p "$scratch"
tools/gpu_bundle.sh "$bundle"
cmake -S . -B "$scratch/build" -G Ninja -DIHA_ENGINE_ONLY=ON -DIHA_CUDA=OFF -DIHA_BUNDLE="$bundle" >"$scratch/configure.log" 2>&1 ||
  { tail -n 20 "$scratch/configure.log" >&2; exit 1; }
if grep -oE '/usr/lib/[^ ]*lib(absl|fmt|crypto|pcre2|utf8proc|hwy|flint|gmp|gtest|gmock|z)[^ ]*' "$scratch/build/build.ninja" | sort -u | grep .; then
  echo "gpu_bundle_test: the build links these from outside of the bundle" >&2
  exit 1
fi
grep -q "$bundle/lib/libabsl_status.so" "$scratch/build/build.ninja"
# What modules (of CUDA, of LibTorch) link must be position-independent, which Debian's static libraries are not.
if find "$bundle/lib" -name '*.a' | grep -vE 'lib(gtest|gtest_main|gmock)\.a$'; then
  echo "gpu_bundle_test: these static libraries fit no module" >&2
  exit 1
fi

# Compilers look into /usr/include by themselves: the dependencies say where each header came from.
cat >"$scratch/all.cc" <<'END'
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <arb.h>
#include <flint/fmpq.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <hwy/targets.h>
#include <openssl/evp.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>
#include <zlib.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
TEST(Bundle, Links) {
  absl::StatusOr<int> number = 7;
  EXPECT_EQ(absl::StrCat(*number), fmt::format("{}", 7));
  fmpq_t q;
  fmpq_init(q);
  fmpq_clear(q);
  arb_t x;
  arb_init(x);
  arb_clear(x);
  char version[64];
  EXPECT_GT(pcre2_config(PCRE2_CONFIG_VERSION, version), 0);
  EXPECT_NE(hwy::SupportedTargets(), 0);
  EXPECT_NE(EVP_sha256(), nullptr);
  EXPECT_NE(std::string(utf8proc_version()), zlibVersion());
}
END
libs=$bundle/lib
g++ -std=c++20 -include cstdint -isystem "$bundle/include" -MD -MF "$scratch/all.d" "$scratch/all.cc" -o "$scratch/all" \
  -Wl,--disable-new-dtags,-rpath,"$libs",-rpath-link,"$libs" "$libs"/*.a -Wl,--as-needed "$libs"/*.so -pthread
if tr ' ' '\n' <"$scratch/all.d" | grep -E '^/usr/include/(x86_64-linux-gnu/)?(absl|arb|fmt|flint|gmp|gmock|gtest|hwy|mpfr|openssl|pcre2|utf8proc|zlib|zconf|CLI|nlohmann)'; then
  echo "gpu_bundle_test: these headers are not in the bundle" >&2
  exit 1
fi
"$scratch/all" --gtest_brief=1
if ldd "$scratch/all" | grep -E 'lib(absl_[a-z_]+|fmt|hwy|pcre2-8|utf8proc|z|flint|flint-arb|gmp|mpfr|ntl|gf2x|crypto)\.so' | grep -v "$libs/"; then
  echo "gpu_bundle_test: these libraries are not in the bundle" >&2
  exit 1
fi
