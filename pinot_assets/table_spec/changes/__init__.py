"""What built a segment, and what a change of the spec means for it. Pure: no I/O."""
