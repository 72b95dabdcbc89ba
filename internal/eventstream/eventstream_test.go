package eventstream

import (
	"io"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	lines := 0
	r := NewReader(strings.NewReader("retry: 1000\nevent: hello\nid: 1\ndata: {\ndata:}\n\n: still here\n\nid: 2\n"),
		func() { lines++ })
	m, err := r.Read()
	if err != nil || m.Event != "hello" || m.ID != "1" || string(m.Data) != "{\n}" {
		t.Errorf("the first is %+v, %v", m, err)
	}
	if m, err = r.Read(); err != nil || m.Event+m.ID != "" || m.Data != nil {
		t.Errorf("a comment is %+v, %v", m, err)
	}
	if m, err = r.Read(); err != io.ErrUnexpectedEOF || m.ID != "" || lines != 9 {
		t.Errorf("what is cut off is %+v, %v, after %d lines", m, err, lines)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("id: 1\ndata: a\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		for r := NewReader(strings.NewReader(text), func() {}); ; {
			if _, err := r.Read(); err != nil {
				return
			}
		}
	})
}
