// The HTML report: escaping here, its behaviour in a real browser (check_page.py).
#include "reports/render_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/child_process.h"
#include "common/file.h"
#include "reports/html_text.h"
#include "reports/render.h"
#include "tests/reports/two_models.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tools.h"

namespace iha::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kHostileName = "</bdi></th><img src=x onerror='window.stolen=1'>&amp;\"";
const char* const kHostileText =
    "</pre></details><script>window.stolen = 1</script>\n<svg onload=\"window.stolen=1\">&lt; \t{{7*7}} `' ]]> --> "
    "<!--";

Table HostileTable() {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}, {1, 1, 1, 0}, {}, {1, 1, 1, 1}});
  snapshot.spec.models[0].name = kHostileName;
  auto table = BuildTable(snapshot, {});
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

std::vector<SampleGroup> HostileSamples() {
  const ShownSample sample{
      .item_id = "<b>0</b>", .sample = 0, .text = kHostileText, .verdict = "m 1 (<i>\xe2\x80\xae)"};
  return {{.row = 0, .entry = 0, .total = 4, .shown = {sample}}};
}

TEST(HtmlText, EscapesMarkupAndSpellsOutWhatSteersTheEye) {
  EXPECT_EQ(HtmlText("<a href=\"x\">'&amp;'"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;amp;&#39;");
  EXPECT_EQ(HtmlText("a\n\tb\n"), "a\n\tb\n");
  EXPECT_EQ(HtmlText("a\x1b[31m\r\x01\xff"), "a\\x1B[31m\\r\\x01\\xFF");
  EXPECT_THAT(HtmlText("\xe2\x80\xaelive"), HasSubstr("202E"));
  EXPECT_EQ(HtmlText(""), "");
}

TEST(RenderHtml, IsOneFileThatAsksForNothing) {
  const std::string page = RenderHtml(HostileTable(), HostileSamples());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'sha256-"));
  for (const char* outside : {"http:", "https:", "src=\"", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  }
  EXPECT_THAT(page, HasSubstr("href=\"#samples-0-0\""));
  EXPECT_THAT(page, HasSubstr("(1 of 4 samples)"));
  EXPECT_THAT(page, Not(HasSubstr("samples-1-0")));
  EXPECT_EQ(page, RenderHtml(HostileTable(), HostileSamples()));
}

TEST(RenderHtml, WorksInABrowserAndHostileTextStaysText) {
  IHA_REQUIRE_TOOL(browser, "chromium-headless-shell");
  const testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("page.html"), RenderHtml(HostileTable(), HostileSamples())).ok());
  const nlohmann::json hostile = {kHostileName, kHostileText, "<b>0</b>"};
  ASSERT_TRUE(WriteFileAtomic(dir.File("hostile.json"), hostile.dump()).ok());
  ChildOptions options;
  options.argv = {"/usr/bin/python3", "tests/reports/check_page.py", browser, dir.File("page.html"),
                  dir.File("hostile.json")};
  options.env.push_back("HOME=" + dir.path());
  const auto run = RunChild(options, "", {.timeout = absl::Minutes(3)});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->exit.code, 0) << run->out << run->err;
}

}  // namespace
}  // namespace iha::reports
