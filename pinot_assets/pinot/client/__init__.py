"""HTTP and gRPC to controllers, brokers and servers. All calls to them go through this package."""
