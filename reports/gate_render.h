// gate_render.h: a GateReport for a terminal, a merge request, CI systems and programs. Same report, same bytes.
//
// Names of models, benchmarks and metrics are untrusted: each format escapes them. Pure; thread: any.
#pragma once

#include <string>

#include "reports/gate.h"
#include "reports/gate_sequential.h"

namespace iha::reports {

std::string RenderGateText(const GateReport& report);
// A merge-request comment: the verdict, a table, the notes.
std::string RenderGateMarkdown(const GateReport& report);
// docs/schemas/gate.schema.json describes it; one line.
std::string RenderGateJson(const GateReport& report);
// One test case a metric: FAIL is a failure, INCONCLUSIVE an error of type "inconclusive" unless `inconclusive_passes`.
std::string RenderGateJunit(const GateReport& report, bool inconclusive_passes);
// Workflow commands of GitHub Actions, one line a metric: error, warning or notice.
std::string RenderGateGithub(const GateReport& report);

std::string RenderSequentialText(const SequentialReport& report);
// docs/schemas/gate_sequential.schema.json describes it; one line.
std::string RenderSequentialJson(const SequentialReport& report);

}  // namespace iha::reports
