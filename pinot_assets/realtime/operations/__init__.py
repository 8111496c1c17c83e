"""Operations that a person starts on a REALTIME table: for each, a function decides and a class acts."""
