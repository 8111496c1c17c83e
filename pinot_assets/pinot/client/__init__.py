"""HTTP and gRPC to controllers, brokers and servers. Nothing else speaks to them."""
