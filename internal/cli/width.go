package cli

import (
	"sort"
	"unicode"
)

// columnsOf returns how many columns of a terminal a text takes.
func columnsOf(text string) (n int) {
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

// columnsOfRune returns 2 for what East Asian scripts and emoji draw twice as wide, 0 for marks that
// are drawn over the letter before them, and 1 for everything else.
func columnsOfRune(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	i := sort.Search(len(wide), func(i int) bool { return wide[i].last >= r })
	if i < len(wide) && wide[i].first <= r {
		return 2
	}
	return 1
}

// wide are the ranges that Unicode calls wide or full-width (UAX 11), where terminals agree.
var wide = []struct{ first, last rune }{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23ec}, {0x2614, 0x2615}, {0x26a1, 0x26a1}, {0x2705, 0x2705},
	{0x274c, 0x274c}, {0x2753, 0x2755}, {0x2b50, 0x2b50}, {0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf},
	{0x4e00, 0x9fff}, {0xa000, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x17000, 0x18cff}, {0x1b000, 0x1b2ff}, {0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
}
