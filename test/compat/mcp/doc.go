// Package mcp has agents of the TypeScript SDK of the Model Context Protocol use a server, over HTTP and over standard
// input and output.
package mcp
