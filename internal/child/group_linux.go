package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// groupLives reports whether a process of a group is left that can still do something. Zombies
// cannot, and there may always be some: in a container whose first process waits for nobody, they
// stay.
func groupLives(group int) bool {
	if group <= 1 {
		return false
	}
	switch err := syscall.Kill(-group, 0); {
	case errors.Is(err, syscall.ESRCH):
		return false
	case err != nil:
		return true // not ours to signal, and so not ours to kill
	}
	alive, err := aliveIn(group)
	return alive || err != nil
}

// aliveIn looks for a process of a group that is no zombie. It returns an error if this process may
// not see all others.
func aliveIn(group int) (bool, error) {
	// Where /proc is mounted to hide the processes of others, the first is hidden too.
	if _, err := os.Stat("/proc/1/stat"); err != nil {
		return false, err
	}
	all, err := processes()
	if err != nil {
		return false, err
	}
	for _, folder := range all {
		stat, err := os.ReadFile(folder + "/stat")
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH):
			continue // it ended meanwhile
		case err != nil:
			return false, err
		}
		if of, dead := readStat(stat); of == group && !dead {
			return true, nil
		}
	}
	return false, nil
}

// processes returns the folders of all processes that this one can see.
func processes() (folders []string, err error) {
	all, err := os.ReadDir("/proc")
	for _, entry := range all {
		if _, err := strconv.Atoi(entry.Name()); err == nil {
			folders = append(folders, "/proc/"+entry.Name())
		}
	}
	return folders, err
}

// marked reports whether a process of this user is left whose environment has a mark. A nested run,
// its guard and its command are such: they are no part of the group, and are about to end. What
// stays on purpose is one too, as long as it keeps its environment.
func marked(mark string) bool {
	if mark == "" {
		return false
	}
	all, err := processes()
	for _, folder := range all {
		// Zombies have none, and those of others cannot be read.
		if environment, err := os.ReadFile(folder + "/environ"); err == nil &&
			bytes.Contains(environment, []byte(mark)) {
			return true
		}
	}
	return err != nil
}

// readStat returns the group of a process, and whether nothing of it is left but its name, from what
// /proc/PID/stat says. The name, in parentheses, may have anything in it. The first thread of a
// process can be a zombie while others go on.
func readStat(stat []byte) (group int, dead bool) {
	var (
		state                   string
		parent, session, others int
		skip                    string
	)
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	n, _ := fmt.Sscan(string(rest), &state, &parent, &group, &session, &skip, &skip, &skip, &skip, &skip, &skip,
		&skip, &skip, &skip, &skip, &skip, &skip, &skip, &others)
	return group, n == 18 && (state == "Z" || state == "X") && others <= 1
}
