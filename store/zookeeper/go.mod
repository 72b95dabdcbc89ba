module github.com/leasehold/leasehold/store/zookeeper

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/leasehold/leasehold v0.0.0
)

require golang.org/x/sys v0.49.0 // indirect

// In the workspace the directory is used, and nobody is asked for a version that is not released.
exclude github.com/leasehold/leasehold/store/zookeeper v0.0.0
