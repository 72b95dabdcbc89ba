package store

import (
	"fmt"
	"strconv"
	"strings"
)

// Unescape returns a name in which a store wrote some bytes as an escape character and two
// hexadecimal digits. Which bytes have to be escaped is the store's own matter.
func Unescape(s string, escape byte) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != escape {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("%q ends within an escape", s)
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q has an unknown escape", s)
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}
