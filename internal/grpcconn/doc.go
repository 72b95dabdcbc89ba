// Package grpcconn serves gRPC on connections that are handed to it.
//
// It is for services that get very many small calls, each on a quiet connection. There grpc-go's server spends more on
// a call than the services do: it wakes a goroutine to write the answer, starts one with a new stack for each call, and
// answers at once each ping by which a client of grpc-go measures the network, which is one for each call. Here the
// goroutine that has an answer writes it, header and status included, in one piece; goroutines are used again; and the
// answer to a ping waits a moment, so that clients send fewer.
//
// Frames are read by golang.org/x/net/http2, and services are described as for grpc-go: their generated code runs
// unchanged. What no client of such services uses is left out: compression, trailers of a client, metadata in answers.
// Requests that are not gRPC go to a handler, as net/http would hand them over.
package grpcconn
