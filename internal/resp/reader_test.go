package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// show writes a value as a person would.
func show(v *Value) string {
	switch v.Kind {
	case Simple, Bulk, Double, Big:
		return fmt.Sprintf("%c%q", v.Kind, v.Text)
	case Error:
		return fmt.Sprintf("-%q", v.Text)
	case Integer, Boolean:
		return fmt.Sprintf("%c%d", v.Kind, v.Int)
	case Null:
		return "_"
	}
	var items []string
	for i := range v.Items {
		items = append(items, show(&v.Items[i]))
	}
	return fmt.Sprintf("%c(%s)", v.Kind, strings.Join(items, " "))
}

func readAll(r *Reader) (values []string, err error) {
	for {
		v, err := r.Read()
		if err != nil {
			return values, err
		}
		values = append(values, show(v))
	}
}

func TestReader(t *testing.T) {
	for sent, want := range map[string]string{
		"+OK\r\n":                                   "+\"OK\"",
		"-HELD by ci\r\n":                           "-\"HELD by ci\"",
		"!7\r\nERR a\rb\r\n":                        "-\"ERR a\\rb\"",
		":-9223372036854775808\r\n":                 ":-9223372036854775808",
		":+5\r\n":                                   ":5",
		"$0\r\n\r\n":                                `$""`,
		"$-1\r\n":                                   "_",
		"*-1\r\n":                                   "_",
		"_\r\n":                                     "_",
		"#t\r\n#f\r\n":                              "#1 #0",
		",1.5\r\n,inf\r\n":                          `,"1.5" ,"inf"`,
		"(12345678901234567890123\r\n":              `("12345678901234567890123"`,
		"=7\r\ntxt:abc\r\n":                         `$"abc"`,
		"*0\r\n%0\r\n":                              "*() %()",
		"*2\r\n:1\r\n*1\r\n+a\r\n:3\r\n":            `*(:1 *(+"a")) :3`,
		"%1\r\n+a\r\n~2\r\n:1\r\n:2\r\n":            `%(+"a" ~(:1 :2))`,
		">2\r\n+lh.watch\r\n:1\r\n":                 `>(+"lh.watch" :1)`,
		"|1\r\n+ttl\r\n*1\r\n:5\r\n$1\r\nx\r\n":     `$"x"`,
		"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n":      "*(:1 :2)",
		"$4\r\n\r\n\r\n\r\n+after\r\n:1\r\n":        `$"\r\n\r\n" +"after" :1`,
		"*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n$1\r\n \r\n": `*(*(*(*(*())))) $" "`,
	} {
		for _, from := range []io.Reader{strings.NewReader(sent), iotest.OneByteReader(strings.NewReader(sent))} {
			got, err := readAll(NewReader(from))
			if strings.Join(got, " ") != want || err != io.EOF {
				t.Errorf("%q: %s, %v, want %s", sent, got, err, want)
			}
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	deep := strings.Repeat("*1\r\n", maxDepth+1) + ":1\r\n"
	for _, sent := range []string{
		"x\r\n", "+a\rb\r\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n", "#x\r\n", "_x\r\n", "$?\r\n", "*?\r\n",
		"$-2\r\n", "*-2\r\n", "%-1\r\n", "$3\r\nabcd\r\n", "=3\r\nabc\r\n", "*99999999999\r\n", "$99999999999\r\n", deep,
		"+" + strings.Repeat("x", maxLine+10),
	} {
		if got, err := readAll(NewReader(strings.NewReader(sent))); len(got) > 0 || err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%.40q: %s, %v", sent, got, err)
		}
	}
	for _, sent := range []string{"$5\r\nab", "*2\r\n:1\r\n", "+a", ":1\r"} {
		if got, err := readAll(NewReader(strings.NewReader(sent))); len(got) > 0 || err != io.ErrUnexpectedEOF {
			t.Errorf("%q: %s, %v", sent, got, err)
		}
	}
	r := NewReader(strings.NewReader("$10000\r\n" + strings.Repeat("x", 10000) + "\r\n"))
	r.Limit = 5000
	if _, err := r.Read(); err == nil {
		t.Error("the limit is not kept")
	}
}

func TestReaderBuffered(t *testing.T) {
	r := NewReader(strings.NewReader("+a\r\n:1\r\n$5\r\nab"))
	if r.Buffered() {
		t.Error("nothing was read yet")
	}
	for _, more := range []bool{true, false} {
		if _, err := r.Read(); err != nil || r.Buffered() != more {
			t.Error(err, r.Buffered())
		}
	}
}

// A Reader must not use memory for what was only announced.
func TestReaderAnnounced(t *testing.T) {
	sent := strings.Repeat("*1000000\r\n", 20)
	r := NewReader(strings.NewReader(sent))
	if _, err := r.Read(); err != io.ErrUnexpectedEOF && err == nil {
		t.Error(err)
	}
	if len(r.buf) > minReply || len(r.room) > 0 {
		t.Errorf("%d bytes and %d values", len(r.buf), len(r.room))
	}
}

// writeAll writes one of everything.
func writeAll(w *Writer) {
	m := w.OpenMap()
	w.String("text")
	w.String("a\r\nb")
	w.String("list")
	list := w.OpenArray()
	for i := range 12 {
		w.Int(int64(i))
	}
	w.Close(list)
	w.String("fixed")
	w.Array(2)
	w.Map(1)
	w.Simple("k")
	w.Null()
	w.Bool(true)
	w.String("float")
	w.Float(0.25)
	w.Close(m)
	w.Error("HELD", "by\r\nci")
	w.Push(2)
	w.String("lh.watch")
	w.Bulk(nil)
	w.Bool(false)
	w.Float(math.Inf(-1))
	w.OK()
}

func TestWriter(t *testing.T) {
	for version, want := range map[int]string{
		3: `%($"text" $"a\r\nb" $"list" *(:0 :1 :2 :3 :4 :5 :6 :7 :8 :9 :10 :11) $"fixed" *(%(+"k" _) #1) $"float" ,"0.25") ` +
			`-"HELD by  ci" >($"lh.watch" $"") #0 ,"-inf" +"OK"`,
		2: `*($"text" $"a\r\nb" $"list" *(:0 :1 :2 :3 :4 :5 :6 :7 :8 :9 :10 :11) $"fixed" *(*(+"k" _) :1) $"float" $"0.25") ` +
			`-"HELD by  ci" *($"lh.watch" $"") :0 $"-inf" +"OK"`,
	} {
		w := NewWriter(version, nil)
		writeAll(w)
		got, err := readAll(NewReader(bytes.NewReader(w.Bytes())))
		if strings.Join(got, " ") != want || err != io.EOF {
			t.Errorf("version %d: %s, %v", version, strings.Join(got, " "), err)
		}
		if got := testing.AllocsPerRun(100, func() { w.Reset(w.Bytes()[:0]); writeAll(w) }); got != 0 {
			t.Errorf("%v allocations", got)
		}
	}
}

// In a map that is large, its size has more digits than there was room for.
func TestWriterSizes(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 99, 100, 1000} {
		w := NewWriter(3, nil)
		m := w.OpenMap()
		for i := range n {
			w.Int(int64(i))
			w.Array(1)
			w.Null()
		}
		w.Close(m)
		w.OK()
		r := NewReader(bytes.NewReader(w.Bytes()))
		v, err := r.Read()
		if err != nil || v.Kind != Map || len(v.Items) != 2*n {
			t.Fatalf("%d: %v, %v", n, v, err)
		}
		if v, err := r.Read(); err != nil || string(v.Text) != "OK" {
			t.Errorf("%d: then %v, %v", n, v, err)
		}
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	w := NewWriter(3, nil)
	writeAll(w)
	from := bytes.NewReader(nil)
	r := NewReader(from)
	got := testing.AllocsPerRun(100, func() {
		from.Reset(w.Bytes())
		for _, err := r.Read(); err == nil; _, err = r.Read() {
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// rewrite writes a value as a server would.
func rewrite(w *Writer, v *Value) {
	switch v.Kind {
	case Simple:
		w.Simple(string(v.Text))
	case Error:
		code, text := v.Code()
		w.Error(code, text)
	case Integer:
		w.Int(v.Int)
	case Boolean:
		w.Bool(v.Bool())
	case Null:
		w.Null()
	case Map:
		w.Map(len(v.Items) / 2)
	case Push:
		w.Push(len(v.Items))
	case Array, Set:
		w.Array(len(v.Items))
	default:
		w.Bulk(v.Text)
	}
	for i := range v.Items {
		rewrite(w, &v.Items[i])
	}
}

// Nothing that a server sends makes a client panic, or use much more memory than was sent; what
// is read and written comes back the same, however it is cut.
func FuzzReader(f *testing.F) {
	for _, version := range []int{2, 3} {
		w := NewWriter(version, nil)
		writeAll(w)
		f.Add(w.Bytes())
	}
	f.Add([]byte("|1\r\n+ttl\r\n*1\r\n:5\r\n$1\r\nx\r\n"))
	f.Add([]byte("*2\r\n!5\r\nERR a\r\n=7\r\ntxt:abc\r\n(1\r\n~0\r\n"))
	f.Add([]byte(strings.Repeat("*1\r\n", 40)))
	f.Add([]byte("*1000000\r\n%1000000\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := NewReader(bytes.NewReader(sent))
		whole, failure := readAll(r)
		if len(r.buf) > max(minReply, 4*len(sent)) || len(r.room) > 64+2*len(sent) {
			t.Errorf("%d bytes and %d values for %d bytes", len(r.buf), len(r.room), len(sent))
		}
		parts, failure2 := readAll(NewReader(iotest.OneByteReader(bytes.NewReader(sent))))
		if fmt.Sprint(whole, failure) != fmt.Sprint(parts, failure2) {
			t.Errorf("%s, %v; in parts %s, %v", whole, failure, parts, failure2)
		}
		again := NewWriter(3, nil)
		r = NewReader(bytes.NewReader(sent))
		for v, err := r.Read(); err == nil; v, err = r.Read() {
			rewrite(again, v)
		}
		first, err := readAll(NewReader(bytes.NewReader(again.Bytes())))
		if err != io.EOF || len(first) != len(whole) {
			t.Errorf("%s became %s, %v", whole, first, err)
		}
	})
}
