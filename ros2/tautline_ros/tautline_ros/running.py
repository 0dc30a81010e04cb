"""A node's life: until it is asked to end."""

import rclpy
from rclpy.executors import ExternalShutdownException


def run(make):
    """Runs the node that `make` returns until Ctrl-C or SIGTERM."""
    rclpy.init()
    try:
        rclpy.spin(make())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        # A callback that publishes while the signal's handler shuts ROS down fails.
        if rclpy.ok():
            raise
    finally:
        rclpy.try_shutdown()
