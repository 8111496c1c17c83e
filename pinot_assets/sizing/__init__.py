"""What `pinot-assets simulate` answers: how a REALTIME table's settings turn out."""
