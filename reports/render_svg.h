// render_svg.h: a Figure as SVG text: the same bytes for the same figure anywhere (no font is measured, no time, host
// or locale enters). Series differ by pattern, marker and dash as well as by colour, so that grey prints can be read.
// Names are untrusted and escaped. Pure; thread: any.
#pragma once

#include <string>

#include "reports/figure.h"

namespace iha::reports {

std::string RenderSvg(const Figure& figure);

}  // namespace iha::reports
