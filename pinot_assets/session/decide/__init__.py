"""What a run does, decided from what was read: the trigger executes it, a plan report shows it."""
