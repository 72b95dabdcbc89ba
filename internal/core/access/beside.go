package access

import "strings"

// ofRecords are the verbs for records.
const ofRecords = Verbs(1)<<RecordRead | Verbs(1)<<RecordWrite

// A beside is a place where something is kept that belongs to the paths below a prefix, and the verbs which are
// enough there if they are allowed at the prefix itself. Who has a prefix needs no second binding for it.
type beside struct {
	prefix string
	verbs  Verbs
}

// besides returns the places that belong to the prefix of a binding.
//
//   - "leasehold run --at-most-every" keeps what it knows of the runs of a job below .runs/.
//   - Azure's clients see one blob, of which the bytes are kept below azure/ and all else below azure.KIND/.
func besides(prefix string) (places []beside) {
	if prefix == "" {
		return nil
	}
	places = append(places, beside{".runs/" + prefix, ofRecords})
	root, blobs, _ := strings.Cut(prefix, "/")
	if root != "azure" {
		return places
	}
	const verbs = ofRecords | Verbs(1)<<Foreign
	for _, kind := range [...]string{"blobs", "lists"} {
		places = append(places, beside{"azure." + kind + "/" + blobs, verbs})
	}
	for _, kind := range [...]string{"blocks", "snapshots", "past"} { // where more follows the name of a blob
		places = append(places, beside{"azure." + kind + "/" + escapes.Replace(blobs), verbs})
	}
	return places
}

// escapes are those of a blob's name before the question mark after which its parts are told.
var escapes = strings.NewReplacer("%", "%25", "?", "%3F")

// coversBeside reports whether a verb at a path is allowed by what belongs to a prefix.
func coversBeside(prefix string, v Verb, path string) bool {
	for _, p := range besides(prefix) {
		if p.verbs.Has(v) && Covers(p.prefix, path) {
			return true
		}
	}
	return false
}
