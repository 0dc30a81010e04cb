"""The watchdog's process: sends the safe bytes if the machine's process is killed or stopped.

The argument is the native module's file, so that neither paths nor packages of the machine's program are needed."""

import signal
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

if __name__ == "__main__":
    # A service manager asks all processes of a service to end; this one ends after the machine's.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loader = ExtensionFileLoader("_tautline", sys.argv[1])
    spec = spec_from_file_location("_tautline", sys.argv[1], loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    module.keep_watch()
