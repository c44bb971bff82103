"""Workers: processes that propose and run, one a device, on a ZeroMQ link to the daemon."""
