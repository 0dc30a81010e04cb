"""A ROS 2 robot behind Tautline's guard: machine, cameras and topics."""
