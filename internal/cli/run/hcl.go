package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A reader of Terraform's configuration that knows just enough to find the backend block and
// the names that are set in it. What it does not understand, it takes for something else: then
// nothing is found, and nothing is refused.

// maxConfig is how much of a file is read. Configurations are written by hand.
const maxConfig = 1 << 20

// configuredBackend returns the backend that the files of a directory configure; the zero one if
// none does. An override file has the last word, as in Terraform.
func configuredBackend(dir string, tofu bool) (b backend, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return b, err
	}
	overridden := false
	for _, entry := range entries {
		base, isJSON := configFile(entry.Name(), tofu)
		if base == "" {
			continue
		}
		override := base == "override" || strings.HasSuffix(base, "_override")
		if overridden && !override {
			continue
		}
		file := filepath.Join(dir, entry.Name())
		text, err := os.ReadFile(file)
		if err != nil || len(text) > maxConfig {
			continue
		}
		var kind string
		var set map[string]string
		if isJSON {
			kind, set = backendInJSON(text)
		} else {
			kind, set = backendIn(string(text))
		}
		if kind != "" {
			b, overridden = backend{kind: kind, set: set, file: file}, overridden || override
		}
	}
	return b, nil
}

// configFile returns a file's name without its ending; empty if it is no configuration.
func configFile(name string, tofu bool) (base string, isJSON bool) {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
		return "", false
	}
	for ending, isJSON := range map[string]bool{".tf": false, ".tf.json": true, ".tofu": false, ".tofu.json": true} {
		if base, ok := strings.CutSuffix(name, ending); ok && (tofu || !strings.HasPrefix(ending, ".tofu")) {
			return base, isJSON
		}
	}
	return "", false
}

// backendInJSON is backendIn for the JSON syntax, in which a block can be an object or a list of
// them.
func backendInJSON(text []byte) (kind string, set map[string]string) {
	var file any
	set = map[string]string{}
	if json.Unmarshal(text, &file) != nil {
		return "", set
	}
	for _, block := range objects(file, "terraform") {
		if len(objects(block, "cloud")) > 0 {
			kind = "cloud"
		}
		for _, types := range objects(block, "backend") {
			for name := range types {
				kind = name
				for _, body := range objects(types, name) {
					for attribute, value := range body {
						if value, ok := value.(string); ok {
							set[attribute] = value
						}
					}
				}
			}
		}
	}
	return kind, set
}

// objects returns the objects that a member of an object is, or is a list of.
func objects(in any, name string) (list []map[string]any) {
	object, _ := in.(map[string]any)
	switch member := object[name].(type) {
	case map[string]any:
		list = append(list, member)
	case []any:
		for _, item := range member {
			if item, ok := item.(map[string]any); ok {
				list = append(list, item)
			}
		}
	}
	return list
}

// backendIn finds the backend block of a file: its type, and what is set in it. A cloud block
// counts as one.
func backendIn(text string) (kind string, set map[string]string) {
	set = map[string]string{}
	var path []string // the blocks around the place
	inTerraform := func() bool { return len(path) > 0 && path[0] == "terraform" }
	walk(text, func(words []word, opens bool) {
		if !opens {
			if inTerraform() && len(path) == 2 && path[1] == "backend" {
				setFrom(words, set)
			}
			return
		}
		name := ""
		if len(words) > 0 && !words[0].quoted {
			name = words[0].text
		}
		switch {
		case len(path) != 1 || !inTerraform():
		case name == "backend" && len(words) == 2:
			kind = words[1].text
		case name == "cloud" && len(words) == 1:
			kind = "cloud"
		}
		path = append(path, name)
	}, func() {
		if len(path) > 0 {
			path = path[:len(path)-1]
		}
	})
	return kind, set
}

// attributesIn returns what a file of settings sets.
func attributesIn(text string) map[string]string {
	set, depth := map[string]string{}, 0
	walk(text, func(words []word, opens bool) {
		switch {
		case opens:
			depth++
		case depth == 0:
			setFrom(words, set)
		}
	}, func() { depth-- })
	return set
}

// expression is the value of an attribute that only Terraform can evaluate.
const expression = "(an expression)"

// setFrom takes NAME = "VALUE" from a line. A value that is no plain text is there, and that is
// all that is known of it.
func setFrom(words []word, set map[string]string) {
	if len(words) < 3 || words[0].quoted || words[1].text != "=" || words[1].quoted {
		return
	}
	value := expression
	switch {
	case len(words) == 3 && words[2].quoted:
		value = words[2].text
	case len(words) == 3 && words[2].text == "null":
		return
	}
	set[words[0].text] = value
}

// A word is a name, a sign, or what is between quotes.
type word struct {
	text   string
	quoted bool
}

// walk goes through a configuration. It calls line for the words of each line, and where a brace
// opens, for those before it; and shut where a brace closes.
func walk(text string, line func(words []word, opens bool), shut func()) {
	var words []word
	end := func(opens bool) {
		if len(words) > 0 || opens {
			line(words, opens)
		}
		words = nil
	}
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\n':
			end(false)
		case r == '#' || strings.HasPrefix(text, "//"):
			text = text[lineEnd(text):]
			continue
		case strings.HasPrefix(text, "/*"):
			size = blockEnd(text)
		case strings.HasPrefix(text, "<<"):
			size = heredocEnd(text)
			words = append(words, word{text: "<<"})
		case r == '"':
			size = quoteEnd(text)
			words = append(words, word{strings.Trim(text[:size], `"`), true})
		case r == '{':
			end(true)
		case r == '}':
			end(false)
			shut()
		case isName(r):
			for size < len(text) {
				next, n := utf8.DecodeRuneInString(text[size:])
				if !isName(next) {
					break
				}
				size += n
			}
			words = append(words, word{text: text[:size]})
		case !unicode.IsSpace(r):
			words = append(words, word{text: text[:size]})
		}
		text = text[size:]
	}
	end(false)
}

func isName(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// lineEnd is where the line ends, before its newline.
func lineEnd(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// blockEnd is where a comment ends that begins the text.
func blockEnd(text string) int {
	if i := strings.Index(text[2:], "*/"); i >= 0 {
		return i + 4
	}
	return len(text)
}

// quoteEnd is where a quoted text ends that begins the text. Quotes inside ${…} do not end it.
func quoteEnd(text string) int {
	depth := 0
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], "${") || strings.HasPrefix(text[i:], "%{"):
			depth++
			i++
		case text[i] == '}' && depth > 0:
			depth--
		case text[i] == '"' && depth == 0:
			return i + 1
		case text[i] == '\n' && depth == 0:
			return i // it was never closed
		}
	}
	return len(text)
}

// heredocEnd is where a heredoc ends that begins the text.
func heredocEnd(text string) int {
	first := lineEnd(text)
	mark := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text[:first], "<<"), "-"))
	for at := first; mark != "" && at < len(text); {
		at++ // behind the newline
		end := at + lineEnd(text[at:])
		if strings.TrimSpace(text[at:end]) == mark {
			return end
		}
		at = end
	}
	return min(2, len(text))
}
