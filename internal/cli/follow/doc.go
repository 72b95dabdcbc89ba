// Package follow keeps a list of resources up to date, for live views.
package follow
