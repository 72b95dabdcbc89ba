// Package python runs the tests of the Python client, in clients/python, against real servers, by the Python of the
// system and by the others that are installed.
package python
