"""What goes on after a death: resolve what was interrupted, abandon, rebuild."""
