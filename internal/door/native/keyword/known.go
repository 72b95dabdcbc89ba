package keyword

// Known are words that somebody said lately. Most clients say the same session and holder with each command, release
// the id that they acquired, and have their party named like it: what was said before is not allocated again.
//
// go test -bench Known ./internal/door/native/keyword
type Known struct{ texts [16]string }

// maxKnown is how long a word may be to be kept: a connection that does nothing keeps them, too.
const maxKnown = 64

// text returns the text of a word. A new one takes the place of another of the same field.
func (k *Known) text(field int, word []byte) string {
	if k == nil || len(word) > maxKnown {
		return string(word)
	}
	for i := range k.texts {
		if k.texts[i] == string(word) {
			return k.texts[i]
		}
	}
	place := &k.texts[field%len(k.texts)]
	*place = string(word)
	return *place
}
