// Package web has the console as browsers get it. Its source is beside this file; "make web" builds it.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns what was built: index.html, and what that page asks for, by path.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a valid one
	}
	return files
}
