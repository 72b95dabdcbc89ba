//go:build !nostores

package main

// The stores whose schemes the command line understands.
import (
	_ "github.com/leasehold/leasehold/store/azblob"
	_ "github.com/leasehold/leasehold/store/consul"
	_ "github.com/leasehold/leasehold/store/etcd"
	_ "github.com/leasehold/leasehold/store/kubernetes"
	_ "github.com/leasehold/leasehold/store/postgres"
	_ "github.com/leasehold/leasehold/store/redis"
	_ "github.com/leasehold/leasehold/store/zookeeper"
)
