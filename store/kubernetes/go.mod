module github.com/leasehold/leasehold/store/kubernetes

go 1.26.0

require (
	github.com/leasehold/leasehold v0.0.0
	go.yaml.in/yaml/v3 v3.0.5
)

require golang.org/x/sys v0.49.0 // indirect

// In the workspace the directory is used, and nobody is asked for a version that is not released.
exclude github.com/leasehold/leasehold/store/kubernetes v0.0.0
