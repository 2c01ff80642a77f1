// scripts.h: the Python program of a slot: server.py, probe.py, scan.py and confirm.py, one behind the other.
#pragma once

namespace iha::sandbox {

extern const char kServerScript[];

}  // namespace iha::sandbox
