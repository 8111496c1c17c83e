"""The gate's checks that ask something: servers, staged rows, assertions, room."""
