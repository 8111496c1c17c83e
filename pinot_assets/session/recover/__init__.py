"""What goes on after a death: settle what was begun, abandon, rebuild."""
