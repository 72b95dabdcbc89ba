package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A frame is a length, a checksum, a kind and a body. The length counts the kind and the
// body; the checksum covers the same. TCP's own checksum is too weak for what a log is
// made from, and a plain connection has no other.
const (
	frameHead = 4 + 4

	// MaxFrame is how long a frame's body may be. An entry of the log has 1 MiB, and maybe
	// one command more.
	MaxFrame = 8 << 20
)

// Kinds of frames that the mesh has for itself. Users of it have those below 0xf0.
const (
	kindHello   = 0xf0
	kindWelcome = 0xf1
	kindRefusal = 0xf2
	kindPing    = 0xf3
	kindPong    = 0xf4
	kindAnswer  = 0xf5
	kindError   = 0xf6
	kindHead    = 0xf7
	kindChunk   = 0xf8
	kindEnd     = 0xf9
)

// errDamaged is the error for bytes that no server of ours sent.
var errDamaged = errors.New("what came is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame writes a frame behind what is there.
func appendFrame(b []byte, kind byte, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(body)))
	sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)
	b = binary.BigEndian.AppendUint32(b, sum)
	b = append(b, kind)
	return append(b, body...)
}

// writeFrame sends a frame.
func writeFrame(w io.Writer, kind byte, body []byte) error {
	if len(body) > MaxFrame {
		return fmt.Errorf("a frame of %d bytes is too long", len(body))
	}
	_, err := w.Write(appendFrame(make([]byte, 0, frameHead+1+len(body)), kind, body))
	return err
}

// readFrame reads a frame whose body has limit bytes at most.
func readFrame(r io.Reader, limit int) (kind byte, body []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length == 0 || length > uint32(1+limit) {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errDamaged, length)
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, nil, unexpected(err)
	}
	if crc32.Checksum(b, castagnoli) != binary.BigEndian.Uint32(head[4:]) {
		return 0, nil, fmt.Errorf("%w: its checksum is wrong", errDamaged)
	}
	return b[0], b[1:], nil
}

// unexpected is the error of a reader that needs more than there is.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
