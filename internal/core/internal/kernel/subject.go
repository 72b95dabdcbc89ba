package kernel

// Subjects are what the kernel is put together with. Each has an interface of its own here, which is all that the
// kernel knows of it, and sees the kernel by what Namespace and its like have. A subject that is not in use costs one
// comparison: by what a name is, or by what is in its tables, and never by whether a table was made on this server.
type Subjects struct {
	NewAreas func() Areas // of one namespace
}
