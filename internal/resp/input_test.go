package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// feed gives an Input what was sent, a few bytes at a time, and returns the commands.
func feed(in *Input, sent []byte, step int) (commands [][]string, err error) {
	for {
		for {
			words, err := in.Next()
			if err != nil {
				return commands, err
			}
			if words == nil {
				break
			}
			var command []string
			for _, w := range words {
				command = append(command, string(w))
			}
			commands = append(commands, command)
		}
		in.Release()
		if len(sent) == 0 {
			return commands, nil
		}
		n := copy(in.Space(), sent[:min(step, len(sent))])
		in.Filled(n)
		sent = sent[n:]
	}
}

func TestInput(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	sent := AppendCommand(nil, "PING")
	sent = append(sent, "*0\r\n*-1\r\n"...)
	sent = AppendCommand(sent, "SET", "", "a\r\nb", large)
	sent = AppendCommand(sent, "GET", "k")
	want := [][]string{{"PING"}, {"SET", "", "a\r\nb", large}, {"GET", "k"}}
	for _, step := range []int{1, 2, 7, 4096, 1 << 20} {
		got, err := feed(&Input{}, sent, step)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d bytes at a time: %d commands, error %v", step, len(got), err)
		}
	}
}

// Arguments stay as they are until Release, whatever else is read.
func TestInputKeepsArguments(t *testing.T) {
	in := &Input{}
	var commands [][][]byte
	for i := range 100 {
		sent := AppendCommand(nil, fmt.Sprint("command", i), strings.Repeat("x", 1000))
		for len(sent) > 0 {
			n := copy(in.Space(), sent)
			in.Filled(n)
			sent = sent[n:]
		}
		words, err := in.Next()
		if err != nil || words == nil {
			t.Fatal(words, err)
		}
		commands = append(commands, words)
	}
	for i, words := range commands {
		if string(words[0]) != fmt.Sprint("command", i) || len(words[1]) != 1000 {
			t.Fatalf("command %d has become %.40q", i, words)
		}
	}
}

func TestInputRefuses(t *testing.T) {
	limits := Limits{Arguments: 3, Bytes: 100}
	long := strings.Repeat("x", 90)
	for _, test := range []struct{ sent, says string }{
		{"PING\r\n", "Protocol error: expected '*', got 'P'"},
		{"\x16\x03\x01", `Protocol error: expected '*', got '\x16'`},
		{"*x\r\n", "Protocol error: invalid multibulk length"},
		{"*1\r\r", "Protocol error: invalid multibulk length"},
		{"*99999999999999999999\r\n", "Protocol error: invalid multibulk length"},
		{"*4\r\n", "Protocol error: invalid multibulk length: a command may have 3 arguments"},
		{"*1\r\n:1\r\n", "Protocol error: expected '$', got ':'"},
		{"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
		{"*1\r\n$101\r\n", "Protocol error: invalid bulk length: a command may have 100 bytes"},
		{"*2\r\n$90\r\n" + long + "\r\n$90\r\n", "Protocol error: invalid bulk length: a command may have 100 bytes"},
		{"*1\r\n$1\r\nabc", "Protocol error: a bulk string does not end with CR LF"},
	} {
		for _, step := range []int{1, 1000} {
			_, err := feed(&Input{Limits: limits}, []byte(test.sent), step)
			if err == nil || err.Error() != test.says {
				t.Errorf("%q, %d at a time: %v, want %s", test.sent, step, err, test.says)
			}
		}
	}
}

func TestInputGivesUpItsBuffer(t *testing.T) {
	in := &Input{}
	if _, err := feed(in, AppendCommand(nil, "SET", strings.Repeat("x", 500_000)), 4096); err != nil {
		t.Fatal(err)
	}
	if got := len(in.Space()); got > keptInput {
		t.Errorf("it keeps %d bytes", got)
	}
	if b := in.Idle(); b == nil || in.Idle() != nil {
		t.Error("an idle input has not given up its buffer")
	}
	in.Use(make([]byte, 10))
	if got := len(in.Space()); got != 10 {
		t.Errorf("it has a buffer of %d bytes", got)
	}
	if _, err := feed(in, []byte("*1"), 10); err != nil || in.Idle() != nil {
		t.Error("half a command was given up", err)
	}
}

func TestInputDoesNotAllocate(t *testing.T) {
	in := &Input{}
	sent := AppendCommand(AppendCommand(nil, "LH.RENEW", "abc", "TTL", "30s"), "PING")
	got := testing.AllocsPerRun(100, func() {
		in.Filled(copy(in.Space(), sent))
		for words, err := in.Next(); words != nil || err != nil; words, err = in.Next() {
		}
		in.Release()
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// However it is cut, what is sent means the same, and no more memory is used than was sent.
func FuzzInput(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n"), 3)
	f.Add([]byte("*0\r\n*-1\r\n*2\r\n$0\r\n\r\n$2\r\n\r\n\r\n"), 1)
	f.Add([]byte("*3\r\n$1\r\na\r\n$1048577\r\n"), 5)
	f.Add([]byte("*1048577\r\n"), 2)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 4)
	f.Fuzz(func(t *testing.T, sent []byte, step int) {
		in := &Input{Limits: Limits{Arguments: 100, Bytes: 10_000}}
		whole, failure := feed(in, sent, max(1, len(sent)))
		if len(in.buf) > max(minInput, 4*len(sent)) && len(in.buf) > keptInput {
			t.Errorf("a buffer of %d bytes for %d", len(in.buf), len(sent))
		}
		parts, failure2 := feed(&Input{Limits: in.Limits}, sent, max(1, step))
		same := slices.EqualFunc(whole, parts, slices.Equal)
		if fmt.Sprint(failure) != fmt.Sprint(failure2) || !same {
			t.Errorf("%q, %v; in parts %q, %v", whole, failure, parts, failure2)
		}
		var again []byte
		for _, command := range whole {
			again = AppendCommand(again, command...)
		}
		if back, err := feed(&Input{}, again, 1<<20); err != nil || !slices.EqualFunc(whole, back, slices.Equal) {
			t.Errorf("%q became %q, %v", whole, back, err)
		}
	})
}

func BenchmarkInput(b *testing.B) {
	one := AppendCommand(nil, "LH.ACQUIRE", "reports/nightly", "HOLDER", "ci", "TTL", "30s", "KEY", "01k9x7")
	sent := bytes.Repeat(one, 16)
	in := &Input{}
	b.ReportAllocs()
	for b.Loop() {
		for rest := sent; len(rest) > 0; {
			n := copy(in.Space(), rest)
			in.Filled(n)
			rest = rest[n:]
			for words, _ := in.Next(); words != nil; words, _ = in.Next() {
			}
			in.Release()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/command")
}

// What a flood of short commands needed is not kept.
func TestInputKeepsLittle(t *testing.T) {
	var in Input
	for all := bytes.Repeat(AppendCommand(nil, "x"), 100_000); len(all) > 0; { // as after a command that was as large
		n := copy(in.Space(), all)
		in.Filled(n)
		all = all[n:]
	}
	for {
		if words, err := in.Next(); err != nil || words == nil {
			break
		}
	}
	in.Release()
	if n := cap(in.args); n > keptArgs {
		t.Errorf("room for %d arguments is kept", n)
	}
}
