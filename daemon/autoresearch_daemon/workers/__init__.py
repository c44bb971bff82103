"""Workers: processes that propose and run, one a device, on a link to the daemon."""
