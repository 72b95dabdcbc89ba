// Package mutants has mistakes, each of which the tests of this tree must find: a test that finds nothing is worth as
// much as the mistakes that it would find. A mistake is a patch, NAME.patch, that changes the code where
// mutant.On("NAME") says so. No such code is in the tree, nor the package mutant: a build that has all of them is made
// beside it, and a process of that build makes the one mistake that its environment names.
package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Mutant is a mistake.
type Mutant struct {
	Name   string
	Breaks string   // in one sentence
	By     []Finder // each finds it
	hunks  []hunk
}

// A Finder is a test that fails if it meets the mistake.
type Finder struct {
	Package, Test string
}

// A hunk replaces lines that are in one file of a package, once. A hunk without any makes a file of its own.
type hunk struct {
	dir      string
	old, new []string
}

// Load reads all patches of a folder.
func Load(dir string) ([]*Mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var list []*Mutant
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(name), ".patch"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// parse reads a patch: what it breaks, who finds it, and for each package the hunks, one empty line apart. A line of a
// hunk begins with a space if it stays, with - if it goes and with + if it comes.
func parse(name, text string) (*Mutant, error) {
	m, dir := &Mutant{Name: name}, ""
	var h *hunk
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case n == 0:
			m.Breaks = line
		case line == "":
			h = nil
		case strings.ContainsAny(line[:1], " -+"):
			if dir == "" {
				return nil, fmt.Errorf("line %d is in no package", n+1)
			}
			if h == nil {
				m.hunks = append(m.hunks, hunk{dir: dir})
				h = &m.hunks[len(m.hunks)-1]
			}
			h.add(line[0], line[1:])
		case strings.HasPrefix(line, "package "):
			dir = strings.TrimPrefix(line, "package ")
		case strings.HasPrefix(line, "found by "):
			by := strings.Fields(line)[2:]
			if len(by) != 2 {
				return nil, fmt.Errorf("line %d names no package and test", n+1)
			}
			m.By = append(m.By, Finder{by[0], by[1]})
		default:
			return nil, fmt.Errorf("line %d is no line of a patch", n+1)
		}
	}
	if len(m.hunks) == 0 || len(m.By) == 0 {
		return nil, errors.New("it changes nothing, or nobody finds it")
	}
	return m, nil
}

func (h *hunk) add(kind byte, line string) {
	if kind != '+' {
		h.old = append(h.old, line)
	}
	if kind != '-' {
		h.new = append(h.new, line)
	}
}
