// paper_fixture.h: Tables 1 and 2 of the IHA paper (arXiv 2602.21371) as imported rows, and what they print.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/file.h"
#include "reports/table.h"

namespace iha::reports {

struct PaperTable {
  const char* layout;
  const char* file;
  // Each row as it is printed, the model's name first: value and delta of each column, the average rank. "" = nothing.
  std::vector<std::vector<std::string>> rows;
};

inline const std::vector<PaperTable>& PaperTables() {
  static const std::vector<PaperTable> kTables = {
      {"table1",
       "paper_table1.csv",
       {{"IHA", "34.3", "+4.8", "54.2", "+5.8", "10.0", "+1.2", "18.4", "+2.8", "15.5", "+0.8", "41.6", "+0.4", "1.5"},
        {"Global Attention", "29.5", "", "48.4", "", "8.8", "", "15.6", "", "14.7", "", "41.2", "", "3.8"},
        {"Global+Local", "26.5", "-3.0", "46.9", "-1.5", "7.6", "-1.2", "15.0", "-0.6", "15.0", "+0.3", "41.9", "+0.7",
         "4.3"},
        {"Talking Heads", "29.3", "-0.2", "49.4", "+1.0", "7.8", "-1.0", "18.2", "+2.6", "15.9", "+1.2", "43.1", "+1.9",
         "2.5"},
        {"Diff Transformer", "31.6", "+2.1", "53.5", "+5.1", "9.0", "+0.2", "18.0", "+2.4", "15.3", "+0.6", "39.2",
         "-2.0", "2.8"}}},
      {"table2",
       "paper_table2.csv",
       {{"IHA", "8.34", "+2.73", "8.42", "+2.81", "3.54", "+0.66", "24.5", "+1.1", "17.1", "-0.1", "1.4"},
        {"Global Attention", "5.61", "", "5.61", "", "2.88", "", "23.4", "", "17.2", "", "2.9"},
        {"Global+Local", "6.82", "+1.21", "6.90", "+1.29", "2.26", "-0.62", "23.6", "+0.2", "16.0", "-1.2", "2.9"},
        {"Talking Heads", "5.46", "-0.15", "5.38", "-0.23", "–", "", "23.8", "+0.4", "16.0", "-1.2", "4.0"},
        {"Diff Transformer", "5.46", "-0.15", "5.61", "+0.00", "–", "", "25.0", "+1.6", "15.4", "-1.8", "3.5"}}},
  };
  return kTables;
}

inline std::vector<ImportedRow> PaperRows(const PaperTable& paper) {
  const std::string path = std::string("tests/reports/testdata/") + paper.file;
  const auto text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto rows = ImportCsv(text.value_or(""), path);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.value_or(std::vector<ImportedRow>());
}

inline Table BuiltPaperTable(const PaperTable& paper) {
  const auto table = BuildImportedTable(PaperRows(paper), {.layout = paper.layout, .baseline = "Global Attention"});
  EXPECT_TRUE(table.ok()) << table.status();
  return table.value_or(Table());
}

}  // namespace iha::reports
