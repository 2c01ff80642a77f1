// Carries the precompiled headers of cmake/IhaTargets.cmake.
