// bus_error.h: one line where a mapped file loses bytes while it is read.
//
// Checkpoints are mapped, not copied: a file that somebody truncates meanwhile, or whose disk fails, shows itself by
// SIGBUS at the next touch, which by default ends the program without a word.
#pragma once

namespace iha {

// Call at the start of main. From then on such a signal prints "PROGRAM: FILE: ..." to standard error and ends the
// process with exit code 3, on whatever thread it comes; a SIGBUS of another cause ends it as before. What is half
// written stays behind, as after a kill: the next run removes it.
void ExplainBusErrors();

}  // namespace iha
