package azureblob

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// NewGUID makes an id: of a lease for which the client proposed none, or of a request.
func NewGUID() string {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return GUIDOf(b)
}

// GUIDOf returns 16 bytes as a GUID.
func GUIDOf(b []byte) string {
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseGUID reads a GUID in any of the formats that .NET knows (N, D, B, P and X) and
// returns it as everybody writes it; false if it is none.
func ParseGUID(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) > 128 {
		return "", false
	}
	if strings.HasPrefix(strings.ToLower(s), "{0x") {
		return parseGUIDX(s)
	}
	if n := len(s); n == 38 && (s[0] == '{' && s[n-1] == '}' || s[0] == '(' && s[n-1] == ')') {
		s = s[1 : n-1]
	}
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return "", false
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return "", false
	}
	return GUIDOf(b), true
}

// parseGUIDX reads {0x00000000,0x0000,0x0000,{0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00}}.
func parseGUIDX(s string) (string, bool) {
	inner, ok := strings.CutSuffix(strings.ReplaceAll(s, " ", "")[1:], "}}")
	head, tail, two := strings.Cut(inner, ",{")
	if !ok || !two {
		return "", false
	}
	var b []byte
	widths := []int{8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2}
	fields := append(strings.Split(head, ","), strings.Split(tail, ",")...)
	if len(fields) != len(widths) || len(strings.Split(head, ",")) != 3 {
		return "", false
	}
	for i, field := range fields {
		digits, found := strings.CutPrefix(strings.ToLower(field), "0x")
		if !found || digits == "" || len(digits) > widths[i] {
			return "", false
		}
		part, err := hex.DecodeString(strings.Repeat("0", widths[i]-len(digits)) + digits)
		if err != nil {
			return "", false
		}
		b = append(b, part...)
	}
	return GUIDOf(b), true
}
