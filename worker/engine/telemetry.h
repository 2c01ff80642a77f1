// telemetry.h: an engine's counters as the values that records keep. Pure.
#pragma once

#include "common/telemetry.h"
#include "worker/engine/engine.h"

namespace iha::engine {

EngineTelemetry TelemetryOf(const EngineCounters& counters);

}  // namespace iha::engine
