// Package resource has the commands that show resources (list, describe, queue, top, watch,
// history) and that define them.
package resource
