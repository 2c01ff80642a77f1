// sympy_script.h: the Python program of SympyGraders (sympy_graders.h), run with python3 -I -c.
#pragma once

namespace iha::benchmarks {

extern const char kSympyScript[];

}  // namespace iha::benchmarks
