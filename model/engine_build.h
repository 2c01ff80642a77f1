// engine_build.h: what the exact CPU engine of this program runs on and was built with. For run records: no bit depends
// on it (NUM-10). Any thread.
#pragma once

#include "common/telemetry.h"

namespace iha::model {

EngineBuild ThisEngineBuild();

}  // namespace iha::model
