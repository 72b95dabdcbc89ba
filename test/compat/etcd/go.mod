module github.com/leasehold/leasehold/test/compat/etcd

go 1.26.0

require (
	github.com/leasehold/leasehold v0.0.0
	go.etcd.io/etcd/api/v3 v3.7.3
	go.etcd.io/etcd/client/v3 v3.7.3
	go.uber.org/zap v1.27.1
	google.golang.org/grpc v1.83.2
)
