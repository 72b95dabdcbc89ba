// Package arch holds the tree to its own rules: what may import what, that the core
// reads no clock, that each promise names a test that exists. The rules are tests,
// so that a change which breaks one says so before anybody reviews it. To change a
// rule is to change the design: that is a decision record, not an edit here.
package arch
