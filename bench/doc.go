// Bench measures Leasehold beside the systems that people use instead: real servers, each with the
// client library of its own, on the same workloads, in turns, in one run. See docs/performance.md.
//
//	go run ./bench
//	go run ./bench -only redis,leasehold -workloads cycle,renew -rounds 3 -seconds 3
package main
