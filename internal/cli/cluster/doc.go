// Package cluster has the commands that show and change the servers of a cluster.
package cluster
