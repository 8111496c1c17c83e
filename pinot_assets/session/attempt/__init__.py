"""An attempt: decide over the open session, build, name."""
