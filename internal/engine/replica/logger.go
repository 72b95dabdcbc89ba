package replica

import (
	"fmt"
	"log/slog"
)

// raftLogger writes raft's messages to the server's own log. What raft calls information is of
// use only for debugging raft itself. Fatal and Panic mean that an invariant of raft is broken:
// the process must not go on.
type raftLogger struct{ log *slog.Logger }

func (l raftLogger) Debug(v ...any)                 {}
func (l raftLogger) Debugf(format string, v ...any) {}
func (l raftLogger) Info(v ...any)                  { l.log.Debug("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Infof(format string, v ...any)  { l.log.Debug("raft: " + fmt.Sprintf(format, v...)) }
func (l raftLogger) Warning(v ...any)               { l.log.Warn("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Warningf(format string, v ...any) {
	l.log.Warn("raft: " + fmt.Sprintf(format, v...))
}
func (l raftLogger) Error(v ...any) { l.log.Error("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Errorf(format string, v ...any) {
	l.log.Error("raft: " + fmt.Sprintf(format, v...))
}
func (l raftLogger) Fatal(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
func (l raftLogger) Panic(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Panicf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
