package access

import "strings"

// ofRecords are the verbs for records.
const ofRecords = Verbs(1)<<RecordRead | Verbs(1)<<RecordWrite

// eachBeside calls yield with the places where something is kept that belongs to the paths below the prefix of a
// binding, and the verbs which are enough there if they are allowed at the prefix itself, until it returns false. Who
// has a prefix needs no second binding for them.
//
//   - "leasehold run --at-most-every" keeps what it knows of the runs of a job below .runs/.
//   - Azure's clients see one blob, of which the bytes are kept below azure/ and all else below azure.KIND/.
func eachBeside(prefix string, yield func(prefix string, verbs Verbs) bool) {
	if prefix == "" || !yield(".runs/"+prefix, ofRecords) {
		return
	}
	root, blobs, _ := strings.Cut(prefix, "/")
	if root != "azure" {
		return
	}
	const verbs = ofRecords | Verbs(1)<<Foreign
	for _, kind := range [...]string{"blobs", "lists"} {
		if !yield("azure."+kind+"/"+blobs, verbs) {
			return
		}
	}
	for _, kind := range [...]string{"blocks", "snapshots", "past"} { // where more follows the name of a blob
		if !yield("azure."+kind+"/"+escapes.Replace(blobs), verbs) {
			return
		}
	}
}

// escapes are those of a blob's name before the question mark after which its parts are told.
var escapes = strings.NewReplacer("%", "%25", "?", "%3F")

// coversBeside reports whether a verb at a path is allowed by what belongs to a prefix.
func coversBeside(prefix string, v Verb, path string) (found bool) {
	eachBeside(prefix, func(place string, verbs Verbs) bool {
		found = verbs.Has(v) && Covers(place, path)
		return !found
	})
	return found
}
