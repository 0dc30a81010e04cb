//! Commands, telemetry and sensor messages and their codec
