//! Camera, uplink, actuators and failsafe
