"""A ROS 2 robot behind Tautline's guard: machine and topics."""
