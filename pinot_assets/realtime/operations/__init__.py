"""What a person starts on a REALTIME table: a function of each decides, a class carries it out."""
