package door

// maxParts is how many fields and items of lists a JSON body may have. An item of three bytes, or one of a wrong kind,
// takes hundreds in memory.
const maxParts = 32 << 10

// CheckParts refuses a JSON body of which much would be made, before any of it is.
func CheckParts(body []byte) error {
	if len(body) > maxParts && parts(body) > maxParts {
		return Invalid("the body has more than %d fields and items of lists: send it in parts", maxParts)
	}
	return nil
}

// parts counts fields and items of lists, by what separates them.
func parts(body []byte) (n int) {
	text := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case !text && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}
